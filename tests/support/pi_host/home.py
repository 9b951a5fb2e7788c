"""Where the Pi processes of a test live: their configuration, their working directory, their environment."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from pi_host.installation import NODE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pi_host.installation import Installation
    from pi_host.model_server import ModelServer

MODELS: Final = ("fake-1", "fake-2", "fake-3")
"""One for each agent of a test, so that their requests can be told apart."""
_QUIET: Final = {
    "PI_OFFLINE": "1",
    "PI_SKIP_VERSION_CHECK": "1",
    "PI_TELEMETRY": "0",
}
_PLAIN: Final = {"PI_HYPERLINKS": "0", "PI_IMAGE_PROTOCOL": "none", "PI_PROGRAM_STATUS": "0"}
"""What the emulated terminal does not understand."""


class PiHome:
    """An agent directory of its own, shared by the Pi processes of one test as by those of one user."""

    def __init__(self, root: Path, installation: Installation, server: ModelServer) -> None:
        self.installation = installation
        self.root = root
        self.agent = root / "agent"
        self.work = root / "work"
        self.user = root / "user"
        for directory in (self.agent, self.work, self.user):
            directory.mkdir(parents=True)
        models = [{"id": m, "name": m, "contextWindow": 128_000, "maxTokens": 4096} for m in MODELS]
        provider = {"baseUrl": server.url, "api": "openai-completions", "apiKey": "dummy", "models": models}
        (self.agent / "models.json").write_text(json.dumps({"providers": {"fake": provider}}), "utf-8")
        self.settings: dict[str, Any] = {
            "defaultProvider": "fake",
            "defaultModel": MODELS[0],
            "retry": {"baseDelayMs": 20},  # as many retries as a user has, without the wait
        }
        self.write_settings()

    def write_settings(self, **changes: Any) -> None:
        """Change some settings, for the processes started from here on."""
        self.settings |= changes
        (self.agent / "settings.json").write_text(json.dumps(self.settings), "utf-8")

    def env(self, extra: Mapping[str, str]) -> dict[str, str]:
        """The environment of a process: nothing of the tests' own beyond the search path."""
        path = os.pathsep.join((os.path.dirname(NODE), os.environ.get("PATH", os.defpath)))
        own = {
            "PATH": path,
            "HOME": str(self.user),
            "LANG": "C.UTF-8",
            "PI_CODING_AGENT_DIR": str(self.agent),
        }
        return {**own, **_QUIET, **_PLAIN, "TERM": "xterm-256color", **extra}

    def command(self, words: Sequence[str], *, extensions: Sequence[str], model: str | None) -> list[str]:
        """The command line of a process.

        Args:
            words: further options.
            extensions: paths to load.
            model: one of `MODELS`; None leaves the choice to the session and the settings.
        """
        command = [*self.installation.command, "--no-skills", "--no-context-files"]
        for extension in extensions:
            command += ["-e", extension]
        if model is not None:
            command += ["--model", f"fake/{model}"]
        return [*command, *words]

    def extension(self, name: str, source: str) -> str:
        """Write an extension; its path."""
        path = self.root / f"{name}.ts"
        path.write_text(source, "utf-8")
        return str(path)

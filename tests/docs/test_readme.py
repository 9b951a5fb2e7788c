"""What README.md tells people to type can be typed."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

import click
import pytest

import repository
from pi_team.cli.app import app
from pi_team.errors import PiTeamError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

README: Final = repository.text("README.md")
CODE: Final = re.compile(r"^```(?:sh|python)\n(.*?)^```$|(?<!`)`(pi-team [^`\n]+)`", re.MULTILINE | re.DOTALL)
PATIENCE: Final = 30.0


def _fences(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def _mentioned() -> Iterator[tuple[str, str]]:
    """Each `pi-team …` that a document, an error or a command's help mentions, and where."""
    for document in repository.documents():
        for block, inline in CODE.findall(repository.text(document)):
            for line in (block or inline).splitlines():
                if match := re.search(r"\bpi-team ([a-z-].*)", line):
                    yield document, match[1]
    for kind in _heirs(PiTeamError):
        for inline in re.findall(r"`pi-team ([^`]+)`", kind.default_hint):
            yield kind.__name__, inline


def _heirs(kind: type[PiTeamError]) -> Iterator[type[PiTeamError]]:
    for heir in kind.__subclasses__():
        yield heir
        yield from _heirs(heir)


def test_every_command_that_is_mentioned_exists() -> None:
    """A command or an option was renamed, and a document or a hint still tells people to type the old one."""
    seen = set()
    for where, mentioned in _mentioned():
        line = mentioned.split(" #")[0].rstrip(".)\"'")
        words = shlex.split(line) if line.count("'") % 2 == 0 else line.split()
        if words[0].startswith("-") or words[0] == "COMMAND":
            continue
        command = app.get_command(click.Context(app), words[0])
        assert command is not None, f"{where}: pi-team {mentioned}"
        seen.add(words[0])
        own = words[: words.index("--")] if "--" in words else words
        options = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        for word in own:
            assert not word.startswith("--") or word in options, f"{where}: pi-team {mentioned}"
    assert {"create", "work", "ask", "log", "recover", "doctor"} <= seen


def test_every_command_is_in_the_changes() -> None:
    """A command was added and users are not told."""
    for name in app.list_commands(click.Context(app)):
        assert f"`{name}`" in repository.text("CHANGELOG.md"), name


def test_every_code_that_is_mentioned_exists() -> None:
    """The troubleshooting table names a code that was renamed."""
    codes = {kind.code for kind in _heirs(PiTeamError) if hasattr(kind, "code")}
    named = set(re.findall(r"`([A-Z]+_[A-Z_]+|BUSY|DUPLICATE|STORAGE)\b", README)) - {"PI_CODING_AGENT_DIR"}
    assert len(named) > 10
    assert named <= codes


def test_what_the_troubleshooting_of_pi_quotes_is_said() -> None:
    """A message was reworded, and whoever looks for what they see finds nothing."""
    sources = [
        name for name in repository.files() if name.startswith("pi_team/") and name[-3:] in {".py", ".ts"}
    ]
    said = re.sub(r'"\s*\+?\s*f?"', "", "".join(map(repository.text, sources)))
    table = repository.text("docs/pi.md").partition("## When something is not as expected")[2]
    symptoms = re.findall(r"`([^`]+)`", " ".join(re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)))
    parts = [part.strip() for symptom in symptoms for part in symptom.split("…") if part.strip()]
    assert len(parts) > 10
    assert [part for part in parts if part not in said and part != "/team"] == []


def test_the_two_commands_stand_there_once() -> None:
    """What sets up and runs the demo and the tests; `.ci/run` takes the latter from here."""
    lines = "".join(_fences("sh")).splitlines()
    demo, tests = [line for line in lines if line.startswith("python3 -m venv")]
    assert demo.endswith(".venv/bin/pi-team demo")
    assert tests.endswith(".venv/bin/python -m pytest -n auto")
    script = repository.text(".ci/run")
    pattern = re.search(r"grep -E '([^']+)' README\.md", script)
    assert pattern is not None
    assert re.findall(pattern[1], README, re.MULTILINE) == [tests]


def _environment(directory: Path) -> dict[str, str]:
    scripts = os.path.dirname(sys.executable)
    path = os.pathsep.join([scripts, os.environ["PATH"]])
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PI_")}
    return inherited | {"PATH": path, "PI_CODING_AGENT_DIR": str(directory)}


def _shell(script: str, environment: dict[str, str]) -> str:
    command = ["sh", "-euc", script]
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.slow
def test_the_quick_start_does_what_it_says(tmp_path: Path) -> None:
    """The two terminals of the quick start, typed as they stand there, and the Python example after them."""
    _, _, first, second, third, _ = _fences("sh")
    environment = _environment(tmp_path)
    worker = subprocess.Popen(
        ["sh", "-euc", first], env=environment, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while '"idle"' not in _shell("pi-team members crew --json || true", environment):
            assert time.monotonic() < deadline
        said = _shell(second, environment)
        assert said.startswith("PLEASE SHOUT\n")
        assert "please shout" in said
        assert "TAKE YOUR TIME" in _shell(third, environment)
    finally:
        os.killpg(worker.pid, signal.SIGTERM)
        worker.wait(PATIENCE)
    (example,) = _fences("python")
    assert _shell(f"{shlex.quote(sys.executable)} -c {shlex.quote(example)}", environment) == "pending\n"
    log = json.loads(_shell("pi-team log crew --json", environment))
    kinds = [message["kind"] for message in log["messages"]]
    assert sorted(kinds) == ["note", "note", "request", "request", "result", "result"]

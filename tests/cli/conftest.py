"""Teams in a temporary directory, and the command in this process, in one of its own, or in a terminal."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pi_team.cli.main import main
from pi_team.mailbox import Mailbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATIENCE = 15.0


@dataclass(frozen=True)
class Ended:
    """How a run of the command ended."""

    status: int
    out: str
    err: str

    @property
    def object(self) -> Any:
        """The one JSON object on standard output."""
        return json.loads(self.out)

    @property
    def objects(self) -> list[Any]:
        """The JSON objects on standard output, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> Any:
        """The JSON error on standard error, where nothing else may be."""
        assert self.out == ""
        assert self.err.count("\n") == 1
        return json.loads(self.err)["error"]


class Run(Protocol):
    def __call__(self, *words: str, stdin: bytes = b"") -> Ended: ...


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty PI_CODING_AGENT_DIR, and an environment without anything else that the command looks at."""
    home = tmp_path / "agent"
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(home))
    for name in (
        "PI_TEAM_ALIAS",
        "PI_TEAM_DEBUG",
        "NO_COLOR",
        "FORCE_COLOR",
        "COLUMNS",
        "LINES",
        "_PI_TEAM_COMPLETE",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    return home


@pytest.fixture
def mailbox(home: Path) -> Iterator[Mailbox]:
    """The teams as another process would see them, with a team `crew`."""
    mailbox = Mailbox(home / "teams")
    mailbox.create("crew")
    yield mailbox
    mailbox.close()


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in this process."""

    def run(*words: str, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        capfd.readouterr()
        status = main(list(words))
        captured = capfd.readouterr()
        return Ended(status, captured.out, captured.err)

    return run


class Process:
    """The command in a process of its own, its output on pipes."""

    def __init__(self, words: tuple[str, ...], stdin: bytes | None) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "pi_team", *words],
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._stdin = stdin

    @property
    def pid(self) -> int:
        return self.popen.pid

    def line(self) -> str:
        """The next line of output; "" at its end."""
        assert self.popen.stdout is not None
        return self.popen.stdout.readline()

    def event(self, name: str) -> Any:
        """Read JSON events until the one of that name."""
        while True:
            event = json.loads(self.line())
            if event["event"] == name:
                return event

    def signal(self, number: int) -> None:
        self.popen.send_signal(number)

    def ended(self) -> Ended:
        stdin = None if self._stdin is None else self._stdin.decode()
        out, err = self.popen.communicate(stdin, timeout=PATIENCE)
        return Ended(self.popen.returncode, out, err)


class Spawn(Protocol):
    def __call__(self, *words: str, stdin: bytes | None = None) -> Process: ...


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Start the command as a process; what still runs at the end of the test is killed."""
    started: list[Process] = []

    def spawn(*words: str, stdin: bytes | None = None) -> Process:
        started.append(Process(words, stdin))
        return started[-1]

    yield spawn
    for process in started:
        if process.popen.poll() is None:
            process.popen.kill()
        process.popen.communicate()


class Terminal:
    """The command in a pseudo-terminal of a given size."""

    def __init__(self, words: tuple[str, ...], columns: int, lines: int) -> None:
        self._fd, inner = pty.openpty()
        self.resize(columns, lines)
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "pi_team", *words],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
            # Not what the process inherits: the readline library has put the size of a terminal there.
            env=dict(os.environ),
        )
        os.close(inner)
        self.shown = ""

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def signal(self, number: int) -> None:
        self._popen.send_signal(number)

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def until(self, text: str) -> str:
        """Read until the text is shown; everything shown since the last call."""
        return self._read(lambda: text in self.shown)

    def end(self) -> Ended:
        """Read to the end and wait."""
        self._read(lambda: False)
        return Ended(self._popen.wait(PATIENCE), self.shown, "")

    def close(self) -> None:
        if self._popen.poll() is None:
            self._popen.kill()
        self._popen.wait()
        os.close(self._fd)

    def _read(self, enough: Callable[[], bool]) -> str:
        deadline = time.monotonic() + PATIENCE
        while not enough():
            ready, _, _ = select.select([self._fd], [], [], max(deadline - time.monotonic(), 0))
            assert ready, f"nothing more was shown than {self.shown!r}"
            try:
                chunk = os.read(self._fd, 65_536)
            except OSError:  # EIO: the other end is closed
                break
            if not chunk:
                break
            self.shown += chunk.decode("utf-8", "replace")
        return self.shown


class Show(Protocol):
    def __call__(self, *words: str, columns: int = 80, lines: int = 24) -> Terminal: ...


@pytest.fixture
def show() -> Iterator[Show]:
    """Run the command in a pseudo-terminal."""
    started: list[Terminal] = []

    def show(*words: str, columns: int = 80, lines: int = 24) -> Terminal:
        started.append(Terminal(words, columns, lines))
        return started[-1]

    yield show
    for terminal in started:
        terminal.close()

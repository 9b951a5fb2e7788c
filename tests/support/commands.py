"""The command in a process of its own or in a pseudo-terminal, and how it ended."""

from __future__ import annotations

import contextlib
import fcntl
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


@contextlib.contextmanager
def spawning() -> Iterator[Spawn]:
    """Start the command as processes; what still runs at the end is killed."""
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

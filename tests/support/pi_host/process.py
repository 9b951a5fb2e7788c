"""What the two ways of running Pi have in common: a process with children, and how it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any, Final

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

PATIENCE: Final = 20.0


class PiProcess:
    """A running Pi, in a session of its own."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: Any,
        stdout: Any,
        stderr: Any,
    ) -> None:
        self.popen = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        self._seen: set[psutil.Process] = set()

    @property
    def pid(self) -> int:
        return self.popen.pid

    def family(self) -> list[psutil.Process]:
        """Everything that it has started and that lives: its descendants, and orphans of its session."""
        found: set[psutil.Process] = set()
        with contextlib.suppress(psutil.NoSuchProcess):
            found.update(psutil.Process(self.pid).children(recursive=True))
        for process in psutil.process_iter():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if process.pid != self.pid and os.getsid(process.pid) == self.pid:
                    found.add(process)
        family = [process for process in found if _lives(process)]
        self._seen.update(family)
        return family

    def signal(self, number: int) -> None:
        """Send a signal to Pi alone."""
        self.popen.send_signal(number)

    def ended(self, patience: float = PATIENCE) -> int:
        """Wait for the end; the return code."""
        return self.popen.wait(patience)

    def kill(self) -> list[psutil.Process]:
        """Kill Pi and nothing else; what it had started."""
        family = self.family()
        if self.popen.poll() is None:
            self.signal(signal.SIGKILL)
        self.popen.wait()
        return family

    def sweep(self) -> None:
        """Kill whatever is left of it. For the end of a test: what a test expects it asserts before."""
        if self.popen.poll() is None:
            self.family()
            with contextlib.suppress(ProcessLookupError):
                self.signal(signal.SIGKILL)
        self.popen.wait()
        self.family()
        for process in self._seen:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()  # psutil looks at the start time first: never somebody else's process
        still_there(self._seen)


def still_there(processes: Iterable[psutil.Process], patience: float = PATIENCE) -> list[psutil.Process]:
    """Wait for processes to end by themselves; those that have not."""
    deadline = time.monotonic() + patience
    alive = list(processes)
    while (alive := [process for process in alive if _lives(process)]) and time.monotonic() < deadline:
        time.sleep(0.01)  # no event tells of the end of a process that is nobody's child here
    return alive


def _lives(process: psutil.Process) -> bool:
    """An orphan that has ended stays a zombie where no init reaps it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

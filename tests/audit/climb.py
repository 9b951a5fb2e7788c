"""Runs rungs, some at a time, and tells how each of them ended.

Each is a process group of its own, so that a Ctrl-C reaches this process alone, and this one ends them.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Final

import attrs
import psutil

from account import Account
from ladder import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ladder import Part, Rung, Size

HOLDS: Final = "holds"
FAILED: Final = "failed"
NOT_RUN: Final = "not run"
WAITING: Final = "waiting"
RUNNING: Final = "running"
_LOOK: Final = 0.1
"""Seconds between two looks at what is running."""
_GRACE: Final = 5.0
"""Seconds that a rung has to end by itself when it is interrupted."""


@attrs.define(eq=False)
class Ascent:
    """One rung on its way.

    Attributes:
        rung: which.
        log: where its output goes.
        account: of what it has explored.
        verdict: one of the words above.
        reason: why it failed or was not run.
        commands: what was run.
        seconds: by the clock.
    """

    rung: Rung
    log: Path
    account: Account = attrs.field(factory=Account)
    verdict: str = WAITING
    reason: str = ""
    commands: list[list[str]] = attrs.field(factory=list)
    seconds: float = 0.0
    _process: subprocess.Popen[str] | None = None
    _reader: threading.Thread | None = None
    _began: float = 0.0

    def begin(self, size: Size) -> None:
        """Start its first program, or say why it cannot be run here."""
        reason = self.rung.missing()
        if reason:
            self.verdict, self.reason = NOT_RUN, reason
            return
        self.log.write_bytes(b"")
        self._began = time.monotonic()
        self.verdict = RUNNING
        self._start(size)

    def _start(self, size: Size) -> None:
        part = self.rung.parts[len(self.commands)]
        command = part.command(size)
        self.commands.append(command)
        with open(self.log, "a", encoding="utf-8") as log:
            print(f"$ {shlex.join(command)}", file=log, flush=True)
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=_environment(size),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, args=(self._process, part), daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[str], part: Part) -> None:
        assert process.stdout is not None
        with process.stdout, open(self.log, "a", encoding="utf-8") as log:
            for line in process.stdout:
                log.write(line)
                log.flush()
                part.reader(self.account, line.rstrip("\n"))

    def look(self, size: Size) -> None:
        """See whether its program has ended, and how; go on with the next, if there is one."""
        assert self._process is not None
        assert self._reader is not None
        self.seconds = time.monotonic() - self._began
        status = self._process.poll()
        if status is None:
            return
        self._reader.join(_GRACE)
        if status == 0 and len(self.commands) < len(self.rung.parts):
            self._start(size)
        else:
            self.verdict, self.reason = _judged(self.account, status)

    def interrupt(self) -> None:
        """End it and all that it has started; it says nothing then."""
        if self._process is not None and self.verdict == RUNNING:
            _end(self._process)
            self.verdict, self.reason = NOT_RUN, f"interrupted after {self.seconds:.0f} s"
        elif self.verdict == WAITING:
            self.verdict, self.reason = NOT_RUN, "interrupted"


def _environment(size: Size) -> dict[str, str]:
    """What a rung is started with: nothing but the size makes it longer or shorter."""
    ours = {"PI_TEAM_TESTS", "PYTEST_ADDOPTS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"}
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    length = {"PI_TEAM_TESTS": "long"} if size.full else {}
    return kept | length | {"PYTHONUNBUFFERED": "1", "COLUMNS": "200"}


def _judged(account: Account, status: int) -> tuple[str, str]:
    """The verdict on a rung that has ended, and the reason for it."""
    faults = account.faults()
    if faults:
        return FAILED, faults[0] + (f", and {len(faults) - 1} more" if len(faults) > 1 else "")
    if status:
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return FAILED, f"the program {how}"
    if not account.rows:
        return FAILED, "nothing was explored"
    if account.skipped:
        return NOT_RUN, f"{len(account.skipped)} of its cases: {account.skipped[0]}"
    return HOLDS, ""


def _end(process: subprocess.Popen[str]) -> None:
    """Interrupt a program; then kill what is left of it and of what it has started."""
    everybody = _descendants(process.pid)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    for one in {*everybody, *_descendants(process.pid)}:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(_GRACE)


def _descendants(pid: int) -> list[psutil.Process]:
    """What a process has started, whatever group it is in; a process keeps its identity when it is killed."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children(recursive=True)
    return []


def climb(ascents: Sequence[Ascent], size: Size, jobs: int, watch: Callable[[], None]) -> bool:
    """Run all rungs, `jobs` at a time, in their order.

    Args:
        ascents: what to run; changed in place.
        size: how much of each.
        jobs: how many at a time.
        watch: called whenever something may have changed.

    Returns:
        False where it was interrupted; then nothing that it has started is running any longer.
    """
    try:
        while any(one.verdict in (WAITING, RUNNING) for one in ascents):
            for one in ascents:
                if one.verdict == RUNNING:
                    one.look(size)
            for one in ascents:
                if one.verdict == WAITING and sum(other.verdict == RUNNING for other in ascents) < jobs:
                    one.begin(size)
            watch()
            time.sleep(_LOOK)
    except KeyboardInterrupt:
        _undisturbed(ascents)
        watch()
        return False
    return True


def _undisturbed(ascents: Sequence[Ascent]) -> None:
    """End what is running, however often one is interrupted meanwhile."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for one in ascents:
            one.interrupt()
    finally:
        signal.signal(signal.SIGINT, before)

"""The stage of `pi-team demo`: a directory and processes of its own, of which nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

import pi_team
from pi_team.cli.signals import shielded
from pi_team.errors import DemoFailed
from pi_team.mailbox import Mailbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

__all__ = ["Stage"]

_PATIENCE: Final = 10.0
"""Seconds for anything that the demo waits for; far more than it takes."""


class Stage:
    """A temporary directory of teams and the real processes that use it; a context manager.

    Attributes:
        mailbox: the demo's own look at the teams.
        path: the directory.
        pids: every process started, and what the workers among them started.
    """

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="pi-team-demo-")
        self.path = Path(self._directory.name)
        self.mailbox = Mailbox(self.path / "teams")
        self.pids: set[int] = set()
        self._children: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        with shielded():
            for child in self._children:
                self.kill(child)
            self._directory.cleanup()

    def start(self, module: str, *words: str) -> subprocess.Popen[str]:
        """Start `python -m MODULE WORDS` as a process of its own, its output on a pipe."""
        with shielded():
            child = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", module, *words],
                cwd=self.path,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            self._children.append(child)
            self.pids.add(child.pid)
        return child

    def finish(self, child: subprocess.Popen[str]) -> tuple[int, str]:
        """Wait for a process; its exit status and what it printed.

        Raises:
            DemoFailed: it does not end.
        """
        try:
            printed, _errors = child.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired as error:
            raise DemoFailed(f"process {child.pid} has not ended after {_PATIENCE:.0f} s") from error
        return child.returncode, printed

    def kill(self, child: subprocess.Popen[str]) -> int:
        """SIGKILL a process, and what it had started, which it cannot end itself any more; its status."""
        try:
            started = psutil.Process(child.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            started = []
        child.send_signal(signal.SIGKILL)
        for process in started:
            self.pids.add(process.pid)
            process.kill()
        child.communicate()
        return child.returncode

    def until(self, condition: Callable[[], bool]) -> bool:
        """Look until the condition holds; False when it does not come to hold in time."""
        deadline = time.monotonic() + _PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def revisions(self, team: str) -> tuple[int, int]:
        """The revision that the record shows and the newest in the history, without helping anything."""
        directory = self.path / "teams" / team
        shown = json.loads((directory / "state.json").read_text("utf-8"))["revision"]
        newest = max(int(slot.stem) for slot in (directory / "revisions").glob("[0-9]*.json"))
        return shown, newest

    def left_behind(self) -> bool:
        """Whether the directory or any process of the demo is still there."""
        return self.path.exists() or any(_runs(pid) for pid in self.pids)

    def _environment(self) -> dict[str, str]:
        source = str(Path(pi_team.__file__).parent.parent)
        path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
        environment = os.environ | {"PI_CODING_AGENT_DIR": str(self.path), "PYTHONPATH": path}
        environment.pop("PI_TEAM_ALIAS", None)
        return environment


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

"""The Python side of a session with something changed: other limits, or a point at which it stops."""

from __future__ import annotations

import os
import select
import sys
from typing import TYPE_CHECKING, Final

from pi_host.process import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

_BRIDGE: Final = """
from pi_team.hosts.pi.bridge import main

raise SystemExit(main())
"""
_GATE: Final = """
import os

from pi_team.mailbox import Mailbox

def gated(self, *arguments, method=Mailbox.{method}, **options):
    result = method(self, *arguments, **options)
    if os.path.exists({reached!r}):
        os.rename({reached!r}, {reached!r} + ".once")
        open({reached!r} + ".once", "w").close()
        open({opened!r}).close()
    return result

Mailbox.{method} = gated
"""


def python_side(path: Path, changes: str) -> str:
    """A program for `PI_TEAM_PYTHON` that makes these changes and then is the bridge.

    Args:
        path: the file to write.
        changes: Python source that runs first.
    """
    path.write_text(f"#!{sys.executable} -P\n{changes}{_BRIDGE}", "utf-8")
    path.chmod(0o700)
    return str(path)


class Gate:
    """The first call of a mailbox's method has taken effect, and returns when the test says so.

    Args:
        directory: an empty directory.
        method: the method's name.
    """

    def __init__(self, directory: Path, method: str) -> None:
        directory.mkdir()
        reached, opened = str(directory / "reached"), str(directory / "opened")
        os.mkfifo(reached)
        os.mkfifo(opened)
        self.python = python_side(
            directory / "python", _GATE.format(method=method, reached=reached, opened=opened)
        )
        self._reached = os.open(reached, os.O_RDONLY | os.O_NONBLOCK)
        self._opened = opened

    def wait_reached(self) -> None:
        """Return when the call waits at the gate."""
        poll = select.poll()
        poll.register(self._reached)  # hung up once somebody has opened the other end and closed it
        assert poll.poll(PATIENCE * 1e3), "nobody has come to the gate"
        os.close(self._reached)

    def open(self) -> None:
        """Let it pass; nobody else comes to the gate."""
        os.close(os.open(self._opened, os.O_WRONLY))  # waits for the reader, which is there or about to be

"""Signals that ask the command to stop, delivered where stopping is safe.

SIGINT, SIGTERM and SIGHUP become :class:`Stopped` in the main thread. A write to a team is shielded:
a signal that arrives meanwhile is delivered when the write has ended, so that a person's Ctrl-C does
not leave a publication half done (it would be mended by the next writer, like any crash). A second
signal is delivered at once.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["Stopped", "shielded", "stoppable"]

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """The command was asked to stop; no `Exception`, so that nothing on the way takes it for a failure."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_status = 128 + number


class _Shield:
    """Whether a write is under way in the main thread, and the signal that waits for its end."""

    depth = 0
    waiting: int | None = None

    def arrived(self, number: int, _frame: FrameType | None) -> None:
        if self.depth and self.waiting is None:
            self.waiting = number
        else:
            raise Stopped(number)

    def deliver(self) -> None:
        number, self.waiting = self.waiting, None
        if number is not None:
            raise Stopped(number)


_shield = _Shield()


@contextmanager
def stoppable() -> Iterator[None]:
    """Install the handlers for the time of the block; a signal that is ignored (nohup) stays ignored."""
    before = {number: signal.getsignal(number) for number in _STOPPING}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _shield.arrived)
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # one that was not installed from Python cannot be put back
                signal.signal(number, handler)


@contextmanager
def shielded() -> Iterator[None]:
    """Keep a first stop signal waiting until the outermost such block ends."""
    _shield.depth += 1
    try:
        yield
    finally:
        _shield.depth -= 1
        if not _shield.depth:
            _shield.deliver()

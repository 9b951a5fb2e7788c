"""Taking turns: of all who wait for a team's stable lock, one is next, and the others wait to be that.

Otherwise whoever releases the lock finds it free before anybody else looks, again and again, and all who wait
wake up for one lock. A turn is a `flock` of the team's directory. It orders who waits and guards nothing: the
kernel takes it from who dies, and where there is no such lock, or no directory, everybody is next.
"""

from __future__ import annotations

import contextlib
import fcntl
from typing import Final

LOOK: Final = (0.002, 0.0003)
"""Seconds between two looks whether one is next: when one begins to wait, and at least."""
_HALVED: Final = 0.02
"""Seconds of waiting after which that has halved: who waits for long comes before who just came."""


def interval(waited: float) -> float:
    """Seconds until the next look of who has waited for that many seconds."""
    first, least = LOOK
    return max(first / (1 + waited / _HALVED), least)


def take_turn(team_fd: int | None) -> bool:
    """Become the next to take the lock; whether nobody else is."""
    if team_fd is None:
        return True
    try:
        fcntl.flock(team_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def end_turn(team_fd: int | None) -> None:
    """Let another be next."""
    if team_fd is not None:
        with contextlib.suppress(OSError):
            fcntl.flock(team_fd, fcntl.LOCK_UN)

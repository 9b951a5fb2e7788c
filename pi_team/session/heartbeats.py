"""The session's heartbeats: between any two things that may wait for locks, there is one.

One wait may last `WRITE_PATIENCE`, and others take a session whose presence is as old as `PRESENCE_EXPIRY`,
twice as long, for dead. So whatever asks the mailbox for several things in one event beats in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_team.errors import MembershipLost, PiTeamError, TeamMoved, TeamUnknown
from pi_team.limits import HEARTBEAT_INTERVAL

if TYPE_CHECKING:
    from pi_team.domain.model import Status
    from pi_team.session.context import Context

__all__ = ["GONE", "Heartbeats"]

GONE = (MembershipLost, TeamMoved, TeamUnknown)
"""What the mailbox says when a membership, or its team, is not there any more."""


class Heartbeats:
    """Says to the other members that this session is there, and what it does.

    Args:
        context: what the parts share.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._last: tuple[float, Status] | None = None

    def begin(self) -> None:
        """Begin anew, as a member."""
        self._last = None

    def beat(self) -> None:
        """A heartbeat where one is due, or where the status has changed."""
        context = self._context
        if not context.is_joined:
            return
        now, status = context.clock.running(), context.status
        if self._last is not None and now - self._last[0] < HEARTBEAT_INTERVAL and status == self._last[1]:
            return
        try:
            context.mailbox.heartbeat(context.owner, status)
            self._last = (now, status)
        except GONE:
            return  # the look that follows tells why
        except PiTeamError as error:
            context.trouble(error, "say that this session is alive")

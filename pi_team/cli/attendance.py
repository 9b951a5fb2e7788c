"""A member's heartbeats while its command waits for something."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pi_team import limits
from pi_team.cli.signals import shielded

if TYPE_CHECKING:
    from pi_team.domain.model import Membership, Status
    from pi_team.mailbox import Mailbox

__all__ = ["Attendance"]


class Attendance:
    """Renews a member's presence every two seconds, and at once when its status changes.

    Args:
        mailbox: the teams.
        owner: the membership.
        status: what the member shows first.
    """

    def __init__(self, mailbox: Mailbox, owner: Membership, status: Status) -> None:
        self._mailbox = mailbox
        self._owner = owner
        self._status = status
        self._due = 0.0
        self.keep()

    @property
    def rest(self) -> float:
        """Seconds until the next heartbeat is due."""
        return max(self._due - time.monotonic(), 0.0)

    def keep(self) -> bool:
        """Renew the presence if it is due; whether it was.

        Raises:
            MembershipLost: somebody else has the alias by now, or it was renamed or removed.
        """
        if self.rest > 0:
            return False
        with shielded():
            self._mailbox.heartbeat(self._owner, self._status)
        self._due = time.monotonic() + limits.HEARTBEAT_INTERVAL
        return True

    def show(self, status: Status) -> None:
        """Show another status from now on."""
        self._status = status
        self._due = 0.0
        self.keep()

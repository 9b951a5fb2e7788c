"""When a member looks after the requests that it sent and that have no result (docs/limits.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_team.limits import REVIEW_AFTER, REVIEW_INTERVAL, REVIEWS_WITHOUT_CHANGE

if TYPE_CHECKING:
    from pi_team.clocks import Clock
    from pi_team.domain.views import FlowEntry, Snapshot


class Reviews:
    """Says when one is due: seldom, and not again and again while nothing changes.

    Args:
        clock: the clocks.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._checked = -REVIEW_INTERVAL
        self._revision = 0
        self._in_vain = 0

    def open_requests(self, snapshot: Snapshot) -> list[FlowEntry]:
        """The member's own requests without a result, oldest first."""
        return [entry for entry in snapshot.flow if entry.sender == snapshot.alias]

    def is_due(self, snapshot: Snapshot) -> bool:
        """Whether a review is to start now; asked at most once an interval, the answer is yes or not now."""
        if snapshot.revision != self._revision:
            self._revision, self._in_vain = snapshot.revision, 0
        now = self._clock.running()
        if now - self._checked < REVIEW_INTERVAL:
            return False
        overdue = self._clock.wall() - REVIEW_AFTER
        if not any(entry.created / 1_000 <= overdue for entry in self.open_requests(snapshot)):
            return False
        if self._in_vain >= REVIEWS_WITHOUT_CHANGE:
            return False
        self._checked = now
        return True

    def began(self) -> None:
        """A review has started."""
        self._in_vain += 1

"""The service: every operation of docs/lifecycles.md on a teams directory.

Operations are applied by publications (:mod:`pi_team.engine`); looks take no lock and change nothing of a
team.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Self

from pi_team.domain import operations, views
from pi_team.engine import Engine, Options, new_id
from pi_team.errors import MembershipLost
from pi_team.memberships import Memberships
from pi_team.presence import Observer, this_process
from pi_team.seats import Seat
from pi_team.watching import Changes

if TYPE_CHECKING:
    from collections.abc import Collection
    from types import TracebackType
    from typing import Literal, Unpack

    from pi_team.domain.model import Membership, Message, Report


class Mailbox(Memberships):
    """The teams of one directory, for one process. Every method may raise any :class:`PiTeamError`.

    A context manager that closes it; memberships are left by :meth:`leave`.

    Its threads may use it at once. A look at a team waits for those of other threads that came before it and
    complete a publication, each for 0.5 s at most. A heartbeat waits for nobody, except a member's first
    one and one after a gap, which look. It is closed when no thread uses it any more.

    Args:
        teams: the teams directory; `$PI_CODING_AGENT_DIR/teams` or `~/.pi/agent/teams` by default.
        options: as for :class:`pi_team.engine.Engine`: `notice`, `filesystem`, `clock`, `lock_lifetime`,
            `patience`, `interval`, `expiry`.
    """

    def __init__(self, teams: str | os.PathLike[str] | None = None, **options: Unpack[Options]) -> None:
        super().__init__(Engine(teams, **options))
        self._onlookers: dict[str, Observer] = {}

    @property
    def path(self) -> str:
        """The path of the teams directory."""
        return self._engine.path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # A mailbox that was dropped must not keep descriptors until the process ends.
        with contextlib.suppress(Exception):
            self.close()

    # --- messages

    def send(
        self,
        owner: Membership,
        to: str,
        *,
        kind: Literal["request", "note"],
        subject: str,
        body: str,
        parent: str | None = None,
    ) -> Message:
        """Queue a message; it is pending. Refuses as docs/lifecycles.md, "Operations" says."""
        return self._engine.operate(
            owner.team,
            lambda state, _: operations.send(
                state,
                owner,
                to=to,
                kind=kind,
                subject=subject,
                body=body,
                parent=parent,
                now=self._engine.now(),
                new_id=new_id,
            ),
        )

    def notes(self, owner: Membership, *, ids: Collection[str] | None = None) -> tuple[Message, ...]:
        """The member's pending notes, or those of them that were displayed already; they become seen."""
        return self._engine.operate(owner.team, lambda state, _: operations.notes(state, owner, ids=ids))

    def claim(
        self, owner: Membership, *, ready: bool = True, message_id: str | None = None
    ) -> Message | None:
        """The first pending request or result, or the one asked for, claimed; None where there is none.

        Refuses with ALREADY_CLAIMING while a message to the alias is being processed.
        """
        return self._engine.operate(
            owner.team,
            lambda state, _: operations.claim(state, owner, ready=ready, message_id=message_id),
        )

    def release(self, owner: Membership, message_id: str) -> bool:
        """Give a claimed message back, undone; False where it was final already. Refuses with NOT_CLAIMED."""
        return self._engine.operate(owner.team, lambda state, _: operations.release(state, owner, message_id))

    def settle(self, owner: Membership, message_id: str, report: Report) -> bool:
        """Settle a claimed message; False where it was final already.

        Refuses with NOT_CLAIMED and REPORT_INVALID.
        """
        return self._engine.operate(
            owner.team,
            lambda state, _: operations.settle(
                state, owner, message_id, report, now=self._engine.now(), new_id=new_id
            ),
        )

    def sweep(self, owner: Membership) -> int:
        """Interrupt the claims of the dead; how many there were."""
        return self._engine.operate(
            owner.team,
            lambda state, judge: operations.sweep(
                state, owner, judge=judge, now=self._engine.now(), new_id=new_id
            ),
            self._session(owner),
        )

    # --- looks

    def snapshot(self, owner: Membership) -> views.Snapshot:
        """What the member sees: roster, messages from or to it, flow. Refuses with MEMBERSHIP_LOST."""
        version = self._engine.read(owner.team)
        judge, shown = self._seated(owner, lambda seat: seat.display(version.value.members))
        try:
            return views.snapshot(version.value, owner, version.revision, judge=judge, shown=shown)
        except MembershipLost:
            self._unseat(owner)
            raise

    def look(self, team: str) -> views.TeamView:
        """The whole team, for somebody who need not be a member."""
        version = self._engine.read(team)
        observer = self._onlookers.setdefault(team, self._engine.new_observer())
        onlooker = Seat(self._engine.store.open(team), this_process(), observer)
        try:
            judge, shown = onlooker.display(version.value.members)
            return views.look(version.value, version.revision, judge=judge, shown=shown)
        finally:
            onlooker.close()

    def changes(self, team: str) -> Changes:
        """Watches a team for changes of its record; to be closed. Refuses with TEAM_UNKNOWN."""
        self._engine.store.open(team).close()
        return Changes(os.path.join(self._engine.path, team))

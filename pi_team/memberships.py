"""Joining and leaving teams, and what a membership keeps in this process.

A membership that this process holds has a seat (:mod:`pi_team.seats`). Whether it is the member's still is
decided by its token, in the record (docs/lifecycles.md, "Membership"). A thread uses a seat under its lock,
and only while it is the membership's: another thread may have closed it or given it away meanwhile.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, TypeVar

from pi_team.administration import Administration
from pi_team.domain import operations
from pi_team.domain.lifecycles import membership_of
from pi_team.engine import Engine, new_id
from pi_team.errors import (
    AliasAlive,
    MembershipLost,
    OutcomeUnknown,
    PiTeamError,
    TeamMoved,
    TeamUnknown,
)
from pi_team.presence import Observer, Process, process_of, this_process
from pi_team.record.directory import moved
from pi_team.seats import Seat

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_team.domain.model import Judge, Member, Membership, Status, TeamState
    from pi_team.domain.operations import Change, Removal

R = TypeVar("R")

_PERHAPS = (OutcomeUnknown, TeamMoved)
"""What an operation is refused with although it may have taken effect, or take effect later."""
_RENEWED = 1_000
"""Milliseconds after a join from which on a presence was renewed since; half a heartbeat interval."""
_BRIEF_POLL = 0.05
"""Seconds between two tries to join under an alias that another one-shot command holds for the moment."""


def _working_directory() -> str:
    """This process's; where it was removed, what the shell called it."""
    try:
        return os.getcwd()
    except OSError:
        return os.environ.get("PWD") or "?"


class Memberships(Administration):
    """Operations on the members of teams.

    Args:
        engine: applies them.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._seats: dict[Membership, Seat] = {}  # by the pair: after a rename the token is not enough

    def close(self) -> None:
        """Let go of all descriptors. Memberships stay as they are: this is no leaving."""
        for owner in list(self._seats):
            self._unseat(owner)
        self._engine.close()

    def join(
        self,
        team: str,
        alias: str,
        *,
        session: str | None = None,
        cwd: str | None = None,
        process: Process | None = None,
        wait: float = 0.0,
    ) -> Membership:
        """Become the holder of an alias, under a new token.

        Args:
            team: the team.
            alias: the alias; it inherits what is addressed to it.
            session: the session's id; a new UUID by default.
            cwd: its working directory; this process's by default.
            process: the process that is the member; this one by default.
            wait: seconds to wait while another one-shot command has the alias.

        Refuses with NAME_INVALID, TEAM_UNKNOWN, ALIAS_ALIVE and LIMIT_*.
        """
        before = [owner for owner in list(self._seats) if (owner.team, owner.alias) == (team, alias)]
        seat = Seat(self._engine.store.open(team), process or this_process(), self._engine.new_observer())
        try:
            self._engine.leftovers.sweep_team(seat.directory)
            place = _working_directory() if cwd is None else cwd
            membership = self._take_alias(seat, alias, session or new_id(), place, wait)
        except BaseException:
            seat.close()
            raise
        self._seats[membership] = seat
        for owner in before:  # who had the alias until this join took it
            self._unseat(owner)
        return membership

    def _take_alias(self, seat: Seat, alias: str, session: str, cwd: str, wait: float) -> Membership:
        token = new_id()

        def join(state: TeamState, judge: Judge) -> Change[Membership]:
            now = self._engine.clock.wall()
            change = operations.join(
                state,
                alias=alias,
                session=session,
                cwd=cwd,
                pid=seat.process.pid,
                token=token,
                now=int(now * 1_000),
                judge=judge,
                new_id=new_id,
            )
            if change.refusal is None:
                # Before the publication that makes it needed: nobody finds the member without it.
                seat.write_presence(alias, token, "idle", now)
            return change

        until = self._engine.clock.monotonic() + wait
        # Before anybody is judged: without the directory nobody is known to be dead.
        seat.make_presence()
        try:
            while True:
                try:
                    return self._engine.operate(seat.directory.name, join)
                except AliasAlive:
                    # Looked at after the refusal: whoever holds the alias may just have taken it.
                    if self._engine.clock.monotonic() >= until or not self._is_brief(seat, alias):
                        raise
                self._engine.clock.sleep(_BRIEF_POLL)
        except PiTeamError as error:
            # Where it may have taken effect the presence stays, as it does when this process is stopped: the
            # member would be unknown to everybody without it, also once the process has ended.
            if not isinstance(error, _PERHAPS):
                seat.forget(alias, token)
            raise

    def _is_brief(self, seat: Seat, alias: str) -> bool:
        """Whether the alias is free by now, or its holder looks like a one-shot command.

        Such a command does not renew the presence that it wrote when it joined.
        """
        member = self._engine.read(seat.directory.name).value.member(alias)
        if member is None or membership_of(member) != "connected":
            return True
        presence = seat.presence.read(alias).presence
        if presence is None or presence.token != member.token:
            return True
        return presence.seen - member.seen < _RENEWED

    def leave(self, owner: Membership) -> None:
        """Take the member offline, interrupting what it claimed. Refuses with MEMBERSHIP_LOST."""
        try:
            self._engine.operate(
                owner.team,
                lambda state, _: operations.leave(state, owner, now=self._engine.now(), new_id=new_id),
            )
        except (MembershipLost, TeamMoved, TeamUnknown):
            self._vacate(owner)
            raise
        self._vacate(owner)  # and not where the leave was refused: the member is still there then

    def _vacate(self, owner: Membership) -> None:
        def vacate(seat: Seat) -> None:
            seat.forget(owner.alias, owner.token)
            self._unseat(owner)  # before another thread has the seat, and writes the presence anew

        with contextlib.suppress(PiTeamError):
            self._seated(owner, vacate)

    def heartbeat(self, owner: Membership, status: Status) -> None:
        """Say that the member lives; presence only, never the record, never a directory.

        Refuses with MEMBERSHIP_LOST where the first one is not the member's any more, and after a pause in
        which it was swept or replaced; with TEAM_MOVED when the team is gone.
        """
        while True:
            seat = self._seat(owner)
            if not seat.attended or seat.observer.has_gap():
                self._require_current(owner)  # not under the lock: a look may help, and wait for others
            with seat.lock:
                if self._seats.get(owner) is seat:
                    seat.write_presence(owner.alias, owner.token, status, self._engine.clock.wall())
                    seat.attended = True
                    return

    def _require_current(self, owner: Membership) -> None:
        try:
            operations.require_owner(self._engine.read(owner.team).value, owner)
        except MembershipLost:
            self._unseat(owner)
            raise
        except TeamUnknown as error:
            raise moved(owner.team) from error

    def rename_member(
        self, team: str, alias: str, new: str, *, actor: Membership | None = None
    ) -> Membership | None:
        """Give a member another alias; the caller's membership afterwards, or None for a person.

        Refuses with MEMBER_UNKNOWN, MEMBER_ALIVE, ALIAS_EXISTS, NAME_INVALID and MEMBERSHIP_LOST.
        """
        myself = actor if actor is not None and actor.alias == alias else None
        announced = False
        if myself is not None:
            self._seat(myself)  # opened before the locks are held

        def rename(state: TeamState, judge: Judge) -> Change[Membership | None]:
            nonlocal announced
            change = operations.rename_member(
                state, actor, alias, new, judge=judge, now=self._engine.now(), new_id=new_id
            )
            if myself is not None and change.refusal is None:
                announced = True
                self._announce(myself, new)
            return change

        try:
            membership = self._engine.operate(team, rename, self._session(actor))
        except PiTeamError as error:
            # What may have taken effect needs it. What was not announced here may be there rightly: the
            # member has that name, or has been renamed to it.
            if announced and myself is not None and not isinstance(error, _PERHAPS):
                token = myself.token
                with contextlib.suppress(PiTeamError):
                    self._seated(myself, lambda seat: seat.forget(new, token))
            if myself is not None and isinstance(error, MembershipLost):
                self._unseat(myself)
            raise
        if myself is not None and membership is not None:
            self._move_seat(myself, membership)
        return membership

    def _announce(self, owner: Membership, new: str) -> None:
        """Write the member's presence under the alias that it is about to have."""
        now = self._engine.clock.wall()
        self._seated(owner, lambda seat: seat.write_presence(new, owner.token, seat.status(owner.alias), now))

    def _move_seat(self, owner: Membership, renamed: Membership) -> None:
        """Give a member's seat to what it is called now."""

        def move(seat: Seat) -> None:
            seat.forget(owner.alias, owner.token)
            self._seats[renamed] = self._seats.pop(owner)

        with contextlib.suppress(PiTeamError):
            self._seated(owner, move)

    def remove_member(self, team: str, alias: str, *, actor: Membership | None = None) -> Removal:
        """Take an offline or dead member out of the roster; what that settled.

        Refuses with MEMBER_UNKNOWN, MEMBER_ALIVE and MEMBERSHIP_LOST.
        """
        return self._engine.operate(
            team,
            lambda state, judge: operations.remove_member(
                state, actor, alias, judge=judge, now=self._engine.now(), new_id=new_id
            ),
            self._session(actor),
        )

    # --- seats

    def _seated(self, owner: Membership, use: Callable[[Seat], R]) -> R:
        """Use the seat of a membership, held by this thread alone. Raises as :meth:`_seat`."""
        while True:
            seat = self._seat(owner)
            with seat.lock:
                if self._seats.get(owner) is seat:
                    return use(seat)

    def _seat(self, owner: Membership) -> Seat:
        """The seat of a membership, also of one that another process joined (a helper that restarted).

        Raises MembershipLost, RecordUnsafe, StorageError.
        """
        seat = self._seats.get(owner)
        if seat is None:
            member = self._member_of(owner)
            process = _process_of(member)
            try:
                directory = self._engine.store.open(owner.team)
            except TeamUnknown as error:
                raise MembershipLost(f"there is no team {owner.team} any more") from error
            made = Seat(directory, process, self._engine.new_observer())
            seat = self._seats.setdefault(owner, made)
            if seat is not made:
                made.close()  # another thread was faster
            elif member is not None and member.alias == owner.alias:
                # A rename of the member itself whose answer was lost has come true.
                for former in [known for known in list(self._seats) if _is_former(known, owner)]:
                    self._vacate(former)
        return seat

    def _unseat(self, owner: Membership) -> None:
        """Close the seat of a membership where it has one; who waits for it meanwhile looks for another."""
        seat = self._seats.get(owner)
        if seat is not None:
            with seat.lock:
                if self._seats.get(owner) is seat:
                    del self._seats[owner]
                    seat.close()

    def _member_of(self, owner: Membership) -> Member | None:
        """What the record has for a membership's token; None also where that cannot be told now."""
        with contextlib.suppress(PiTeamError):
            return self._engine.read(owner.team).value.member_with_token(owner.token)
        return None

    def _session(self, owner: Membership | None) -> Observer | None:
        """The observer of a member that has heartbeats; None for a person and for a one-shot command."""
        seat = self._seats.get(owner) if owner is not None else None
        return seat.observer if seat is not None and seat.attended else None


def _process_of(member: Member | None) -> Process:
    """The member's process, which need not be this one: of the agent, for its helper."""
    if member is not None:
        with contextlib.suppress(ProcessLookupError):
            return process_of(member.pid)
    return this_process()


def _is_former(other: Membership, owner: Membership) -> bool:
    return other != owner and (other.team, other.token) == (owner.team, owner.token)

"""Becoming a member, coming back as one, and ceasing to be one."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import attrs

from pi_team.domain.lifecycles import membership_of
from pi_team.errors import AliasAlive, OutcomeUnknown, PiTeamError, TeamUnknown
from pi_team.session import entries, wording
from pi_team.session.effects import Watch
from pi_team.session.heartbeats import GONE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_team.domain.model import Member, Membership
    from pi_team.session.context import Context
    from pi_team.session.entries import Entry, Pause
    from pi_team.session.heartbeats import Heartbeats

__all__ = ["Attachment"]


class Attachment:
    """The session's way into a team and out of it.

    Args:
        context: what the parts share.
        heartbeats: begin with each membership.
    """

    def __init__(self, context: Context, heartbeats: Heartbeats) -> None:
        self._context = context
        self._heartbeats = heartbeats
        self._unrestored: Entry | None = None

    # --- in

    def join(self, team: str, alias: str) -> Pause | None:
        """Become a member: paused as a restore that failed was to be. Raises what the mailbox raises."""
        entry = self._unrestored
        pause = None
        if entry is not None and (entry.team, entry.alias) == (team, alias):
            pause = entry.paused
        self._attach(self._take(team, alias), pause)
        return pause

    def _take(self, team: str, alias: str) -> Membership:
        session = self._context.session
        return self._context.mailbox.join(
            team, alias, session=session.id, cwd=session.cwd, process=session.process
        )

    def _attach(self, owner: Membership, pause: Pause | None, turns: int = 0) -> None:
        context = self._context
        self._unrestored = None
        context.own(owner)
        self._heartbeats.begin()
        context.turns = turns
        context.machine.fire("join" if pause is None else "restore")
        if pause is not None:
            context.hold(pause)
        context.stop_at_cap()
        context.remember()
        context.emit(Watch(owner.team))

    def restore(self, value: object, *, goes_on: bool) -> None:
        """Come back as what the host's session kept; nothing where it kept nothing, or another's.

        Args:
            value: the entry, as it was written.
            goes_on: whether only a helper died, and nobody began the session anew.
        """
        if value is None:
            return
        try:
            entry = entries.read(value)
        except entries.UnreadableEntry:
            self._context.notify("warning", wording.UNREADABLE_ENTRY)
            return
        if entry is not None and entry.session == self._context.session.id:
            self._context.kept(value)
            self._unrestored = entry
            self._come_back(entry, turns=entry.turns if goes_on else 0)

    def _come_back(self, entry: Entry, *, turns: int) -> None:
        context = self._context
        team, alias = entry.team, entry.alias
        try:
            member = self._find(entry)
            if member is None:
                self._unrestored = None
                context.notify("warning", wording.gone(team, alias))
                context.remember()
                return
            team, alias = member.team, member.alias
            self._unrestored = attrs.evolve(entry, team=team, alias=alias)
            owner = self._take(team, alias)
        except AliasAlive as error:
            context.notify("error", wording.opened_twice(team, alias, error.message))
            return
        except PiTeamError as error:
            context.notify("error", wording.not_restored(team, alias, error))
            return
        self._attach(owner, entry.paused, turns)
        kept = entry.alias if entry.alias != owner.alias else None
        told = wording.rejoined(owner.team, owner.alias, kept)
        if entry.paused == "explicit":
            told += f" {wording.PAUSED}"  # in one: Pi's terminal shows the last of several
        context.notify("info", told)
        if entry.paused == "recovery":
            context.notify("warning", wording.RECOVERY)

    def _find(self, entry: Entry) -> Member | None:
        """The member that the entry means; others of the same session are those that it left earlier.

        The place tells, under whatever names it is by now. Where no team has it, the entry behind the last
        join was not kept, and the alias tells, in the team that it knew. Where another version kept no
        place, the session's id does: there or, where that team is gone, in another one.
        """
        try:
            here: list[Member] | None = self._own(entry.team, entry)
        except TeamUnknown:
            here = None
        if entry.place is None:
            return next(iter(self._elsewhere(entry) if here is None else here), None)
        for members in (here or [], self._elsewhere(entry)):
            for member in members:
                if entries.place(member.token) == entry.place:
                    return member
        return next((member for member in here or [] if member.alias == entry.alias), None)

    def _elsewhere(self, entry: Entry) -> Iterator[Member]:
        for team in self._context.mailbox.teams():
            if team != entry.team:
                with contextlib.suppress(PiTeamError):  # what cannot be read is not where it can go
                    yield from self._own(team, entry)

    def _own(self, team: str, entry: Entry) -> list[Member]:
        """The members of the entry's session, the one of its alias first."""
        members = [place.member for place in self._context.mailbox.look(team).members]
        mine = [member for member in members if member.session == entry.session]
        return sorted(mine, key=lambda member: member.alias != entry.alias)

    # --- out

    def leave(self, *, asked: bool = False) -> None:
        """Leave, interrupting what is claimed; where that is refused, say so and stay.

        Args:
            asked: a person waits for the answer, which is then told even if it was told before.
        """
        context = self._context
        team = context.owner.team
        try:
            self._leave()
        except PiTeamError as error:
            if asked:
                context.notify("error", wording.trouble(error, f"leave {team}"))
            else:
                context.trouble(error, f"leave {team}")
            return
        self._detach()
        context.notify("info", wording.left(team))

    def _leave(self) -> None:
        mailbox, owner = self._context.mailbox, self._context.owner
        self._heartbeats.beat()  # a leave that is refused leaves a member behind
        with contextlib.suppress(*GONE):
            try:
                mailbox.leave(owner)
            except OutcomeUnknown:
                self._heartbeats.beat()
                mailbox.leave(owner)  # one that took effect makes this one find the membership gone

    def close(self) -> None:
        """Leave as far as possible; what the host's session keeps stays, so that it can come back."""
        context = self._context
        if context.is_joined:
            with contextlib.suppress(PiTeamError):
                self._leave()
            context.own(None)
            context.emit(Watch(None))
        context.machine.fire("close")

    def is_renamed(self) -> bool:
        """Whether the session is a member under another alias, which it goes on under.

        So it is after a rename of its own whose answer was lost: the token in the roster tells. Raises what
        the mailbox raises.
        """
        return self._goes_on_as(self._member())

    def _member(self) -> Member | None:
        """What the roster has for this session's token. Raises what the mailbox raises."""
        owner = self._context.owner
        places = self._context.mailbox.look(owner.team).members
        return next((place.member for place in places if place.member.token == owner.token), None)

    def _goes_on_as(self, member: Member | None) -> bool:
        """Go on under the alias that the roster has, where it is another one; whether it is."""
        context = self._context
        if member is None or member.alias == context.owner.alias:
            return False
        context.rename(attrs.evolve(context.owner, alias=member.alias))
        self._heartbeats.begin()
        self._heartbeats.beat()
        return True

    def lose(self, error: PiTeamError) -> bool:
        """Be no member any more, after the mailbox said so; unless it still is one, or nobody knows.

        A team that somebody moves to rename or delete it, and moves back because a member is alive, looks
        like one that is gone for that moment.

        Returns:
            Whether it was renamed, and goes on under the other alias.
        """
        context = self._context
        team = context.owner.team
        try:
            member = self._member()
            if self._goes_on_as(member):
                return True
            if member is not None and membership_of(member) == "connected":
                return False  # the next poll goes on
        except GONE:
            pass
        except PiTeamError as trouble:
            context.trouble(trouble, f"look for this session in {team}")
            return False  # the next poll finds the same, and looks again
        with contextlib.suppress(PiTeamError):
            context.mailbox.leave(context.owner)  # lets go of what this process kept for it
        self._detach()
        context.notify("error", wording.lost(team, error.message))
        return False

    def _detach(self) -> None:
        context = self._context
        context.machine.fire("detach")
        context.own(None)
        context.remember()
        context.emit(Watch(None))

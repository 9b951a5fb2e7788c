"""A person's `/team` commands. What they show goes into the transcript, never into the model's context."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, Literal

import attrs

from pi_team.errors import (
    MemberAlive,
    MembershipLost,
    MemberUnknown,
    OutcomeUnknown,
    PiTeamError,
    TeamActive,
    TeamUnknown,
)
from pi_team.phrases import plural
from pi_team.session import bounds, shows, wording
from pi_team.session.effects import Confirm, Show
from pi_team.session.heartbeats import GONE
from pi_team.session.usage import COMMANDS, arguments, split, usage_line
from pi_team.text import first_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_team.session.attachment import Attachment
    from pi_team.session.context import Context
    from pi_team.session.events import Call, Command, Confirmed
    from pi_team.session.heartbeats import Heartbeats
    from pi_team.session.reception import Reception
    from pi_team.session.working import Working

_WAKE: Final = (
    "Check in: say in a few lines what you are working on, what is done, and what you wait for. "
    "Start nothing new."
)


@attrs.frozen
class _Question:
    name: str
    call: Call
    act: Callable[[], bool]


class Commands:
    """Does what a person says.

    Args:
        context: what the parts share.
        attachment: the way into the team.
        heartbeats: go on between messages to many.
        reception: what the session does by itself.
        working: what becomes of its work.
    """

    def __init__(
        self,
        context: Context,
        attachment: Attachment,
        heartbeats: Heartbeats,
        reception: Reception,
        working: Working,
    ) -> None:
        self._context = context
        self._attachment = attachment
        self._heartbeats = heartbeats
        self._reception = reception
        self._working = working
        self._question: _Question | None = None
        self._questions = 0

    def run(self, event: Command) -> None:
        """Do a command; it is answered when all that it shows has been shown."""
        if not self._attempt(lambda: self._run(event)):
            self._context.answer(event.call, {})

    def _run(self, event: Command) -> bool:
        """Whether the answer waits for a person."""
        word, rest = split(event.line)
        word = word or "help"
        usage = COMMANDS.get(word)
        if usage is None:
            self._context.notify("error", f"There is no /team {word[:40]}. /team help shows what there is.")
            return False
        found = arguments(usage, rest)
        if found is None:
            self._context.notify("error", f"Usage: {usage_line(word, usage)}")
            return False
        if usage.joined and not self._context.is_joined:
            self._context.notify("error", wording.NOT_JOINED)
            return False
        method: Callable[..., Any] = getattr(self, f"_{word.replace('-', '_')}")
        if word in {"delete", "remove"}:
            return bool(method(event.call, *found))
        method(*found)
        return False

    def _attempt(self, act: Callable[[], bool]) -> bool:
        """Do it and tell of a refusal; whether the answer waits for a person."""
        try:
            return act()
        except PiTeamError as error:
            told = wording.refusal_for_person(error)
            if isinstance(error, MembershipLost) and self._was_renamed():
                told = wording.renamed(self._context.owner.alias)
            self._context.notify("error", told)
            if isinstance(error, GONE):
                self._reception.poll()  # which finds out whether this membership is meant
        return False

    def _was_renamed(self) -> bool:
        """Whether the session goes on under another alias; the next poll looks where none can know."""
        with contextlib.suppress(PiTeamError):
            return self._context.is_joined and self._attachment.is_renamed()
        return False

    def _help(self) -> None:
        rows = [(usage_line(name, usage), usage.says) for name, usage in COMMANDS.items()]
        lines = shows.aligned(rows)
        if not self._context.is_joined:
            lines.append(wording.FIRST_STEPS)
        self._context.emit(Show(shows.entry("help", "A team of agent sessions on this machine", lines)))

    # --- teams

    def _create(self, team: str) -> None:
        self._context.mailbox.create(team)
        self._context.notify(
            "info", f"Team {team} is there. /team join {team} ALIAS makes this session a member."
        )

    def _list(self) -> None:
        teams = self._context.mailbox.teams()
        lines = shows.capped(teams, bounds.ROSTER_ENTRIES) or ["None yet. /team create TEAM makes one."]
        self._context.emit(Show(shows.entry("list", f"{plural(len(teams), 'team')} on this machine", lines)))

    def _rename_team(self, team: str, new: str) -> None:
        self._refuse_own(team, "renamed")
        self._context.mailbox.rename_team(team, new)
        self._context.notify("info", f"Team {team} is called {new} now.")

    def _delete(self, call: Call, team: str) -> bool:
        self._refuse_own(team, "deleted")
        if team not in self._context.mailbox.teams():
            raise TeamUnknown(f"there is no team {team}")
        living = [place.member.alias for place in self._context.mailbox.look(team).members if place.alive]
        if living:
            raise TeamActive(f"{team} has living members: {', '.join(living)}")

        def act() -> bool:
            self._context.mailbox.delete_team(team)
            self._context.notify("info", f"Team {team} is deleted.")
            return False

        return self._ask(
            call, act, f"Delete team {team}?", "Its members, messages and history are removed for good."
        )

    def _refuse_own(self, team: str, what: str) -> None:
        if self._context.is_joined and self._context.owner.team == team:
            raise TeamActive(
                f"this session is in {team}, which cannot be {what} then", hint="/team leave first."
            )

    # --- membership

    def _join(self, team: str, alias: str) -> None:
        context = self._context
        if context.is_joined:
            owner = context.owner
            context.notify("error", f"This session is {owner.alias} in {owner.team}: /team leave first.")
            return
        self._reception.joined()
        pause = self._attachment.join(team, alias)
        context.notify("info", wording.joined(team, alias, pause))
        self._reception.poll()

    def _leave(self) -> None:
        self._working.leave()

    def _members(self) -> None:
        self._context.emit(Show(shows.roster(self._context.mailbox.snapshot(self._context.owner))))

    def _remove(self, call: Call, alias: str) -> bool:
        context = self._context
        owner = context.owner
        if alias == owner.alias:
            context.notify("error", "A session cannot remove itself: /team leave.")
            return False
        places = {place.member.alias: place for place in context.mailbox.snapshot(owner).members}
        if alias not in places:
            raise MemberUnknown(f"{alias!r} is not a member of {owner.team}")
        if places[alias].alive:
            raise MemberAlive(f"{alias} is a living session and cannot be removed")

        def act() -> bool:
            if not context.is_joined or context.owner.team != owner.team:
                context.notify("error", wording.NOT_JOINED)
                return False
            removal = context.mailbox.remove_member(owner.team, alias, actor=context.owner)
            told = f"{removal.refused} refused, {removal.cancelled} cancelled, {removal.discarded} discarded"
            context.notify("info", f"{alias} is no member of {owner.team} any more. Messages: {told}.")
            return False

        message = (
            "Requests to it end as interrupted, requests from it are cancelled, "
            "and notes and results to it are discarded. What was settled stays in the history."
        )
        return self._ask(call, act, f"Remove {alias} from {owner.team}?", message)

    def _rename_member(self, alias: str, new: str) -> None:
        context = self._context
        owner = context.owner
        try:
            membership = context.mailbox.rename_member(owner.team, alias, new, actor=owner)
        except OutcomeUnknown:
            if alias != owner.alias or not self._was_renamed():
                raise
            membership = context.owner
        if alias == owner.alias and membership is not None:
            context.rename(membership)
        context.notify("info", f"{alias} is called {new} now.")

    def _pause(self) -> None:
        context = self._context
        if context.machine.state == "leaving":
            context.notify("info", wording.LEAVING)
            return
        context.hold("explicit")
        context.remember()
        context.notify("info", wording.PAUSED if context.work is None else wording.PAUSING)

    def _resume(self) -> None:
        context = self._context
        if context.machine.state == "leaving":
            context.notify("info", wording.LEAVING)
            return
        was_paused = context.pause is not None
        context.lift()
        context.remember()
        self._reception.poll()  # first: it may find that there is nothing to receive for yet, or any more
        if context.work is not None and context.work.report is not None:
            context.notify("info", wording.RECORDING)
        elif context.is_joined:
            context.notify("info", wording.RESUMED if was_paused else wording.ALREADY_RECEIVING)

    # --- messages

    def _send(self, alias: str, text: str) -> None:
        self._post("request", alias, text)

    def _note(self, alias: str, text: str) -> None:
        self._post("note", alias, text)

    def _post(self, kind: Literal["request", "note"], alias: str, text: str) -> None:
        mailbox, owner = self._context.mailbox, self._context.owner
        message = mailbox.send(owner, alias, kind=kind, subject=first_line(text), body=text)
        self._context.emit(Show(shows.sent(message)))

    def _wake(self, text: str = _WAKE) -> None:
        """A request to every teammate; for whom it could not be queued is said, and why."""
        context = self._context
        snapshot = context.mailbox.snapshot(context.owner)
        others = [place.member.alias for place in snapshot.members if place.member.alias != snapshot.alias]
        queued, refused = [], []
        lost: PiTeamError | None = None
        for number, alias in enumerate(others):
            self._heartbeats.beat()
            try:
                context.mailbox.send(
                    context.owner, alias, kind="request", subject=first_line(text), body=text
                )
                queued.append(alias)
            except GONE as error:
                lost = error
                refused.append(f"not queued for {', '.join(others[number:])}")
                break
            except PiTeamError as error:
                how = "perhaps queued" if isinstance(error, OutcomeUnknown) else "not queued"
                refused.append(f"{how} for {alias}: {wording.refusal_for_person(error)}")
        lines = [f"queued for {', '.join(queued) or 'nobody'}", *shows.capped(refused, bounds.LIST_ENTRIES)]
        context.emit(
            Show(shows.entry("sent", f"Check-in asked of {plural(len(queued), 'teammate')}", lines, text))
        )
        if lost is not None:
            raise lost

    # --- looks

    def _inbox(self) -> None:
        self._context.emit(Show(shows.inbox(self._context.mailbox.snapshot(self._context.owner))))

    def _status(self) -> None:
        context = self._context
        snapshot = context.mailbox.snapshot(context.owner)
        now = context.clock.wall()
        context.emit(Show(shows.status(snapshot, context.doing, context.turns, context.cap, now)))

    # --- questions

    def _ask(self, call: Call, act: Callable[[], bool], title: str, message: str) -> bool:
        if self._question is not None:
            self._context.notify("error", wording.OPEN_QUESTION)
            return False
        self._questions += 1
        self._question = _Question(f"q{self._questions}", call, act)
        self._context.emit(Confirm(self._question.name, title, message))
        return True

    def confirmed(self, event: Confirmed) -> None:
        """Do what was asked about, or not."""
        question = self._question
        if question is None or question.name != event.question:
            return
        self._question = None
        if event.yes:
            self._attempt(question.act)
        else:
            self._context.notify("info", wording.UNCONFIRMED)
        self._context.answer(question.call, {})

"""The controller: one event at a time in, effects out (docs/session.md).

It is used by one thread. It never raises because of what a peer wrote or what the storage refused: that
becomes something to tell a person, or the model that asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_team.limits import AUTOMATIC_TURNS
from pi_team.session.attachment import Attachment
from pi_team.session.commands import Commands
from pi_team.session.completion import complete
from pi_team.session.context import Context
from pi_team.session.events import (
    Command,
    Complete,
    Confirmed,
    NotStarted,
    Poll,
    Readiness,
    Restore,
    Settled,
    Shutdown,
    Started,
    ToolCall,
    Typed,
)
from pi_team.session.heartbeats import Heartbeats
from pi_team.session.reception import Reception
from pi_team.session.reviews import Reviews
from pi_team.session.tools import Tools
from pi_team.session.working import Working

if TYPE_CHECKING:
    from pi_team.clocks import Clock
    from pi_team.mailbox import Mailbox
    from pi_team.session.effects import Effect
    from pi_team.session.entries import Session
    from pi_team.session.events import Event


class Controller:
    """One session's membership.

    Args:
        mailbox: the teams.
        session: the host's session.
        clock: the clocks.
        automatic_turns: turns without a person before reception pauses; 0 for any number.
    """

    def __init__(
        self, mailbox: Mailbox, session: Session, clock: Clock, automatic_turns: int = AUTOMATIC_TURNS
    ) -> None:
        self._context = Context(mailbox, session, clock, automatic_turns)
        self._heartbeats = Heartbeats(self._context)
        self._attachment = Attachment(self._context, self._heartbeats)
        reviews = Reviews(clock)
        self._working = Working(self._context, self._attachment, reviews)
        self._reception = Reception(self._context, self._attachment, self._heartbeats, reviews, self._working)
        self._commands = Commands(
            self._context, self._attachment, self._heartbeats, self._reception, self._working
        )
        self._tools = Tools(self._context, self._attachment)

    @property
    def state(self) -> str:
        """The machine's state."""
        return self._context.machine.state

    @property
    def is_joined(self) -> bool:
        """Whether the session is a member, and wants to be polled."""
        return self._context.is_joined

    def handle(self, event: Event) -> list[Effect]:
        """What an event makes the session do; after Shutdown, nothing any more."""
        if self._context.machine.state != "closed":
            self._dispatch(event)
            self._heartbeats.beat()
        return self._context.drain()

    def _dispatch(self, event: Event) -> None:
        match event:
            case Poll():
                self._reception.poll()
            case Restore():
                self._restore(event)
            case Command():
                self._commands.run(event)
            case Confirmed():
                self._commands.confirmed(event)
            case Complete():
                items = complete(self._context, event.prefix)
                self._context.answer(event.call, {"items": items})
            case ToolCall():
                self._tools.run(event)
            case Readiness():
                self._reception.readiness(event)
            case Started():
                self._working.started(event)
            case NotStarted():
                self._working.not_started(event)
            case Typed():
                self._working.typed(event)
            case Settled():
                self._working.settled(event)
                self._reception.poll()
            case Shutdown():
                self._working.close()

    def _restore(self, event: Restore) -> None:
        if not self._context.is_joined:
            self._reception.joined()
            self._attachment.restore(event.entry, goes_on=event.goes_on)
            self._reception.poll()

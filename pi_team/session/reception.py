"""What the session does by itself: look around, show notes, claim, look after its own requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_team.errors import AlreadyClaiming, OutcomeUnknown, PiTeamError
from pi_team.session import deliveries, shows
from pi_team.session.context import Counts, Work
from pi_team.session.effects import AskReadiness, Show
from pi_team.session.heartbeats import GONE

if TYPE_CHECKING:
    from pi_team.domain.model import Message
    from pi_team.domain.views import Snapshot
    from pi_team.session.attachment import Attachment
    from pi_team.session.context import Context
    from pi_team.session.events import Readiness
    from pi_team.session.heartbeats import Heartbeats
    from pi_team.session.reviews import Reviews
    from pi_team.session.working import Working


class Reception:
    """The session as a recipient.

    Args:
        context: what the parts share.
        attachment: the way out of the team.
        heartbeats: go on between the parts of a poll.
        reviews: says when one is due.
        working: what becomes of what is claimed.
    """

    def __init__(
        self,
        context: Context,
        attachment: Attachment,
        heartbeats: Heartbeats,
        reviews: Reviews,
        working: Working,
    ) -> None:
        self._context = context
        self._attachment = attachment
        self._heartbeats = heartbeats
        self._reviews = reviews
        self._working = working
        self._asked = False
        self._review_due = False
        self._deliveries = 0
        self._taken_notes: dict[str, Message] = {}

    # --- looking

    def poll(self) -> None:
        """Look at the team once, and do what is to be done; no transaction where there is nothing."""
        if not self._context.is_joined:
            return
        self._heartbeats.beat()
        snapshot = self._look()
        if snapshot is None:
            return
        for part in (self._sweep, self._show_notes, self._give_back_what_nobody_works_on):
            part(snapshot)
            self._heartbeats.beat()
        self._working.go_on()
        if self._context.is_joined:
            self._tell(snapshot)
            self._ask(snapshot)

    def joined(self) -> None:
        """Begin anew, as a member."""
        self._asked = False
        self._review_due = False
        self._taken_notes.clear()

    def _look(self) -> Snapshot | None:
        context = self._context
        try:
            return context.mailbox.snapshot(context.owner)
        except GONE as error:
            self._attachment.lose(error)
        except PiTeamError as error:
            context.trouble(error, "look at the team")
        return None

    def _tell(self, snapshot: Snapshot) -> None:
        mine = [message for message in snapshot.messages if message.recipient == snapshot.alias]
        queued = sum(message.state == "pending" for message in mine)
        online = sum(
            entry.displayed != "offline" for entry in snapshot.members if entry.member.alias != snapshot.alias
        )
        awaited = len(self._reviews.open_requests(snapshot))
        self._context.counts = Counts(online, queued, awaited)

    def _sweep(self, snapshot: Snapshot) -> None:
        if not snapshot.sweepable:
            return
        context = self._context
        try:
            context.mailbox.sweep(context.owner)
        except GONE:
            return
        except PiTeamError as error:
            context.trouble(error, "end the work of a session that died")

    def _show_notes(self, snapshot: Snapshot) -> None:
        """Show pending notes, and those that an earlier call has taken without being able to say so."""
        context = self._context
        seen = [message for message in snapshot.messages if message.id in self._taken_notes]
        for note in seen:
            if note.state == "seen":
                context.emit(Show(shows.note(note)))
        self._taken_notes.clear()
        pending = [
            message
            for message in snapshot.messages
            if (message.recipient, message.kind, message.state) == (snapshot.alias, "note", "pending")
        ]
        if not pending:
            return
        try:
            for note in context.mailbox.notes(context.owner):
                context.emit(Show(shows.note(note)))
        except OutcomeUnknown as error:
            self._taken_notes = {note.id: note for note in pending}
            context.trouble(error, "take the notes")
        except GONE:
            return
        except PiTeamError as error:
            context.trouble(error, "take the notes")

    def _give_back_what_nobody_works_on(self, snapshot: Snapshot) -> None:
        """Release a claim that this session holds without working on it: the answer to it was lost."""
        context = self._context
        if context.work is not None or self._asked:
            return
        own = [
            message
            for message in snapshot.messages
            if message.state == "processing" and message.claim == context.owner.token
        ]
        for message in own:
            self._working.release(message)
        if own or not context.endangered:
            return
        if context.machine.state != "receiving" or not _claimable(snapshot):  # else it may claim at once
            self._be_out_of_danger()

    def _be_out_of_danger(self) -> None:
        """Nothing is claimed, nor about to be: a restored session need not come back paused for it."""
        self._context.endangered = False
        self._context.remember()

    # --- claiming

    def _ask(self, snapshot: Snapshot) -> None:
        context = self._context
        if context.machine.state != "receiving" or self._asked:
            return
        claimable = _claimable(snapshot)
        self._review_due = not claimable and self._reviews.is_due(snapshot)
        if claimable or self._review_due:
            self._asked = True
            context.emit(AskReadiness())

    def readiness(self, readiness: Readiness) -> None:
        """Claim and deliver, if the host is ready.

        Before a claim the host has to have written down that a restored session comes back paused. It is
        asked again after that: its answer says that it has, and once more that it is ready.
        """
        context = self._context
        if not self._asked:
            return
        self._asked = False
        if context.machine.state != "receiving":
            return
        if not readiness.ready:
            if not self._review_due:  # asked about a message, when none was being processed
                self._be_out_of_danger()
            return
        snapshot = self._look()
        if snapshot is None or context.machine.state != "receiving":
            return
        self._tell(snapshot)
        if not _claimable(snapshot):
            self._review(snapshot)
        elif context.endangered:
            self._claim(snapshot)
        else:
            context.endangered = True
            context.remember()
            self._asked = True
            context.emit(AskReadiness())

    def _claim(self, snapshot: Snapshot) -> None:
        context = self._context
        try:
            message = context.mailbox.claim(context.owner)
        except AlreadyClaiming:
            return  # the next poll sweeps it or gives it back
        except GONE as error:
            self._attachment.lose(error)
            return
        except PiTeamError as error:
            context.trouble(error, "take the next message")
            return
        if message is None or message.kind == "note":
            return
        if message.kind == "request":
            text = deliveries.request_text(message, context.owner)
        else:
            asked = [request for request in snapshot.messages if request.id == message.parent_id]
            text = deliveries.result_text(message, next(iter(asked), None), context.owner)
        work = Work(self._next_delivery(), message.kind, message)
        self._working.deliver(work, text, deliveries.details(message, context.owner))

    def _review(self, snapshot: Snapshot) -> None:
        context = self._context
        if not self._review_due:
            return
        self._review_due = False
        own, now = self._reviews.open_requests(snapshot), context.clock.wall()
        if own:
            self._working.deliver(
                Work(self._next_delivery(), "review", None),
                deliveries.review_text(context.owner, own, now),
                deliveries.review_details(context.owner, own, now),
            )

    def _next_delivery(self) -> str:
        self._deliveries += 1
        return f"d{self._deliveries}"


def _claimable(snapshot: Snapshot) -> bool:
    """Whether a request or a result waits for the member, and none is being processed under its alias."""
    mine = [
        message
        for message in snapshot.messages
        if message.recipient == snapshot.alias and message.kind != "note"
    ]
    states = {message.state for message in mine}
    return "pending" in states and "processing" not in states

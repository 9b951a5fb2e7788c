"""What the session does by itself: look, show notes, claim, deliver, settle, look after its requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_team.errors import AlreadyClaiming, NotClaimed, OutcomeUnknown, PiTeamError
from pi_team.limits import HEARTBEAT_INTERVAL
from pi_team.session import deliveries, reports, shows, wording
from pi_team.session.attachment import GONE
from pi_team.session.context import Counts, Work
from pi_team.session.effects import AskReadiness, Deliver, Show
from pi_team.session.reviews import Reviews

if TYPE_CHECKING:
    from pi_team.domain.model import Message, Report, Status
    from pi_team.domain.views import Snapshot
    from pi_team.session.attachment import Attachment
    from pi_team.session.context import Context
    from pi_team.session.events import NotStarted, Readiness, Settled, Started, Typed


class Reception:
    """The session as a recipient.

    Args:
        context: what the parts share.
        attachment: the way out of the team.
    """

    def __init__(self, context: Context, attachment: Attachment) -> None:
        self._context = context
        self._attachment = attachment
        self._reviews = Reviews(context.clock)
        self._asked = False
        self._review_due = False
        self._deliveries = 0
        self._beat_at: tuple[float, Status] = (-HEARTBEAT_INTERVAL, "idle")
        self._taken_notes: dict[str, Message] = {}

    # --- looking

    def poll(self) -> None:
        """Look at the team once, and do what is to be done; no transaction where there is nothing."""
        if not self._context.is_joined:
            return
        self.beat()
        snapshot = self._look()
        if snapshot is None:
            return
        self._sweep(snapshot)
        self._show_notes(snapshot)
        self._give_back_what_nobody_works_on(snapshot)
        self._go_on()
        if self._context.is_joined:
            self._tell(snapshot)
            self._ask(snapshot)

    def beat(self) -> None:
        """A heartbeat where one is due, or where the status has changed."""
        context = self._context
        if not context.is_joined:
            return
        now, status = context.clock.running(), context.status
        last, shown = self._beat_at
        if now - last < HEARTBEAT_INTERVAL and status == shown:
            return
        try:
            context.mailbox.heartbeat(context.owner, status)
            self._beat_at = (now, status)
        except GONE:
            return  # the look that follows tells why
        except PiTeamError as error:
            context.trouble(error, "say that this session is alive")

    def joined(self) -> None:
        """Begin anew, as a member."""
        self._asked = False
        self._review_due = False
        self._beat_at = (-HEARTBEAT_INTERVAL, "idle")
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
            self._release(message)
        if not own and context.endangered:
            context.endangered = False
            context.remember()

    def _release(self, message: Message) -> bool:
        """Give a claimed message back; whether the record says by now that it is not claimed."""
        context = self._context
        try:
            context.mailbox.release(context.owner, message.id)
        except NotClaimed:
            return True
        except GONE:
            return False
        except PiTeamError as error:
            context.trouble(error, "give a message back")
            return False
        return True

    def _go_on(self) -> None:
        """Try again what could not be recorded; leave where that is all that remains."""
        work = self._context.work
        if work is not None and work.report is not None:
            self._record(work, work.report)
        elif work is None and self._context.machine.state == "leaving":
            self._attachment.leave()

    # --- claiming

    def _ask(self, snapshot: Snapshot) -> None:
        context = self._context
        if context.machine.state != "receiving" or self._asked:
            return
        self._review_due = not _claimable(snapshot) and self._reviews.is_due(snapshot)
        if _claimable(snapshot) or self._review_due:
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
        if context.machine.state != "receiving" or not readiness.ready:
            return
        snapshot = self._look()
        if snapshot is None or context.machine.state != "receiving":
            return
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
        self._deliver(work, text, deliveries.details(message, context.owner))

    def _review(self, snapshot: Snapshot) -> None:
        context = self._context
        if not self._review_due:
            return
        self._review_due = False
        own, now = self._reviews.open_requests(snapshot), context.clock.wall()
        if own:
            self._deliver(
                Work(self._next_delivery(), "review", None),
                deliveries.review_text(context.owner, own, now),
                deliveries.review_details(context.owner, own, now),
            )

    def _next_delivery(self) -> str:
        self._deliveries += 1
        return f"d{self._deliveries}"

    def _deliver(self, work: Work, text: str, details: dict[str, object]) -> None:
        context = self._context
        context.work = work
        if work.message is not None:
            context.counts.queued -= 1
        context.machine.fire("work")
        context.emit(Deliver(work.delivery, work.kind, text, details))

    def started(self, event: Started) -> None:
        """The turn runs; it counts as an automatic one."""
        work = self._context.work
        if work is None or work.delivery != event.delivery or work.started:
            return
        work.started = True
        self._context.turns += 1
        if work.message is None:
            self._reviews.began()
        if work.overtaken is not None:
            self._take_over(work, work.overtaken)

    def not_started(self, event: NotStarted) -> None:
        """The host could not start the turn: the claim is given back."""
        work = self._context.work
        if work is None or work.delivery != event.delivery or work.started:
            return
        released = work.message is None or self._release(work.message)
        self._finish(unclaimed=released)

    # --- settling

    def typed(self, event: Typed) -> None:
        """A person is there: the count of turns begins anew, and team work is theirs from here on."""
        context = self._context
        context.turns = 0
        if context.pause == "budget":
            context.lift()
        work = context.work
        if work is None or work.report is not None:
            return
        if work.started:
            self._take_over(work, event.files)
        else:
            work.overtaken = event.files

    def _take_over(self, work: Work, files: tuple[str, ...]) -> None:
        self._context.turns = 0
        self._context.hold("explicit")
        self._context.notify("warning", wording.TAKEOVER)
        self._record(work, reports.of_takeover(files))

    def settled(self, event: Settled) -> None:
        """The agent's run is over: report the work, if it was work of the team."""
        context = self._context
        work = context.work
        if work is not None and work.started and work.report is None:
            if event.stop == "aborted":
                context.hold("explicit")
                context.notify("warning", wording.STOPPED)
            self._record(work, reports.of_turn(event))
        self.poll()

    def _record(self, work: Work, report: Report) -> None:
        """Settle durably; where that fails, hold the report, pause, and try again with each poll."""
        context = self._context
        again = work.report is not None
        work.report = report
        try:
            on_time = work.message is None or context.mailbox.settle(context.owner, work.message.id, report)
        except NotClaimed:
            on_time = False
        except GONE as error:
            self._attachment.lose(error)
            return
        except PiTeamError as error:
            if not again:
                context.hold("recovery")
                context.notify("error", wording.unrecorded(error))
            return
        if not on_time and not again:
            context.notify("warning", wording.LATE)
        elif again and context.pause == "recovery":
            context.notify("info", wording.RECORDED)
        self._finish(unclaimed=True)

    def _finish(self, *, unclaimed: bool) -> None:
        """The work is over. What may still be claimed is given back by a later poll."""
        context = self._context
        context.work = None
        context.endangered = not unclaimed
        if context.machine.state == "leaving":
            self._attachment.leave()
            return
        if context.is_exhausted and context.pause is None:
            context.hold("budget")
            context.notify("warning", wording.exhausted(context.turns))
        context.machine.fire("finish" if context.pause is None else "rest")
        context.remember()

    # --- what a person's commands ask for

    def leave(self) -> None:
        """Leave: at once, or after work that is to be reported first; a second time at once."""
        context = self._context
        if (
            context.machine.state == "working"
            and context.work is not None
            and context.work.message is not None
        ):
            context.machine.fire("leave")
            context.notify("info", wording.LEAVING)
        else:
            self._attachment.leave()


def _claimable(snapshot: Snapshot) -> bool:
    """Whether a request or a result waits for the member, and none is being processed under its alias."""
    mine = [
        message
        for message in snapshot.messages
        if message.recipient == snapshot.alias and message.kind != "note"
    ]
    states = {message.state for message in mine}
    return "pending" in states and "processing" not in states

"""From a delivery to its settlement: what becomes of the session's work, however its turn ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_team.errors import NotClaimed, PiTeamError
from pi_team.session import reports, wording
from pi_team.session.effects import Deliver
from pi_team.session.heartbeats import GONE

if TYPE_CHECKING:
    from pi_team.domain.model import Message, Report
    from pi_team.session.attachment import Attachment
    from pi_team.session.context import Context, Work
    from pi_team.session.events import NotStarted, Settled, Started, Typed
    from pi_team.session.reviews import Reviews


class Working:
    """The session at work.

    Args:
        context: what the parts share.
        attachment: the way out of the team.
        reviews: is told of each that began.
    """

    def __init__(self, context: Context, attachment: Attachment, reviews: Reviews) -> None:
        self._context = context
        self._attachment = attachment
        self._reviews = reviews

    def deliver(self, work: Work, text: str, details: dict[str, object]) -> None:
        """Ask the host to start a turn on what was claimed, or on a review."""
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
            self._context.remember()  # no claim tells another helper of this turn
        if work.overtaken is not None:
            self._take_over(work, work.overtaken)

    def not_started(self, event: NotStarted) -> None:
        """The host could not start the turn: the claim is given back."""
        work = self._context.work
        if work is None or work.delivery != event.delivery or work.started:
            return
        released = work.message is None or self.release(work.message)
        self._finish(unclaimed=released)

    def release(self, message: Message) -> bool:
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

    # --- settling

    def typed(self, event: Typed) -> None:
        """A person is there: the count of turns begins anew, and team work is theirs from here on."""
        context = self._context
        context.turns = 0
        if context.pause == "budget":
            context.lift()
        if context.is_joined:
            context.remember()
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
        self._context.notify("warning", wording.taken_over(work.kind, self._context.machine.state))
        self._record(work, reports.of_takeover(files))

    def settled(self, event: Settled) -> None:
        """The agent's run is over: report the work, if it was work of the team."""
        context = self._context
        work = context.work
        if work is not None and work.started and work.report is None:
            if event.stop == "aborted":
                context.hold("explicit")
                context.notify("warning", wording.stopped(work.kind, context.machine.state))
            self._record(work, reports.of_turn(event))

    def go_on(self) -> None:
        """Try again what could not be recorded; leave where that is all that remains."""
        work = self._context.work
        if work is not None and work.report is not None:
            self._record(work, work.report)
        elif work is None and self._context.machine.state == "leaving":
            self._attachment.leave()

    def _record(self, work: Work, report: Report) -> None:
        """Settle durably; where that fails, hold the report, pause, and try again with each poll."""
        context = self._context
        again = work.report is not None
        work.report = report
        try:
            # A retry that comes too late finds, as a rule, what the first try has recorded after all.
            on_time = work.message is None or context.mailbox.settle(context.owner, work.message.id, report)
            on_time = on_time or again
        except NotClaimed:
            on_time = False
        except GONE as error:
            self._attachment.lose(error)
            return
        except PiTeamError as error:
            if not again:
                context.hold("recovery")
                context.notify("error", wording.unrecorded(error, context.machine.state))
            return
        if not on_time:
            context.notify("warning", wording.LATE)
        elif again and context.pause == "recovery" and context.machine.state != "leaving":
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
        context.stop_at_cap()
        context.machine.fire("finish" if context.pause is None else "rest")
        context.remember()

    def close(self) -> None:
        """The host's session ends: what a turn has come to and could not be recorded gets a last try."""
        if self._context.is_joined:
            self._last_try()
        self._attachment.close()

    def _last_try(self) -> None:
        """Record a report that is held, before leaving would interrupt its message."""
        work = self._context.work
        if work is not None and work.report is not None:
            self._record(work, work.report)

    # --- what a person's commands ask for

    def leave(self) -> None:
        """Leave: at once, or after work that is to be reported first; a second time at once."""
        context = self._context
        work = context.work
        if context.machine.state == "working" and work is not None and work.message is not None:
            context.machine.fire("leave")
            context.notify("info", wording.LEAVING)
            return
        self._last_try()
        if context.is_joined:  # a leave that waited for the work may have come true with it
            self._attachment.leave(asked=True)

"""`pi-team work`: a member that answers each request with a command."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from pi_team.cli.answering import answer
from pi_team.cli.attendance import Attendance
from pi_team.cli.objects import message_object
from pi_team.cli.one_shot import joined
from pi_team.cli.parameters import json_option, limit_option, member_argument, team_argument
from pi_team.cli.signals import shielded
from pi_team.errors import CommandNotFound
from pi_team.mailbox import Mailbox
from pi_team.phrases import clock_time
from pi_team.text import first_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pi_team.cli.output import Output
    from pi_team.domain.model import Membership, Message

__all__ = ["work"]


def _files(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


@click.command(
    short_help="Be a member that answers requests with a command.",
    options_metavar="[OPTIONS]",
)
@team_argument
@member_argument
@click.argument("command", metavar="-- CMD...", nargs=-1, required=True, shell_complete=_files)
@click.option("--once", is_flag=True, help="Leave after one request.")
@limit_option
@json_option
@click.pass_obj
def work(
    output: Output, *, team: str, alias: str, command: tuple[str, ...], once: bool, timeout: float | None
) -> None:
    """Join TEAM as ALIAS and answer each request with CMD, until Ctrl-C or SIGTERM.

    CMD gets the request as a JSON object on standard input, and PI_TEAM_TEAM, PI_TEAM_ALIAS, PI_TEAM_ID
    and PI_TEAM_FROM in its environment. Exit status 0 settles the request as completed, with what CMD
    printed; any other as failed, with the end of its standard error. Nothing of a peer's text is in the
    command line or the environment. Notes are printed.

    \b
    pi-team work crew coder -- jq -r .body
    """  # noqa: D301 - click's mark for a block to leave as it is, is the character itself
    if shutil.which(command[0]) is None:
        raise CommandNotFound(f'there is no program "{command[0]}"')
    mailbox = Mailbox(notice=output.remark)
    narrator = Narrator(output)
    try:
        with joined(mailbox, output, team, alias) as owner:
            narrator.joined(owner)
            Worker(mailbox, narrator, owner, command, timeout).run(once=once)
    finally:
        narrator.left()


class Narrator:
    """Tells what a worker does: a line each for people and pipes, an event object each with `--json`."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._team = ""

    def say(self, text: str, style: str = "", **event: object) -> None:
        """One thing that happened."""
        self._output.line(f"{clock_time(time.time() * 1000)}  {text}", style)
        self._output.json(event)

    def joined(self, owner: Membership) -> None:
        """The worker is a member."""
        self._team = owner.team
        self.say(
            f"joined {owner.team} as {owner.alias}; Ctrl-C leaves",
            event="joined",
            team=owner.team,
            alias=owner.alias,
        )

    def left(self) -> None:
        """The worker is no member any more, if it ever was one."""
        if self._team:
            self.say(f"left {self._team}", event="left", team=self._team)

    def came(self, message: Message) -> None:
        """A request was claimed, or a note shown."""
        text = f"{message.kind} from {message.sender}: {message.subject}"
        if message.kind == "note" and message.body.strip() != message.subject:
            text += f" | {message.body}"
        self.say(text, "bold", event=message.kind, message=message_object(message))


class Worker:
    """The loop of `pi-team work`.

    Args:
        mailbox: the teams.
        narrator: who tells of it.
        owner: the membership.
        command: what answers.
        timeout: seconds for each request.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        narrator: Narrator,
        owner: Membership,
        command: Sequence[str],
        timeout: float | None,
    ) -> None:
        self._mailbox = mailbox
        self._narrator = narrator
        self._owner = owner
        self._command = command
        self._timeout = timeout
        self._attendance = Attendance(mailbox, owner, "idle")

    def run(self, *, once: bool) -> None:
        """Answer requests as they come; one, or until the process is told to stop."""
        with self._mailbox.changes(self._owner.team) as changes:
            while True:
                request = self._claim()
                if request is None:
                    changes.wait(self._attendance.rest)
                    self._attendance.keep()
                    continue
                self._answer(request)
                if once:
                    return

    def _claim(self) -> Message | None:
        """Look around once, and claim the first request that waits; a result that waits is left alone."""
        with shielded():
            for message in self._look_around():
                if (message.kind, message.state) == ("request", "pending"):
                    return self._mailbox.claim(self._owner, message_id=message.id)
        return None

    def _look_around(self) -> Sequence[Message]:
        """Sweep after a dead session and show notes where there are any; the messages addressed to me."""
        snapshot = self._mailbox.snapshot(self._owner)
        if snapshot.sweepable:
            self._mailbox.sweep(self._owner)
        mine = [message for message in snapshot.messages if message.recipient == self._owner.alias]
        notes = [message for message in mine if (message.kind, message.state) == ("note", "pending")]
        if notes:
            for note in notes:
                self._narrator.came(note)
            self._mailbox.notes(self._owner, ids={note.id for note in notes})
        return mine

    def _answer(self, request: Message) -> None:
        began = time.monotonic()
        self._narrator.came(request)
        self._attendance.show("busy")
        report = answer(
            self._command, request, self._owner, timeout=self._timeout, meanwhile=self._stay_present
        )
        with shielded():
            settled = self._mailbox.settle(self._owner, request.id, report)
        self._attendance.show("idle")
        seconds = time.monotonic() - began
        said = f"{report.outcome} after {seconds:.1f} s: {first_line(report.body) or 'no output'}"
        self._narrator.say(
            said if settled else f"{said} (too late: it was settled already)",
            event="settled",
            id=request.id,
            outcome=report.outcome,
            recorded=settled,
            seconds=round(seconds, 3),
        )

    def _stay_present(self) -> float:
        """Heartbeat and notes while a command runs; seconds until the next."""
        if self._attendance.keep():
            with shielded():
                self._look_around()
        return self._attendance.rest

"""`pi-team ask` and `wait`: a request, and its one result."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

import click

from pi_team import limits
from pi_team.cli.attendance import Attendance
from pi_team.cli.messages import TAKEN, message_options, post
from pi_team.cli.objects import message_object
from pi_team.cli.one_shot import joined, text_of
from pi_team.cli.parameters import as_option, json_option, request_argument, team_argument, timeout_option
from pi_team.cli.selection import own_request
from pi_team.cli.signals import Stopped, shielded
from pi_team.errors import TimedOut
from pi_team.mailbox import Mailbox

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pi_team.cli.output import Output
    from pi_team.domain.model import Membership, Message

__all__ = ["ask", "wait"]

_EXIT_STATUS: Final = {"completed": 0, "failed": 3, "interrupted": 4}


@click.command(short_help="Queue a request and wait for its result.")
@message_options
@timeout_option
@json_option
@click.pass_obj
def ask(
    output: Output,
    *,
    team: str,
    alias: str,
    text: str,
    me: str,
    subject: str | None,
    parent: str | None,
    timeout: float | None,
) -> int:
    """Queue a request for ALIAS in TEAM, wait for its result, print it and take it.

    TEXT is the request; `-` reads it from standard input. Exit status: 0 completed, 3 failed,
    4 interrupted, 5 timed out. After a timeout or Ctrl-C the request stays queued; `pi-team wait`
    waits for it again.
    """
    mailbox = Mailbox(notice=output.remark)
    text = text_of(text)
    with joined(mailbox, output, team, me, wait=limits.WRITE_PATIENCE) as owner:
        with shielded():
            request = post(mailbox, owner, alias, text, kind="request", subject=subject, parent=parent)
            output.remark(f"queued as {request.id}; waiting for its result")
        result = _await_result(mailbox, output, owner, request.id, timeout=timeout)
    return _show(output, result)


@click.command(short_help="Wait for the result of a request asked earlier.")
@team_argument
@request_argument
@as_option
@timeout_option
@json_option
@click.pass_obj
def wait(output: Output, *, team: str, identifier: str, me: str, timeout: float | None) -> int:
    """Wait for the result of the request ID that you asked in TEAM, print it and take it.

    The beginning of the id will do. A result that was taken before is printed again. The exit status
    is that of `ask`.
    """
    mailbox = Mailbox(notice=output.remark)
    view = mailbox.look(team)
    request = own_request(view.messages, identifier, me)
    result = _ending_of(view.messages, request.id)
    if result is None or result.state == "pending":
        with joined(mailbox, output, team, me, wait=limits.WRITE_PATIENCE) as owner:
            result = _await_result(mailbox, output, owner, request.id, timeout=timeout)
    return _show(output, result)


def _await_result(
    mailbox: Mailbox, output: Output, owner: Membership, request_id: str, *, timeout: float | None
) -> Message:
    """Wait as a present member until the result of the request is there, and take it.

    Raises:
        TimedOut: it did not come in time.
    """
    later = f"`pi-team wait {owner.team} {request_id} --as {owner.alias}`"
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    try:
        attendance = Attendance(mailbox, owner, "busy")
        with mailbox.changes(owner.team) as changes:
            while (result := _take_result(mailbox, owner, request_id)) is None:
                rest = deadline - time.monotonic()
                if rest <= 0:
                    raise TimedOut(
                        f"no result within {timeout:g} s; the request stays queued",
                        hint=f"{later} waits for it again.",
                    )
                changes.wait(min(rest, attendance.rest))
                attendance.keep()
    except Stopped:
        output.remark(f"the request stays queued; {later} waits for its result")
        raise
    return result


def _take_result(mailbox: Mailbox, owner: Membership, request_id: str) -> Message | None:
    """How the request ended, if it has; claims and settles its result where that was not done before."""
    with shielded():
        snapshot = mailbox.snapshot(owner)
        if snapshot.sweepable:
            mailbox.sweep(owner)
            snapshot = mailbox.snapshot(owner)
        ending = _ending_of(snapshot.messages, request_id)
        if ending is None or ending.state != "pending":
            return ending
        if mailbox.claim(owner, message_id=ending.id):
            mailbox.settle(owner, ending.id, TAKEN)
        return _ending_of(mailbox.snapshot(owner).messages, request_id)


def _ending_of(messages: Iterable[Message], request_id: str) -> Message | None:
    """The result of a request; the request itself where it was cancelled, so that none will ever come."""
    cancelled = None
    for message in messages:
        if message.kind == "result" and message.parent_id == request_id:
            return message
        if message.id == request_id and message.state == "interrupted":
            cancelled = message
    return cancelled


def _show(output: Output, ending: Message) -> int:
    """Print how a request ended; the exit status that says it."""
    output.json(message_object(ending))
    if ending.report is None:
        output.remark(f"the request was cancelled: {ending.sender} was removed after asking")
        return _EXIT_STATUS["interrupted"]
    if ending.body:
        output.block(ending.body)
    if ending.report.outcome != "completed":
        output.remark(f"{ending.sender}: {ending.report.outcome}")
    for path in ending.report.files:
        output.remark(f"changed: {path}")
    return _EXIT_STATUS[ending.report.outcome]

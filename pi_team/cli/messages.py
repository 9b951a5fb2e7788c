"""`pi-team send` and `inbox`: messages by a member of the moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import attrs
import click

from pi_team import limits
from pi_team.cli.display import message_block
from pi_team.cli.objects import message_object, messages_look
from pi_team.cli.one_shot import joined, text_of
from pi_team.cli.parameters import alias_argument, as_option, json_option, reply_option, team_argument
from pi_team.cli.selection import parent_id, require_member
from pi_team.cli.signals import shielded
from pi_team.domain.model import Report
from pi_team.mailbox import Mailbox
from pi_team.phrases import plural
from pi_team.teams import check_name
from pi_team.text import first_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_team.cli.output import Output
    from pi_team.domain.model import Membership, Message
    from pi_team.domain.views import TeamView

__all__ = ["TAKEN", "inbox", "message_options", "post", "send"]

TAKEN: Final = Report("completed", "")
"""What a person's taking of a result settles it with."""

_Function = TypeVar("_Function", bound="Callable[..., Any]")


def message_options(command: _Function) -> _Function:
    """What `send` and `ask` have in common: TEAM ALIAS TEXT --as --subject --reply-to."""
    subject = click.option(
        "--subject", metavar="TEXT", help="By default the first line of TEXT that is not blank."
    )
    for decorate in (reply_option, subject, as_option, click.argument("text"), alias_argument, team_argument):
        command = decorate(command)
    return command


@click.command(short_help="Queue a request or a note for a member.")
@message_options
@click.option("--note", is_flag=True, help="Send a note: shown to the recipient, and nothing to be done.")
@json_option
@click.pass_obj
def send(
    output: Output,
    *,
    team: str,
    alias: str,
    text: str,
    me: str,
    subject: str | None,
    parent: str | None,
    note: bool,
) -> None:
    """Queue a request (or a note) for ALIAS in TEAM and print its id.

    TEXT is the message; `-` reads it from standard input. A recipient that is offline gets it when it
    joins again. `pi-team wait TEAM ID` waits for the result of a request.
    """
    mailbox = Mailbox(notice=output.remark)
    text = text_of(text)
    with shielded(), joined(mailbox, output, team, me, wait=limits.WRITE_PATIENCE) as owner:
        message = post(
            mailbox, owner, alias, text, kind="note" if note else "request", subject=subject, parent=parent
        )
        output.line(message.id)
        output.json(message_object(message))
        _remark_on_recipient(output, mailbox.look(team), alias)


def post(
    mailbox: Mailbox,
    owner: Membership,
    recipient: str,
    text: str,
    *,
    kind: Literal["request", "note"],
    subject: str | None,
    parent: str | None,
) -> Message:
    """Queue one message; the parent may be the beginning of an id."""
    with shielded():
        if parent is not None:
            parent = parent_id(mailbox.look(owner.team).messages, parent)
        return mailbox.send(
            owner,
            recipient,
            kind=kind,
            subject=first_line(text) if subject is None else subject,
            body=text,
            parent=parent,
        )


def _remark_on_recipient(output: Output, view: TeamView, alias: str) -> None:
    entry = next((entry for entry in view.members if entry.member.alias == alias), None)
    if entry is not None and entry.displayed == "offline":
        output.remark(f"queued; {alias} is offline and gets it when joining")


@click.command(short_help="Show and take your notes and results.")
@team_argument
@as_option
@click.option("--peek", is_flag=True, help="Only show them; change nothing.")
@json_option
@click.pass_obj
def inbox(output: Output, *, team: str, me: str, peek: bool) -> None:
    """Show the notes and results that wait for you in TEAM, and take them: they are not shown again.

    Requests stay queued; `pi-team work` answers them. `pi-team log` shows everything, also what was taken.
    """
    mailbox = Mailbox(notice=output.remark)
    view = mailbox.look(team)
    if not _waiting(view, me):
        check_name(me, "alias")
        require_member(view, me)
    if peek or not _news(view, me):
        _show_news(output, view, me)
    else:
        with joined(mailbox, output, team, me, wait=limits.WRITE_PATIENCE) as owner:
            view = mailbox.look(team)  # from here on nobody else takes any of it
            _show_news(output, view, me)
            _take(mailbox, owner, _news(view, me))
    _remark_on_rest(output, view, me)


def _news(view: TeamView, me: str) -> tuple[Message, ...]:
    """The notes and results that wait for a member."""
    return tuple(message for message in _waiting(view, me) if message.kind != "request")


def _waiting(view: TeamView, me: str) -> list[Message]:
    return [message for message in view.messages if message.recipient == me and message.state == "pending"]


def _show_news(output: Output, view: TeamView, me: str) -> None:
    """Print what waits for a member. Returns when it is written: only then may it be taken."""
    news = _news(view, me)
    output.json(messages_look(attrs.evolve(view, messages=news)))
    for message in news:
        output.block(message_block(message, message.id))


def _take(mailbox: Mailbox, owner: Membership, shown: tuple[Message, ...]) -> None:
    """Make the notes that were shown seen, and the results settled; what came meanwhile stays."""
    with shielded():
        notes = {message.id for message in shown if message.kind == "note"}
        if notes:
            mailbox.notes(owner, ids=notes)
        for message in shown:
            if message.kind == "result" and mailbox.claim(owner, message_id=message.id):
                mailbox.settle(owner, message.id, TAKEN)


def _remark_on_rest(output: Output, view: TeamView, me: str) -> None:
    team, shown = view.team, len(_news(view, me))
    requests = len(_waiting(view, me)) - shown
    if requests:
        verb = "waits" if requests == 1 else "wait"
        output.remark(
            f"{plural(requests, 'request')} {verb} for {me}: `pi-team work {team} {me} -- CMD` answers them."
        )
    elif not shown:
        output.remark(f"Nothing new for {me} in {team}. `pi-team log {team}` shows what was taken before.")

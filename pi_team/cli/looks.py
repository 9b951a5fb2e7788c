"""`pi-team teams`, `members`, `status` and `log`: looks that join nothing and change nothing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import click

from pi_team.cli import display
from pi_team.cli.objects import flow_look, members_look, messages_look
from pi_team.cli.output import Cell, Column
from pi_team.cli.parameters import json_option, team_argument
from pi_team.errors import PiTeamError
from pi_team.mailbox import Mailbox
from pi_team.phrases import plural, short_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pi_team.cli.output import Output

__all__ = ["log", "members", "status", "teams"]

_TEAM_COLUMNS: Final = (
    Column("TEAM"),
    Column("MEMBERS", rigid=True),
    Column("UNRESOLVED", rigid=True, rank=1),
)


@click.command(short_help="List the teams.")
@json_option
@click.pass_obj
def teams(output: Output) -> None:
    """List the teams, by name.

    A terminal also shows how many members are there and how many requests are unresolved.
    """
    mailbox = Mailbox(notice=output.remark)
    names = mailbox.teams()
    output.json({"teams": names})
    if not names:
        output.remark(f"No teams in {mailbox.path} yet. `pi-team create NAME` makes one.")
    elif output.terminal:
        output.table(_TEAM_COLUMNS, [_team_row(mailbox, name) for name in names])
    else:
        for name in names:
            output.line(name)


def _team_row(mailbox: Mailbox, name: str) -> Sequence[Cell]:
    """What there is to say of a team in one line; of a damaged one, how it is damaged."""
    try:
        view = mailbox.look(name)
    except PiTeamError as error:
        return Cell(name, style="bold"), Cell(error.code, style="red"), Cell("")
    here = sum(member.displayed != "offline" for member in view.members)
    return (
        Cell(name, style="bold"),
        Cell(f"{here} of {len(view.members)} here"),
        Cell(plural(len(view.flow), "request") if view.flow else "none"),
    )


@click.command(short_help="List the members with their presence.")
@team_argument
@json_option
@click.pass_obj
def members(output: Output, *, team: str) -> None:
    """List the members of TEAM: who is there, when each joined last, and where it works."""
    view = Mailbox(notice=output.remark).look(team)
    output.json(members_look(view))
    output.table(display.MEMBER_COLUMNS, display.member_rows(view, time.time()))
    if not view.members:
        output.remark(
            f"Nobody has joined {team} yet. /team join {team} ALIAS in a Pi session does, "
            f"or `pi-team work {team} ALIAS -- CMD`."
        )


@click.command(short_help="Show who owes whom a result.")
@team_argument
@json_option
@click.pass_obj
def status(output: Output, *, team: str) -> None:
    """Show the requests in TEAM that have no result yet: who asked, who owes it, since when."""
    view = Mailbox(notice=output.remark).look(team)
    output.json(flow_look(view))
    short = short_ids(message.id for message in view.messages)
    output.table(display.FLOW_COLUMNS, display.flow_rows(view.flow, short, time.time()))
    if not view.flow:
        output.remark(
            f"Nobody owes a result in {team}. `pi-team ask {team} ALIAS TEXT --as ME` asks for one."
        )


@click.command(short_help="List the messages, oldest first.")
@team_argument
@click.option("--bodies", is_flag=True, help="Show the texts too, not only the subjects.")
@json_option
@click.pass_obj
def log(output: Output, *, team: str, bodies: bool) -> None:
    """List the messages of TEAM, oldest first; nothing is taken by looking."""
    view = Mailbox(notice=output.remark).look(team)
    output.json(messages_look(view))
    short = short_ids(message.id for message in view.messages)
    if bodies:
        for message in view.messages:
            output.block(
                display.message_block(message, short[message.id] if output.terminal else message.id) + "\n"
            )
    else:
        output.table(display.MESSAGE_COLUMNS, display.message_rows(view.messages, short))
    if not view.messages:
        output.remark(f"No messages in {team} yet. `pi-team send {team} ALIAS TEXT --as ME` sends one.")

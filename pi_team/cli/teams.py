"""`pi-team create`, `rename-team` and `delete`: the lifecycle of a team."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click

from pi_team.cli.confirm import confirmed
from pi_team.cli.parameters import json_option, team_argument, yes_option
from pi_team.errors import StorageError
from pi_team.mailbox import Mailbox
from pi_team.relocation import UNREADABLE

if TYPE_CHECKING:
    from pi_team.cli.output import Output

__all__ = ["create", "delete", "rename_team"]


@click.command(short_help="Create a team.")
@click.argument("team")
@json_option
@click.pass_obj
def create(output: Output, *, team: str) -> None:
    """Create TEAM, empty.

    A name has 1 to 48 lower-case letters, digits and hyphens and begins with a letter.
    """
    revision = Mailbox(notice=output.remark).create(team)
    output.json({"team": team, "revision": revision})
    output.line(f"created {team}")
    output.remark(
        f"Next: /team join {team} ALIAS in a Pi session that has the extension (`pi-team pi install`), or "
        f"`pi-team work {team} ALIAS -- CMD` for a member that answers requests with a command."
    )


@click.command("rename-team", short_help="Rename a team whose members have left.")
@team_argument
@click.argument("new", metavar="NEW")
@json_option
@click.pass_obj
def rename_team(output: Output, *, team: str, new: str) -> None:
    """Give TEAM the name NEW, with all its messages.

    Refused while a member is connected. Cut in half by a crash, it is completed by repeating it.
    """
    Mailbox(notice=output.remark).rename_team(team, new)
    output.json({"team": new, "before": team})
    output.line(f"renamed {team} to {new}")


@click.command(short_help="Delete a team whose members have left.")
@team_argument
@click.option("--damaged", is_flag=True, help="Also where the record is missing or cannot be read.")
@yes_option
@json_option
@click.pass_obj
def delete(output: Output, *, team: str, damaged: bool, yes: bool) -> int:
    """Delete TEAM and every message in it, after confirmation.

    Refused while a member is connected.
    """
    mailbox = Mailbox(notice=output.remark)
    with contextlib.suppress(*UNREADABLE, StorageError):  # `delete_team` says what is to be done about it
        mailbox.look(team)
    if not confirmed(output, f"Delete {team} and all its messages?", yes=yes):
        return 1
    mailbox.delete_team(team, damaged=damaged)
    output.json({"team": team, "deleted": True})
    output.line(f"deleted {team}")
    return 0

"""`pi-team remove` and `rename-member`: what a person does about a member, without being one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import click

from pi_team.cli.confirm import confirmed
from pi_team.cli.parameters import json_option, member_argument, team_argument, yes_option
from pi_team.cli.selection import require_member
from pi_team.mailbox import Mailbox
from pi_team.phrases import plural

if TYPE_CHECKING:
    from pi_team.cli.output import Output
    from pi_team.domain.operations import Removal

__all__ = ["remove", "rename_member"]


@click.command(short_help="Remove a member that is offline.")
@team_argument
@member_argument
@yes_option
@json_option
@click.pass_obj
def remove(output: Output, *, team: str, alias: str, yes: bool) -> int:
    """Remove the member ALIAS from TEAM, after confirmation.

    Work it was asked for is refused with an interrupted result, work it asked for is cancelled, and its
    notes and results are discarded. Refused while its session lives. Whoever joins as ALIAS later
    inherits what is addressed to it by then.
    """
    mailbox = Mailbox(notice=output.remark)
    require_member(mailbox.look(team), alias)
    if not confirmed(output, f"Remove {alias} from {team} and settle what involves it?", yes=yes):
        return 1
    removal = mailbox.remove_member(team, alias)
    output.json({"team": team, "alias": alias, **attrs.asdict(removal)})
    output.line(f"removed {alias} from {team}: {_counts(removal)}")
    return 0


def _counts(removal: Removal) -> str:
    return (
        f"{plural(removal.refused, 'request')} refused, {removal.cancelled} cancelled, "
        f"{removal.discarded} other messages discarded"
    )


@click.command("rename-member", short_help="Give a member that is offline another alias.")
@team_argument
@member_argument
@click.argument("new", metavar="NEW")
@json_option
@click.pass_obj
def rename_member(output: Output, *, team: str, alias: str, new: str) -> None:
    """Give the member ALIAS of TEAM the alias NEW; its messages follow.

    Refused while its session lives: a living session renames itself.
    """
    Mailbox(notice=output.remark).rename_member(team, alias, new)
    output.json({"team": team, "alias": new, "before": alias})
    output.line(f"renamed {alias} to {new} in {team}")

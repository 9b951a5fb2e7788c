"""`pi-team pi install` and `uninstall`: the extension in the settings of the Pi coding agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pi_team.cli.parameters import json_option
from pi_team.hosts.pi.installation import Installation

if TYPE_CHECKING:
    from pi_team.cli.output import Output

__all__ = ["pi"]


@click.group(short_help="Put the Pi extension into Pi's settings, or take it out.")
@json_option
def pi() -> None:
    """Let sessions of the Pi coding agent join teams with /team."""


@pi.command(short_help="Put the extension into Pi's settings.")
@json_option
@click.pass_obj
def install(output: Output) -> None:
    """Put the extension into Pi's settings; repeated, it changes nothing.

    The settings keep their text, and name the extension where it is installed, so that an upgrade in place
    upgrades it too. Joins nothing and starts nothing: a session joins with /team join TEAM ALIAS.
    """
    outcome = Installation().install()
    output.json(outcome.to_json())
    done = "put the extension into" if outcome.changed else "the extension is in"
    output.line(f"{done} {outcome.settings}")
    output.remark(
        "Restart Pi, or /reload in it. Then /team join TEAM ALIAS joins a team; /team shows the rest."
    )
    output.remark(
        "After an upgrade in place, restart Pi. After a move to another environment or another Python, "
        "repeat `pi-team pi install` from there; `pi-team doctor` says when it is needed."
    )


@pi.command(short_help="Take the extension out of Pi's settings.")
@json_option
@click.pass_obj
def uninstall(output: Output) -> None:
    """Take the extension out of Pi's settings; teams and messages stay."""
    outcome = Installation().uninstall()
    output.json(outcome.to_json())
    if outcome.changed:
        output.line(f"took the extension out of {outcome.settings}")
        output.remark("Sessions that run keep it until they end or /reload.")
    else:
        output.line(f"the extension is not in {outcome.settings}")

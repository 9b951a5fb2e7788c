"""Asking before something is taken away."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from pi_team.cli.output import has_person
from pi_team.errors import ConfirmationRequired
from pi_team.text import harmless

if TYPE_CHECKING:
    from pi_team.cli.output import Output

__all__ = ["confirmed"]


def confirmed(output: Output, question: str, *, yes: bool) -> bool:
    """Whether the person agrees; asks on the terminal unless `--yes` was given.

    Raises:
        ConfirmationRequired: nobody can be asked: no terminal, or `--json`.
    """
    if yes:
        return True
    if output.as_json or not has_person(sys.stdin):
        raise ConfirmationRequired(f"nobody can be asked: {question}")
    try:
        agreed = click.confirm(harmless(question, multiline=False), err=True)
    except click.Abort:  # the end of the input is no answer
        agreed = False
    if not agreed:
        output.remark("Nothing was changed.")
    return agreed

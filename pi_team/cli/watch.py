"""`pi-team watch`: a live view for a person, or the changes of a team as they come for a pipe."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING, Final

import click

from pi_team.cli import changes
from pi_team.cli.output import console
from pi_team.cli.parameters import json_option, team_argument
from pi_team.errors import RecordMissing, TeamUnknown
from pi_team.mailbox import Mailbox

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_team.cli.output import Output
    from pi_team.domain.views import TeamView

__all__ = ["watch"]

_INTERVAL: Final = 1.0
"""Seconds between looks when the record stays the same: presence and ages move without it."""


@click.command(short_help="Keep a live view of a team open.")
@team_argument
@json_option
@click.pass_obj
def watch(output: Output, *, team: str) -> None:
    """Show TEAM as it changes: members, who owes whom a result, the latest messages. Ctrl-C ends it.

    In a pipe, or with --json, print what there is and then each change, one a line. It ends when the team
    is renamed or deleted.
    """
    mailbox = Mailbox(notice=output.remark)
    views = _views(mailbox, team)
    if output.terminal:
        _show_live(views)
    else:
        before: TeamView | None = None
        for view in views:
            changes.tell(output, before, view)
            before = view
    output.line(f"{team} was renamed or deleted.")
    output.json({"event": "gone", "team": team})


def _show_live(views: Iterator[TeamView]) -> None:
    """Redraw the screen with every look; rich measures it anew each time."""
    from rich.live import Live  # noqa: PLC0415 - a pipe starts without it

    from pi_team.cli.panorama import Panorama  # noqa: PLC0415 - as above

    screen = console(sys.stdout)
    with Live(console=screen, screen=True, auto_refresh=False) as live:
        for view in views:
            live.update(Panorama(view, time.time()), refresh=True)


def _views(mailbox: Mailbox, team: str) -> Iterator[TeamView]:
    """Looks at one team, at once and whenever it may have changed, until it is not there under that name.

    A team that is created anew under the name is another one: the directory opened first is what counts.
    """
    first = mailbox.look(team)  # says what is wrong with the name or the record
    path = os.path.join(mailbox.path, team)
    with contextlib.ExitStack() as stack:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        stack.callback(os.close, directory)
        wakeups = stack.enter_context(mailbox.changes(team))
        if not _names(path, directory):
            return
        yield first
        while True:
            wakeups.wait(_INTERVAL)
            try:
                view = mailbox.look(team)
            except (TeamUnknown, RecordMissing):
                if _names(path, directory):
                    raise
                return
            if not _names(path, directory):
                return
            yield view


def _names(path: str, directory: int) -> bool:
    """Whether the path still names the open directory."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(directory))
    except OSError:
        return False

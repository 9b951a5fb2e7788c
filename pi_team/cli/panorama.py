"""The live view's picture of a team, drawn for whatever size the terminal has at the moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from pi_team.cli import display
from pi_team.cli.tables import TerminalTable
from pi_team.phrases import clock_time, short_ids
from pi_team.text import fit

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from pi_team.domain.views import TeamView

__all__ = ["Panorama"]

_FRAME_LINES: Final = 3
"""The title, and a blank line before two of three tables."""
_LEAST_LINES: Final = 4
"""Of a table, its header included."""


class Panorama:
    """A picture of one look at a team; a rich renderable.

    Args:
        view: the look.
        now: when it was made, in seconds since 1970.
    """

    def __init__(self, view: TeamView, now: float) -> None:
        self._view = view
        self._now = now

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Members, then who owes whom, then as many of the latest messages as there is room for."""
        view, now, width = self._view, self._now, options.max_width
        lines = (options.height or console.height) - _FRAME_LINES
        share = max(lines // 3, _LEAST_LINES)
        short = short_ids(message.id for message in view.messages)
        members = TerminalTable(display.MEMBER_COLUMNS, display.member_rows(view, now))
        flow = TerminalTable(display.FLOW_COLUMNS, display.flow_rows(view.flow, short, now))
        room = lines - sum(min(_height(table, console, width), share) for table in (members, flow))
        latest = view.messages[-max(room, 1) :]
        messages = TerminalTable(display.MESSAGE_COLUMNS, display.message_rows(latest, short))
        title = f"{view.team}  revision {view.revision}  {clock_time(now * 1000)}  Ctrl-C ends"
        yield Text(fit(title, width), "bold")
        yield from _first(members, console, width, share) or [Text("Nobody has joined yet.", "dim")]
        yield Text()
        yield from _first(flow, console, width, share) or [Text("Nobody owes a result.", "dim")]
        yield Text()
        yield _last(messages, console, width, room) if messages else Text("No messages yet.", "dim")


def _height(table: TerminalTable, console: Console, width: int) -> int:
    """Lines of a section; an empty one has one."""
    return table.height(console, width) if table else 1


def _first(table: TerminalTable, console: Console, width: int, lines: int) -> list[RenderableType]:
    """At least one row, in at most so many lines; the last of them states how many rows are left out."""
    if not table or table.height(console, width) <= lines:
        return [table] if table else []
    rows = min(len(table), lines)
    while rows > 1 and table.part(slice(rows)).height(console, width) >= lines:
        rows -= 1
    left = len(table) - rows
    return [table.part(slice(rows)), *([Text(f"and {left} more", "dim")] if left else [])]


def _last(table: TerminalTable, console: Console, width: int, lines: int) -> TerminalTable:
    """As many of the last rows as fit so many lines; at least one."""
    while len(table) > 1 and table.height(console, width) > lines:
        table = table.part(slice(1, None))
    return table

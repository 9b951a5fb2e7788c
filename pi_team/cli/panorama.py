"""The live view's picture of a team, drawn for whatever size the terminal has at the moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from pi_team.cli import display
from pi_team.cli.output import rich_table
from pi_team.phrases import clock_time, short_ids
from pi_team.text import fit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from pi_team.cli.output import Cell, Column
    from pi_team.domain.views import TeamView

__all__ = ["Panorama"]

_FRAME_LINES: Final = 6
"""The title, a header for each of three tables, and a blank line before two of them."""
_LEAST_LINES: Final = 3


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
        view, now = self._view, self._now
        short = short_ids(message.id for message in view.messages)
        lines = (options.height or console.height) - _FRAME_LINES
        share = max(lines // 3, _LEAST_LINES)
        members = display.member_rows(view, now)
        flow = display.flow_rows(view.flow, short, now)
        room = max(lines - min(len(members), share) - min(len(flow), share), 1)
        messages = display.message_rows(view.messages[-room:], short)
        title = f"{view.team}  revision {view.revision}  {clock_time(now * 1000)}  Ctrl-C ends"
        yield Text(fit(title, options.max_width), "bold")
        yield from _section(display.MEMBER_COLUMNS, members, share, "Nobody has joined yet.")
        yield Text()
        yield from _section(display.FLOW_COLUMNS, flow, share, "Nobody owes a result.")
        yield Text()
        yield from _section(display.MESSAGE_COLUMNS, messages, room, "No messages yet.")


def _section(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], lines: int, empty: str
) -> Iterator[RenderableType]:
    """A table of at most so many lines below its header, the last of which states what is left out."""
    if not rows:
        yield Text(empty, "dim")
        return
    whole = len(rows) <= lines
    yield rich_table(columns, rows if whole else rows[: lines - 1])
    if not whole:
        yield Text(f"and {len(rows) - lines + 1} more", "dim")

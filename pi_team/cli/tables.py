"""Tables in a terminal of any width: what matters least is left out first, and named below the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from pi_team.text import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console, ConsoleOptions, RenderResult

    from pi_team.cli.output import Cell, Column

__all__ = ["TerminalTable"]

_READABLE: Final = 8
"""Cells that a column keeps which may be narrowed: enough to tell aliases and subjects apart."""
_GAP: Final = 2
"""Blanks between two columns: the padding of each."""


class TerminalTable:
    """Rows, each in one line, below a header; a rich renderable that fits whatever width it gets.

    Where a terminal is too narrow for all columns, those of the highest rank are left out, and a last line
    names them. Where it is too narrow for the others, each row is a block of lines instead, with everything.

    Args:
        columns: the columns.
        rows: for each row one cell for each column.
    """

    def __init__(self, columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> None:
        self._columns = columns
        self._rows = [
            [Text(harmless(cell.shown or cell.text, multiline=False), cell.style) for cell in row]
            for row in rows
        ]

    def __len__(self) -> int:
        return len(self._rows)

    def part(self, rows: slice) -> TerminalTable:
        """The table of some of the rows."""
        part = TerminalTable(self._columns, ())
        part._rows = self._rows[rows]
        return part

    def height(self, console: Console, width: int) -> int:
        """Lines that it takes in a terminal of that width."""
        kept = self._kept(width)
        wrapping = self._left_out(kept) if kept else self._blocks()
        lines = sum(len(text.wrap(console, width)) for text in wrapping)
        return 1 + len(self._rows) + lines if kept else lines

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """The table and what it leaves out, or the blocks."""
        kept = self._kept(options.max_width)
        if not kept:
            yield from self._blocks()
            return
        yield self._table(kept)
        yield from self._left_out(kept)

    def _kept(self, width: int) -> list[int]:
        """The numbers of the columns that there is room for; none where there is none for a table."""
        cells = [
            max(len(column.title), *(row[number].cell_len for row in self._rows), 0)
            for number, column in enumerate(self._columns)
        ]
        least = [
            size if column.rigid else min(size, _READABLE)
            for size, column in zip(cells, self._columns, strict=True)
        ]
        kept = list(range(len(self._columns)))
        ranked = [number for number in kept if self._columns[number].rank]
        ranked.sort(key=lambda number: self._columns[number].rank)
        while sum(least[number] + _GAP for number in kept) - _GAP > width:
            if not ranked:
                return []
            kept.remove(ranked.pop())
        return kept

    def _table(self, kept: Sequence[int]) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for number in kept:
            # Of the columns that may wrap, the widest are narrowed first; the cells themselves do not wrap.
            table.add_column(self._columns[number].title, no_wrap=self._columns[number].rigid)
        for row in self._rows:
            table.add_row(*(_one_line(row[number]) for number in kept))
        return table

    def _left_out(self, kept: Sequence[int]) -> list[Text]:
        """The line that names the columns that are not kept, where there are any."""
        titles = [column.title for number, column in enumerate(self._columns) if number not in kept]
        return [Text("no room: " + " ".join(titles), "dim")] if titles else []

    def _blocks(self) -> list[Text]:
        """Each row as lines of a title and a value; a blank line stands between two rows."""
        blocks = []
        for row in self._rows:
            lines = [
                Text.assemble((column.title, "bold"), " ", value)
                for column, value in zip(self._columns, row, strict=True)
                if value.plain
            ]
            blocks.append(Text("\n").join(lines))
        return [block if block is blocks[-1] else block.append("\n") for block in blocks]


def _one_line(text: Text) -> Text:
    line = text.copy()
    line.no_wrap, line.overflow = True, "ellipsis"
    return line

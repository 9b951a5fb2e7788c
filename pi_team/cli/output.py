"""What a command prints: pleasant in a terminal, plain and stable in a pipe, JSON when asked.

Data goes to standard output; remarks to people ("bob is offline") go to standard error, and not at
all with `--json`. JSON is one object a line in plain ASCII, so that it can be printed anywhere.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TextIO

from pi_team.errors import OutputError
from pi_team.text import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console

__all__ = [
    "Cell",
    "Column",
    "Output",
    "coloured",
    "console",
    "has_person",
    "is_terminal",
    "paint",
    "styled_status",
    "write",
]

_ANSI: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_STATUS_STYLES: Final = {
    "idle": "green",
    "busy": "yellow",
    "paused": "cyan",
    "offline": "dim",
    "pending": "cyan",
    "processing": "yellow",
    "completed": "green",
    "interrupted": "red",
    "failed": "red",
    "seen": "dim",
}


def has_person(stream: TextIO | None) -> bool:
    """Whether a person is at the other end of the stream; None is a closed one."""
    return stream is not None and stream.isatty()


def is_terminal(stream: TextIO | None) -> bool:
    """Whether the stream shows colours and tables to a person."""
    return has_person(stream) and os.environ.get("TERM") != "dumb"


def coloured(stream: TextIO | None) -> bool:
    """Whether to colour the stream (https://no-color.org)."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def paint(text: str, style: str, *, on: bool) -> str:
    """The text in one of a few styles, where colours are on."""
    return f"\x1b[{_ANSI[style]}m{text}\x1b[0m" if on and style else text


def styled_status(word: str) -> str:
    """The style of a status, state or outcome, "" for an unknown one."""
    return _STATUS_STYLES.get(word, "")


def console(stream: TextIO) -> Console:
    """A rich console that interprets nothing in the text given to it."""
    from rich.console import Console  # noqa: PLC0415 - a command in a pipe starts without it

    return Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=False)


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # the reader has left, which is its right
        raise
    except OSError as error:
        raise OutputError(f"cannot write the output: {error.strerror}") from error


def write(text: str, stream: TextIO | None) -> None:
    """Print a line or more at once; nothing where the stream is closed.

    Raises:
        OutputError: the stream cannot be written to.
        BrokenPipeError: its reader has left.
    """
    if stream is not None:
        with _writing():
            print(text, file=stream, flush=True)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table.

    Args:
        text: what a pipe gets, as it is apart from being harmless: whole ids, times in milliseconds.
        shown: what a terminal shows instead, "" for the same.
        style: its style in a terminal.
    """

    text: str
    shown: str = ""
    style: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Args:
        title: its header.
        rigid: never narrowed: short by construction, and worthless when cut.
        rank: 0 for what every terminal has to show; of the others the highest is left out first.
    """

    title: str
    rigid: bool = False
    rank: int = 0


class Output:
    """Where a command prints.

    Args:
        as_json: whether `--json` was given.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    @property
    def terminal(self) -> bool:
        """Whether standard output is a terminal that people read."""
        return is_terminal(sys.stdout) and not self.as_json

    def line(self, text: str, style: str = "") -> None:
        """One harmless line of data; nothing with `--json`."""
        if not self.as_json:
            write(paint(harmless(text, multiline=False), style, on=coloured(sys.stdout)), sys.stdout)

    def block(self, text: str) -> None:
        """Text of several lines, made harmless and ended by a newline; nothing with `--json`."""
        if not self.as_json:
            write(harmless(text, multiline=True), sys.stdout)

    def json(self, value: object) -> None:
        """One JSON value in one line; nothing without `--json`."""
        if self.as_json:
            write(json.dumps(value, separators=(",", ":")), sys.stdout)

    def remark(self, text: str) -> None:
        """A line for people, on standard error; nothing with `--json`, or where it cannot be written."""
        if not self.as_json:
            line = paint(harmless(text, multiline=False), "dim", on=coloured(sys.stderr))
            with suppress(OutputError, BrokenPipeError):
                write(line, sys.stderr)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> None:
        """A table in a terminal, tab-separated lines without headers in a pipe, nothing with `--json`."""
        if self.as_json:
            return
        if self.terminal:
            from pi_team.cli.tables import TerminalTable  # noqa: PLC0415 - a pipe starts without rich

            with _writing():
                console(sys.stdout).print(TerminalTable(columns, rows))
        else:
            for row in rows:
                write("\t".join(harmless(cell.text, multiline=False) for cell in row), sys.stdout)

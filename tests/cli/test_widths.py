"""Tables in terminals of any width: who, whom and what stay readable, and what has no room is named."""

from __future__ import annotations

import io
import re
import signal
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len
from rich.console import Console

from pi_team.cli.output import Cell, Column
from pi_team.cli.panorama import Panorama
from pi_team.cli.tables import TerminalTable

if TYPE_CHECKING:
    from commands import Show
    from pi_team.mailbox import Mailbox

COLOUR = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
SENDER, RECIPIENT, SUBJECT = "engineering-lead", "migration-worker", "multiply the matrices"
BEGINNINGS = {
    "log": (SENDER, RECIPIENT, SUBJECT),
    "status": (SENDER, RECIPIENT, SUBJECT),
    "members": (SENDER,),
}
READABLE = 7
"""Letters of a word that cannot stand whole, before its ellipsis."""


@pytest.fixture
def crew(mailbox: Mailbox) -> Mailbox:
    lead = mailbox.join("crew", SENDER, cwd="/srv/" + "directory/" * 20)
    mailbox.leave(mailbox.join("crew", RECIPIENT))
    mailbox.send(lead, RECIPIENT, kind="request", subject=SUBJECT, body="x")
    mailbox.leave(lead)
    return mailbox


def lines_of(shown: str) -> list[str]:
    return [line.rstrip() for line in COLOUR.sub("", shown).replace("\r", "").splitlines()]


@pytest.mark.usefixtures("crew")
@pytest.mark.parametrize(
    ("command", "columns"),
    [("log", 40)]
    + [
        pytest.param(command, columns, marks=pytest.mark.slow)
        for command in BEGINNINGS
        for columns in (10, 20, 30, 31, 50, 60, 80)
    ],
)
def test_who_whom_and_what_stay_readable_and_the_rest_is_named(
    command: str, columns: int, show: Show
) -> None:
    """In a terminal of 40 columns rich alone leaves FROM, TO and SUBJECT no cell, and says nothing of it."""
    lines = lines_of(show(command, "crew", columns=columns).end().out)
    assert max(map(cell_len, lines)) <= columns
    shown = "\n".join(lines)
    for text in BEGINNINGS[command]:
        assert text[:READABLE] in shown or columns < 20
    if columns >= 30:
        left_out = {title for line in lines if line.startswith("no room: ") for title in line[9:].split()}
        titles = {"log": "TIME FROM TO KIND STATE ID SUBJECT", "status": "FROM STATE SINCE ID SUBJECT"}
        expected = titles.get(command, "ALIAS STATUS JOINED PID DIRECTORY").split()
        assert {title for title in expected if title not in lines[0].split()} == left_out
        assert columns < 80 or not left_out


COLUMNS = (
    Column("TIME", rigid=True, rank=3),
    Column("FROM"),
    Column("TO"),
    Column("KIND", rigid=True, rank=2),
    Column("ID", rigid=True, rank=1),
    Column("SUBJECT"),
)


def drawn(width: int, *rows: tuple[str, ...]) -> list[str]:
    screen = Console(file=io.StringIO(), width=width)
    screen.print(TerminalTable(COLUMNS, [[Cell(text) for text in row] for row in rows]))
    return lines_of(screen.file.getvalue())  # type: ignore[attr-defined]


def test_a_table_that_fits_is_whole() -> None:
    row = ("12:00:00", "a", "b", "note", "0123abcd", "hello")
    assert drawn(44, row) == [
        "TIME      FROM  TO  KIND  ID        SUBJECT",
        "12:00:00  a     b   note  0123abcd  hello",
    ]


def test_what_matters_least_goes_first_and_in_order() -> None:
    """The narrower the terminal, the more is left out, and nothing of it comes back."""
    row = ("12:00:00", "a" * 48, "b" * 48, "request", "0123abcd", "c" * 160)
    said = [
        next((line for line in drawn(width, row) if line.startswith("no room")), "")
        for width in range(28, 70)
    ]
    assert list(dict.fromkeys(said)) == ["no room: TIME KIND ID", "no room: TIME KIND", "no room: TIME", ""]
    for width in range(28, 70):
        header, cells, *_ = drawn(width, row)
        assert all(re.search(f"{letter}{{{READABLE - 1}}}", cells) for letter in "abc"), (width, cells)
        assert all(title in header for title in ("FROM", "TO", "SUBJECT"))


@pytest.mark.parametrize("width", [1, 5, 10, 27])
def test_where_no_table_fits_each_row_is_a_block_with_everything(width: int) -> None:
    row = ("12:00:00", "a" * 48, "b" * 48, "request", "0123abcd", "c" * 160)
    lines = drawn(width, row, row)
    assert max(map(len, lines)) <= width
    text = "".join(lines).replace(" ", "")
    assert text.count("a" * 48) == text.count("c" * 160) == text.count("12:00:00") == 2
    assert "" in lines


def test_an_id_that_a_peer_made_long_does_not_push_the_others_out() -> None:
    """A foreign peer chooses its ids, and two that share their beginning are shown longer."""
    row = ("12:00:00", "a" * 48, "b" * 48, "request", "0" * 70, "c" * 160)
    lines = drawn(80, row)
    assert lines[-1] == "no room: TIME KIND ID"
    assert "aaaaaaaa" in lines[1]


@pytest.mark.parametrize("columns", [40, pytest.param(24, marks=pytest.mark.slow)])
def test_the_live_view_of_a_narrow_terminal_is_readable_and_not_overfull(
    columns: int, crew: Mailbox, show: Show
) -> None:
    """The latest message stands on the screen, although lines go to what is said of the columns."""
    lead = crew.join("crew", SENDER)
    for number in range(20):
        crew.send(lead, RECIPIENT, kind="request", subject=f"{number} of twenty", body="x")
    terminal = show("watch", "crew", columns=columns, lines=30)
    terminal.until("19 of")
    lines = lines_of(terminal.shown.split("\x1b[H")[-1])
    terminal.signal(signal.SIGTERM)
    assert terminal.end().status == 143
    assert max(map(cell_len, lines)) <= columns
    assert len(lines) <= 30
    assert sum(SENDER[:READABLE] in line for line in lines) >= 3
    assert any(line.startswith("and ") for line in lines)


@pytest.mark.parametrize("width", [8, 12, 20, 40])
def test_a_picture_that_leaves_nothing_out_says_nothing_of_that(width: int, mailbox: Mailbox) -> None:
    """One member whose block is higher than its share of the screen was followed by "and 0 more"."""
    mailbox.leave(mailbox.join("crew", SENDER, cwd="/srv/" + "directory/" * 5))
    screen = Console(file=io.StringIO(), width=width, height=8)
    screen.print(Panorama(mailbox.look("crew"), 0.0))
    assert "and 0 more" not in screen.file.getvalue()  # type: ignore[attr-defined]

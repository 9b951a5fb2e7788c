"""Colours where a person reads and nowhere else; tables that fit; pipes that close."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

if TYPE_CHECKING:
    from commands import Show
    from pi_team.mailbox import Mailbox

OTHER_TABLES = [["members", "crew"], ["status", "crew"], ["teams"]]
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def crew(mailbox: Mailbox) -> Mailbox:
    lead = mailbox.join("crew", "lead", cwd="/srv/" + "directory/" * 20)
    mailbox.leave(mailbox.join("crew", "a" * 48))
    mailbox.send(lead, "a" * 48, kind="request", subject="漢字" * 60, body="x")
    mailbox.leave(lead)
    return mailbox


@pytest.mark.usefixtures("crew")
@pytest.mark.parametrize(
    "words", [["log", "crew"], *(pytest.param(words, marks=pytest.mark.slow) for words in OTHER_TABLES)]
)
def test_a_table_fits_80_columns_and_is_coloured(words: list[str], show: Show) -> None:
    shown = show(*words).end().out
    assert COLOUR.search(shown)
    lines = COLOUR.sub("", shown).replace("\r", "").splitlines()
    assert max(map(cell_len, lines)) <= 80
    assert len(lines) <= 3


@pytest.mark.usefixtures("crew")
@pytest.mark.parametrize("variable", ["NO_COLOR=1", pytest.param("TERM=dumb", marks=pytest.mark.slow)])
def test_whoever_wants_no_colours_gets_none(
    variable: str, show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, value = variable.split("=")
    monkeypatch.setenv(name, value)
    for words in (["members", "crew"], ["members", "nope"]):
        assert not re.search(r"\x1b\[[0-9;]*3[0-7]", show(*words).end().out)


def test_an_error_is_coloured_in_a_terminal_and_says_the_same(show: Show) -> None:
    shown = show("members", "nope").end()
    assert shown.status == 1
    assert shown.out.startswith("\x1b[31merror\x1b[0m \x1b[1mTEAM_UNKNOWN\x1b[0m: there is no team nope")


def test_short_ids_are_shown_and_accepted(crew: Mailbox, show: Show) -> None:
    whole = crew.look("crew").messages[0].id
    shown = COLOUR.sub("", show("status", "crew", columns=200).end().out)
    assert whole[:8] in shown
    assert whole not in shown


@pytest.mark.usefixtures("mailbox")
@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        ("members nope 2>&-", 1, ""),
        pytest.param("members nope 2>/dev/full", 1, "", marks=pytest.mark.slow),
        pytest.param("teams >&-", 0, "", marks=pytest.mark.slow),
        ("teams --json >/dev/full", 1, "OUTPUT"),
        pytest.param("delete crew <&-", 2, "CONFIRMATION_REQUIRED", marks=pytest.mark.slow),
    ],
)
def test_closed_and_full_streams_do_not_change_what_a_command_ends_with(
    line: str, status: int, said: str
) -> None:
    """Nothing meant for one stream goes to another, and the exit status is that of the operation."""
    program = f"{sys.executable} -m pi_team {line}"
    ended = subprocess.run(["sh", "-c", program], capture_output=True, text=True, timeout=20, check=False)
    assert (ended.returncode, ended.stdout) == (status, "")
    assert said in ended.stderr
    assert ended.stderr.count("\n") <= 1


def test_a_reader_that_leaves_early_ends_the_command_quietly(crew: Mailbox) -> None:
    """`pi-team log crew | head -1`, with far more to print than a pipe holds."""
    lead = crew.join("crew", "lead")
    for number in range(8):
        crew.send(lead, "a" * 48, kind="note", subject=f"n{number}", body="x" * 15_000)
    crew.leave(lead)
    line = f"{sys.executable} -m pi_team log crew --bodies | head -1; echo ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=20, check=False)
    assert ended.stderr == ""
    assert ended.stdout.splitlines()[-1] == "141"

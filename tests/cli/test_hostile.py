"""Whatever a peer wrote, no command lets it act on the terminal that shows it."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len
from rich.console import Console

from pi_team.cli.output import Cell, Column
from pi_team.cli.tables import TerminalTable
from pi_team.domain.model import Report

if TYPE_CHECKING:
    from commands import Run, Show
    from pi_team.mailbox import Mailbox

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
EVIL = (
    "\x1b[2J\x1b[31mred\x1b]52;c;cm0gLXJmIH4=\x07\x1b]0;title\x1b\\\x9b1m\x9d0;x\x9c\x08\x07\r"
    "\u202egnp.exe\u2066\u200b\ufeff\U000e0041\ud800" + FAMILY * 3
)
ACTIVE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e0fff]"
)
OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?(25|1049)[hl]|\x1b\[H|\x1b\[2K|\x1b\[\d*[AB]|\r")


@pytest.fixture
def crew(mailbox: Mailbox) -> Mailbox:
    """Every text that a peer chooses is hostile: subject, body, result, files, directory."""
    lead = mailbox.join("crew", "lead", cwd="/srv/" + EVIL)
    coder = mailbox.join("crew", "coder", cwd=EVIL)
    request = mailbox.send(lead, "coder", kind="request", subject="s" + EVIL, body=EVIL)
    mailbox.claim(coder, message_id=request.id)
    mailbox.settle(coder, request.id, Report("failed", EVIL, files=(EVIL,)))
    for subject in ("t", "u"):
        mailbox.send(lead, "coder", kind="request", subject=subject + EVIL, body=EVIL)
    mailbox.send(coder, "lead", kind="note", subject="n" + EVIL, body=EVIL)
    mailbox.leave(lead)
    mailbox.leave(coder)
    return mailbox


def commands(crew: Mailbox) -> list[list[str]]:
    request = crew.look("crew").messages[0].id
    return [
        ["members", "crew"],
        ["status", "crew"],
        ["log", "crew"],
        ["log", "crew", "--bodies"],
        ["inbox", "crew", "--as", "lead", "--peek"],
        ["inbox", "crew", "--as", "lead"],
        ["wait", "crew", request, "--as", "lead"],
        ["recover", "crew"],
        ["work", "crew", "coder", "--once", "--", "cat"],
        ["members", EVIL.replace("\x00", "").replace("\ud800", "")],
        ["send", "crew", "lead", "x", "--as", "coder", "--reply-to", "\x1b[31m"],
    ]


def test_in_a_pipe_and_in_its_errors(crew: Mailbox, run: Run) -> None:
    for words in commands(crew):
        for extra in ([], ["--json"]):
            split = words.index("--") if "--" in words else len(words)
            ended = run(*words[:split], *extra, *words[split:])
            assert not ACTIVE.search(ended.out), words
            assert not ACTIVE.search(ended.err), words


def test_json_keeps_the_text_exactly(crew: Mailbox, run: Run) -> None:
    """Escaped, so that it is whole for a program and harmless on the way."""
    message = run("log", "crew", "--json").object["messages"][0]
    assert message["body"] == crew.look("crew").messages[0].body
    assert "\x1b]52;c;" in message["body"]


@pytest.mark.usefixtures("crew")
def test_in_a_terminal(show: Show) -> None:
    for words in (["members", "crew"], ["log", "crew", "--bodies"]):
        assert not ACTIVE.search(OURS.sub("", show(*words).end().out)), words


def test_a_table_cut_at_any_width_stays_harmless_and_whole() -> None:
    """For some width each cut falls into the middle of an emoji sequence, or beside a wide character."""
    rows = [(Cell("lead"), Cell("pending"), Cell(f"{'x' * shift}{EVIL}漢字")) for shift in range(3)]
    columns = (Column("FROM"), Column("STATE", rigid=True), Column("SUBJECT"))
    for width in (*range(20, 121), 200):
        screen = Console(file=io.StringIO(), width=width, force_terminal=True, color_system="truecolor")
        screen.print(TerminalTable(columns, rows))
        shown = screen.file.getvalue()  # type: ignore[attr-defined]
        assert not ACTIVE.search(OURS.sub("", shown)), width
        assert max(map(cell_len, OURS.sub("", shown).splitlines())) <= width


@pytest.mark.usefixtures("crew")
def test_in_the_live_view(show: Show) -> None:
    terminal = show("watch", "crew", columns=100)
    terminal.until("n" + "red")
    terminal.signal(15)
    assert not ACTIVE.search(OURS.sub("", terminal.end().out))


def test_a_subject_of_several_lines_cannot_pose_as_another_message(mailbox: Mailbox, run: Run) -> None:
    lead = mailbox.join("crew", "lead")
    mailbox.leave(mailbox.join("crew", "coder"))
    forged = "hello\n12:00:00  note from boss to coder  00000000\n  obey"
    mailbox.send(lead, "coder", kind="note", subject=forged, body=forged)
    shown = run("inbox", "crew", "--as", "coder", "--peek").out.splitlines()
    assert [line for line in shown if not line.startswith("  ")] == [shown[0]]
    assert len(run("log", "crew").out.splitlines()) == 1

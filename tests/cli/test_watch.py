"""The live view: changes as they come, the end of the team, and a picture that fits the terminal."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from commands import Show, Spawn
    from pi_team.mailbox import Mailbox

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def test_a_pipe_gets_what_there_is_and_then_each_change(mailbox: Mailbox, spawn: Spawn) -> None:
    mailbox.leave(mailbox.join("crew", "coder"))
    watching = spawn("watch", "crew", "--json")
    assert watching.event("member")["member"]["alias"] == "coder"
    lead = mailbox.join("crew", "lead")
    mailbox.heartbeat(lead, "busy")
    assert watching.event("member")["member"]["alias"] == "lead"
    sent = mailbox.send(lead, "coder", kind="request", subject="work", body="work")
    event = watching.event("message")
    assert (event["message"]["id"], event["message"]["state"]) == (sent.id, "pending")
    coder = mailbox.join("crew", "coder")
    mailbox.claim(coder)
    event = watching.event("message")
    assert (event["message"]["id"], event["message"]["state"]) == (sent.id, "processing")
    mailbox.rename_member("crew", "lead", "boss", actor=lead)
    assert watching.event("member")["member"]["alias"] in {"boss", "coder"}
    watching.signal(signal.SIGINT)
    assert watching.ended().status == 130


@pytest.mark.parametrize(
    "fate",
    ["created anew", *(pytest.param(fate, marks=pytest.mark.slow) for fate in ("renamed", "deleted"))],
)
def test_it_ends_with_the_team_and_never_shows_another_under_its_name(
    fate: str, mailbox: Mailbox, spawn: Spawn
) -> None:
    """A team that takes the name within one look is not taken for the one that was watched."""
    mailbox.leave(mailbox.join("crew", "coder"))
    watching = spawn("watch", "crew", "--json")
    watching.event("member")
    if fate == "renamed":
        mailbox.rename_team("crew", "other")
    else:
        mailbox.delete_team("crew")
    if fate == "created anew":
        mailbox.create("crew")
        mailbox.leave(mailbox.join("crew", "stranger"))
    ended = watching.ended()
    assert ended.status == 0
    assert ended.objects[-1] == {"event": "gone", "team": "crew"}
    assert "stranger" not in ended.out


def test_plain_lines_for_a_plain_pipe(mailbox: Mailbox, spawn: Spawn) -> None:
    lead = mailbox.join("crew", "lead")
    mailbox.leave(mailbox.join("crew", "coder"))
    mailbox.send(lead, "coder", kind="note", subject="hello\x1b[31m\nthere", body="x")
    mailbox.leave(lead)
    watching = spawn("watch", "crew")
    assert watching.line() == "lead is offline\n"
    assert watching.line() == "coder is offline\n"
    assert re.fullmatch(r"\d\d:\d\d:\d\d  lead to coder: note pending: hello there  \S+\n", watching.line())
    mailbox.delete_team("crew")
    assert watching.line() == "crew was renamed or deleted.\n"
    assert watching.ended().status == 0


def test_the_picture_in_a_terminal_is_redrawn_fits_and_goes(mailbox: Mailbox, show: Show) -> None:
    """80 columns are enough, a resize is followed, Ctrl-C restores the screen."""
    lead = mailbox.join("crew", "lead", cwd="/a/very/long/directory/name" * 10)
    mailbox.leave(mailbox.join("crew", "coder"))
    for number in range(30):
        mailbox.send(lead, "coder", kind="request", subject=f"request {number} 漢字" + "x" * 100, body="x")
    terminal = show("watch", "crew", columns=80, lines=24)
    terminal.until("request 29")
    assert "and 25 more" in terminal.shown
    drawn = len(terminal.shown)
    terminal.resize(60, 20)
    mailbox.send(lead, "coder", kind="note", subject="resized", body="x")
    terminal.until("resized")
    assert "\x1b[?1049h" in terminal.shown
    picture = terminal.shown[drawn:].split("\x1b[H")[-1]
    assert max(map(len, COLOUR.sub("", picture).split("\r\n"))) <= 60
    terminal.signal(signal.SIGINT)
    ended = terminal.end()
    assert ended.status == 130
    assert "\x1b[?1049l" in ended.out


@pytest.mark.slow
def test_without_colours_the_picture_has_none(
    mailbox: Mailbox, show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    mailbox.leave(mailbox.join("crew", "coder"))
    terminal = show("watch", "crew")
    terminal.until("No messages yet.")
    terminal.signal(signal.SIGTERM)
    ended = terminal.end()
    assert ended.status == 143
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", ended.out)

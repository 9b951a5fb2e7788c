"""Output that cannot be written: what was done stays done and is said so, and nothing is taken unseen."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pi_team.domain.model import Report
from pi_team.mailbox import Mailbox

if TYPE_CHECKING:
    from commands import Run, Spawn
    from pi_team.domain.model import Membership, Message

ABANDONED = "exec 3> >(exec true); wait $!"
"""In bash: descriptor 3 is a pipe whose only reader has left."""


@pytest.fixture
def crew(mailbox: Mailbox) -> Mailbox:
    """A team in which a note and a result wait for `lead`, both members offline."""
    lead, coder = mailbox.join("crew", "lead"), mailbox.join("crew", "coder")
    request = mailbox.send(lead, "coder", kind="request", subject="work", body="work")
    mailbox.claim(coder, message_id=request.id)
    mailbox.settle(coder, request.id, Report("completed", "the answer"))
    mailbox.send(coder, "lead", kind="note", subject="a note", body="a note")
    mailbox.leave(lead)
    mailbox.leave(coder)
    return mailbox


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """What a shell makes of a line in which `pi-team` is the command under test."""
    program = line.replace("pi-team", f"{sys.executable} -m pi_team")
    return subprocess.run(["bash", "-c", program], capture_output=True, text=True, timeout=20, check=False)


def waiting(mailbox: Mailbox) -> list[str]:
    """The kinds of what waits for `lead`."""
    messages = mailbox.look("crew").messages
    return [message.kind for message in messages if (message.recipient, message.state) == ("lead", "pending")]


@pytest.mark.parametrize(
    "line",
    [
        "pi-team send crew coder hi --as lead --note --json",
        pytest.param("pi-team send crew coder hi --as lead --note", marks=pytest.mark.slow),
        pytest.param("pi-team log crew --json", marks=pytest.mark.slow),
        pytest.param("pi-team log crew --bodies", marks=pytest.mark.slow),
    ],
)
def test_a_full_disk_behind_the_output_does_not_pass_for_a_change_that_failed(
    line: str, crew: Mailbox
) -> None:
    """A program that reads STORAGE repeats the call, because nothing was changed; here something was."""
    before = len(crew.look("crew").messages)
    ended = shell(f"{line} >/dev/full")
    assert ended.returncode == 1
    if "--json" in line:
        error = json.loads(ended.stderr)["error"]
        assert (error["code"], error["retryable"]) == ("OUTPUT", False)
    else:
        assert ended.stderr.startswith("error OUTPUT: cannot write the output: No space left on device. ")
    assert len(crew.look("crew").messages) == before + ("send" in line)


@pytest.mark.slow
def test_a_remark_that_nobody_can_read_is_no_failure(crew: Mailbox) -> None:
    """Remarks are for people; the command has done what it says on standard output."""
    ended = shell("pi-team send crew coder hi --as lead --note 2>/dev/full")
    assert (ended.returncode, ended.stdout.strip()) == (0, crew.look("crew").messages[-1].id)


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("pi-team inbox crew --as lead >/dev/full", 1),
        pytest.param("pi-team inbox crew --as lead --json >/dev/full", 1, marks=pytest.mark.slow),
        (f"{ABANDONED}; pi-team inbox crew --as lead >&3", 141),
    ],
)
def test_an_inbox_that_could_not_be_shown_takes_nothing(line: str, status: int, crew: Mailbox) -> None:
    """A note is seen when it was displayed, and a result that nobody saw is not reviewed."""
    assert shell(line).returncode == status
    assert waiting(crew) == ["result", "note"]
    assert crew.look("crew").members[0].displayed == "offline"


@pytest.mark.slow
def test_an_inbox_that_is_killed_while_it_shows_is_shown_again(crew: Mailbox, spawn: Spawn, run: Run) -> None:
    """More than a pipe holds, so that it stands in the middle of showing until somebody reads."""
    coder = crew.join("crew", "coder")
    for number in range(6):
        crew.send(coder, "lead", kind="note", subject=f"long {number}", body="x" * 15_000)
    crew.leave(coder)
    showing = spawn("inbox", "crew", "--as", "lead")
    assert "result (completed) from coder" in showing.line()
    showing.popen.kill()
    showing.popen.wait()
    shown = run("inbox", "crew", "--as", "lead").out
    assert "the answer" in shown
    assert all(f"long {number}" in shown for number in range(6))
    assert waiting(crew) == []


def test_a_note_that_comes_after_the_showing_is_not_taken_with_the_others(
    crew: Mailbox, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It arrives between what is displayed and what is taken: the next inbox shows it."""
    notes = Mailbox.notes

    def late(self: Mailbox, owner: Membership, **keywords: Any) -> tuple[Message, ...]:
        coder = crew.join("crew", "coder")
        crew.send(coder, "lead", kind="note", subject="late", body="late")
        crew.leave(coder)
        return notes(self, owner, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(Mailbox, "notes", late)
        assert "late" not in run("inbox", "crew", "--as", "lead").out
    assert waiting(crew) == ["note"]
    assert "late" in run("inbox", "crew", "--as", "lead").out


def test_a_worker_whose_reader_has_left_takes_no_note(crew: Mailbox, spawn: Spawn) -> None:
    """`pi-team work … | head -1`: the note that comes then stays for whoever can show it."""
    working = spawn("work", "crew", "worker", "--", "cat")
    assert "joined crew as worker" in working.line()
    assert working.popen.stdout is not None
    working.popen.stdout.close()
    coder = crew.join("crew", "coder")
    note = crew.send(coder, "worker", kind="note", subject="hello", body="hello")
    crew.leave(coder)
    assert working.popen.wait(20) == 141
    assert crew.look("crew").messages[-1] == note


PRINTED_BY_CLICK = [
    "pi-team --version",
    *(
        pytest.param(f"pi-team {words}", marks=pytest.mark.slow)
        for words in ("--help", "send --help", "pi install --help", "--version teams", "completion bash")
    ),
]


@pytest.mark.parametrize("line", PRINTED_BY_CLICK)
def test_help_and_version_end_as_every_output_does(line: str) -> None:
    """On a full disk one line with the code; silently where the reader has left."""
    ended = shell(f"{line} >/dev/full")
    assert ended.returncode == 1
    assert ended.stderr.startswith("error OUTPUT: cannot write the output: No space left on device. ")
    assert ended.stderr.count("\n") == 1
    ended = shell(f"{ABANDONED}; {line} >&3")
    assert (ended.returncode, ended.stderr) == (141, "")
    ended = shell(f"{line} >&-")
    assert (ended.returncode, ended.stderr) == (0, "")

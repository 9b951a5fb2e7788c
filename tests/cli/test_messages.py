"""Members of the moment: send, inbox, ask and wait, and that they always leave."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from pi_team.domain.model import Report

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands import Run, Spawn
    from pi_team.domain.model import Message, Outcome
    from pi_team.mailbox import Mailbox


@pytest.fixture
def crew(mailbox: Mailbox) -> Mailbox:
    """A team with `coder`, offline."""
    mailbox.leave(mailbox.join("crew", "coder"))
    return mailbox


def displayed(mailbox: Mailbox) -> dict[str, str]:
    return {entry.member.alias: entry.displayed for entry in mailbox.look("crew").members}


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def answer(mailbox: Mailbox, report: Report) -> Message:
    """As `coder`: claim what is asked next, and settle it."""
    coder = mailbox.join("crew", "coder")
    request = mailbox.claim(coder)
    assert request is not None
    mailbox.settle(coder, request.id, report)
    mailbox.leave(coder)
    return request


def test_send_queues_prints_the_id_and_leaves(crew: Mailbox, run: Run) -> None:
    ended = run("send", "crew", "coder", "\nfix it\nplease\n", "--as", "lead")
    (message,) = crew.look("crew").messages
    assert (ended.status, ended.out) == (0, f"{message.id}\n")
    assert ended.err == "queued; coder is offline and gets it when joining\n"
    assert (message.kind, message.subject, message.body) == ("request", "fix it", "\nfix it\nplease")
    assert displayed(crew)["lead"] == "offline"


def test_send_as_json_is_the_message(crew: Mailbox, run: Run) -> None:
    sent = run("send", "crew", "coder", "look", "--as", "lead", "--note", "--subject", "Hm", "--json").object
    assert sent["id"] == crew.look("crew").messages[0].id
    assert (sent["kind"], sent["subject"], sent["body"]) == ("note", "Hm", "look")


def test_the_own_alias_comes_from_the_environment(
    crew: Mailbox, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PI_TEAM_ALIAS", "boss")
    assert run("send", "crew", "coder", "hello").status == 0
    assert crew.look("crew").messages[0].sender == "boss"


def test_the_text_comes_from_standard_input(crew: Mailbox, run: Run) -> None:
    run("send", "crew", "coder", "-", "--as", "lead", stdin="größer\n".encode())
    assert crew.look("crew").messages[0].body == "größer"


@pytest.mark.parametrize(
    ("octets", "code"),
    [(b"a\xffb", "USAGE"), (b"", "USAGE"), (b" \n", "USAGE"), (b"x" * 16_001, "LIMIT_BODY")],
)
def test_what_cannot_be_a_text_is_refused_before_joining(
    octets: bytes, code: str, crew: Mailbox, run: Run
) -> None:
    before = crew.look("crew").revision
    ended = run("send", "crew", "coder", "-", "--as", "lead", "--json", stdin=octets)
    assert ended.error["code"] == code
    assert crew.look("crew").revision == before


@pytest.mark.usefixtures("crew")
def test_a_blank_text_is_said_to_be_blank_where_it_came_from(run: Run) -> None:
    """Whoever gave - is not told to give -."""
    ended = run("send", "crew", "coder", "", "--as", "lead")
    assert ended.err.startswith("error USAGE: TEXT is blank. Say something, or give - ")
    ended = run("send", "crew", "coder", "-", "--as", "lead", stdin=b"\n")
    assert ended.err.startswith("error USAGE: standard input is blank. ")
    assert "give -" not in ended.err


def test_a_text_is_measured_without_the_newlines_at_its_end(crew: Mailbox, run: Run) -> None:
    """16,000 bytes and the newline that every editor ends a file with: as much as an argument may have."""
    words = ("send", "crew", "coder", "-", "--as", "lead")
    longest = "é" * 8_000
    assert run(*words, stdin=f"{longest}\n\n".encode()).status == 0
    assert crew.look("crew").messages[-1].body == longest
    for octets in (f"{longest}x\n".encode(), f"{longest}\n\nx".encode(), b"x" * 16_000 + b"\n" * 9 + b"x"):
        ended = run(*words, stdin=octets)
        assert ended.err.startswith("error LIMIT_BODY: standard input is longer than 16,000 bytes")
    assert len(crew.look("crew").messages) == 1


def test_a_flood_of_newlines_is_not_read_to_its_end(crew: Mailbox, spawn: Spawn) -> None:
    """Newlines at the end do not count, and yet their number has a bound."""
    reading = spawn("send", "crew", "coder", "-", "--as", "lead", "--json", stdin=b"\n" * 4_000_000)
    assert reading.ended().error["code"] == "LIMIT_BODY"
    assert crew.look("crew").messages == ()


@pytest.mark.usefixtures("crew")
def test_a_reply_is_linked_by_the_beginning_of_an_id(run: Run) -> None:
    first = run("send", "crew", "coder", "first", "--as", "lead", "--note").out.strip()
    reply = run("send", "crew", "coder", "more", "--as", "lead", "--reply-to", first[:8], "--json").object
    assert (reply["parentId"], reply["rootId"]) == (first, first)


def test_inbox_peeks_without_changing_and_takes_once(crew: Mailbox, run: Run) -> None:
    run("send", "crew", "coder", "work", "--as", "lead")
    answer(crew, Report("failed", "could not"))
    run("send", "crew", "lead", "a note", "--as", "coder", "--note")
    run("send", "crew", "lead", "a request", "--as", "coder")
    before = crew.look("crew").revision
    peeked = run("inbox", "crew", "--as", "lead", "--peek", "--json").object
    assert crew.look("crew").revision == before
    taken = run("inbox", "crew", "--as", "lead")
    assert "result (failed) from coder to lead" in taken.out
    assert "note from coder to lead" in taken.out
    assert taken.err.startswith("1 request waits for lead: ")
    assert [message["kind"] for message in peeked["messages"]] == ["result", "note"]
    assert run("inbox", "crew", "--as", "lead", "--json").object["messages"] == []
    assert [message.state for message in crew.look("crew").messages] == [
        "completed",
        "completed",
        "seen",
        "pending",
    ]
    assert displayed(crew)["lead"] == "offline"


@pytest.mark.usefixtures("crew")
def test_an_empty_inbox_says_where_to_look(run: Run) -> None:
    ended = run("inbox", "crew", "--as", "coder")
    assert (ended.status, ended.out) == (0, "")
    assert ended.err.startswith("Nothing new for coder in crew. `pi-team log crew` ")
    assert run("inbox", "crew", "--as", "coder", "--json").err == ""


@pytest.mark.parametrize("extra", [[], ["--peek"]])
@pytest.mark.parametrize(("alias", "code"), [("BAD", "NAME_INVALID"), ("ghost", "MEMBER_UNKNOWN")])
def test_an_alias_that_nobody_has_is_no_empty_inbox(
    alias: str, code: str, extra: list[str], crew: Mailbox, run: Run
) -> None:
    """A slip in the own alias must not read as "nothing new"; and looking makes nobody a member."""
    before = crew.look("crew").revision
    ended = run("inbox", "crew", "--as", alias, *extra, "--json")
    assert (ended.status, ended.error["code"]) == (1, code)
    assert crew.look("crew").revision == before


def test_ask_waits_for_its_result_takes_it_and_leaves(crew: Mailbox, spawn: Spawn) -> None:
    asking = spawn("ask", "crew", "coder", "do it", "--as", "lead")
    eventually(lambda: len(crew.look("crew").messages) == 1)
    answer(crew, Report("completed", "the answer\n\x1b[31mred", files=("/a.py",)))
    ended = asking.ended()
    assert (ended.status, ended.out) == (0, "the answer\nred\n")
    assert "changed: /a.py\n" in ended.err
    assert [message.state for message in crew.look("crew").messages] == ["completed", "completed"]
    assert displayed(crew)["lead"] == "offline"


@pytest.mark.parametrize(("outcome", "status"), [("completed", 0), ("failed", 3), ("interrupted", 4)])
def test_the_exit_status_says_the_outcome(outcome: Outcome, status: int, crew: Mailbox, run: Run) -> None:
    request = run("send", "crew", "coder", "do it", "--as", "lead").out.strip()
    answer(crew, Report(outcome, "the answer"))
    ended = run("wait", "crew", request, "--as", "lead")
    assert (ended.status, ended.out) == (status, "the answer\n")


def test_ask_that_times_out_leaves_the_request_queued_and_wait_gets_its_result(
    crew: Mailbox, run: Run
) -> None:
    ended = run("ask", "crew", "coder", "do it", "--as", "lead", "--timeout", "0.05", "--json")
    assert (ended.status, ended.error["code"]) == (5, "TIMED_OUT")
    (request,) = crew.look("crew").messages
    assert f"pi-team wait crew {request.id} --as lead" in ended.error["hint"]
    assert request.state == "pending"
    assert run("wait", "crew", request.id, "--as", "lead", "--timeout", "0.05").status == 5
    answer(crew, Report("completed", "late"))
    for _again in range(2):
        ended = run("wait", "crew", request.id[:6], "--as", "lead", "--json")
        assert (ended.status, ended.object["body"], ended.object["parentId"]) == (0, "late", request.id)
        assert ended.object["state"] == "completed"
    assert displayed(crew)["lead"] == "offline"


def test_ask_takes_only_its_own_result(crew: Mailbox, run: Run) -> None:
    """Another result that waits for the same alias stays for the inbox."""
    run("send", "crew", "coder", "earlier", "--as", "lead")
    answer(crew, Report("completed", "earlier"))
    late = run("send", "crew", "coder", "later", "--as", "lead").out.strip()
    answer(crew, Report("completed", "later"))
    assert run("wait", "crew", late, "--as", "lead").out == "later\n"
    (message,) = run("inbox", "crew", "--as", "lead", "--json").object["messages"]
    assert message["body"] == "earlier"


@pytest.mark.usefixtures("crew")
def test_a_request_that_was_cancelled_is_not_waited_for(run: Run) -> None:
    """Its emitter was removed meanwhile: no result will ever come."""
    request = run("send", "crew", "coder", "work", "--as", "lead").out.strip()
    run("remove", "crew", "lead", "--yes")
    ended = run("wait", "crew", request, "--as", "lead", "--json")
    assert (ended.status, ended.object["state"]) == (4, "interrupted")


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGINT, 130),
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow),
    ],
)
def test_ask_that_is_told_to_stop_leaves_and_says_how_to_go_on(
    number: int, status: int, crew: Mailbox, spawn: Spawn
) -> None:
    asking = spawn("ask", "crew", "coder", "do it", "--as", "lead")
    eventually(lambda: displayed(crew).get("lead") == "busy" and len(crew.look("crew").messages) == 1)
    asking.signal(number)
    ended = asking.ended()
    assert (ended.status, ended.out) == (status, "")
    assert "the request stays queued; `pi-team wait crew " in ended.err
    assert displayed(crew)["lead"] == "offline"
    assert crew.look("crew").messages[0].state == "pending"


@pytest.mark.slow
def test_one_shots_under_one_alias_wait_for_each_other(crew: Mailbox, spawn: Spawn) -> None:
    """Scripts that send at the same time under the same alias all succeed."""
    senders = [spawn("send", "crew", "coder", f"message {number}", "--as", "lead") for number in range(4)]
    assert [sender.ended().status for sender in senders] == [0] * 4
    assert len(crew.look("crew").messages) == 4


@pytest.mark.slow
def test_a_wait_for_locks_is_said(crew: Mailbox, run: Run) -> None:
    """After a second of waiting a person learns for what; the write then goes through."""
    lock = f"{crew.path}/.locks/crew.lock"
    os.close(os.open(lock, os.O_CREAT | os.O_EXCL, 0o600))
    release = threading.Timer(1.5, os.unlink, [lock])
    release.start()
    ended = run("send", "crew", "coder", "hello", "--as", "lead")
    release.join()
    assert ended.status == 0
    assert "wait" in ended.err

"""A worker answers requests with a command, and leaves however it ends, with the command ended too."""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from pi_team.cli.answering import answer
from pi_team.domain.model import Report, changed_message
from pi_team.domain.reports import report_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands import Ended, Run, Spawn
    from pi_team.domain.model import Membership, Message
    from pi_team.mailbox import Mailbox


@pytest.fixture
def lead(mailbox: Mailbox) -> Membership:
    """A present member who asks; `coder` is a member, offline."""
    mailbox.leave(mailbox.join("crew", "coder"))
    lead = mailbox.join("crew", "lead")
    mailbox.heartbeat(lead, "idle")
    return lead


def ask(mailbox: Mailbox, lead: Membership, body: str, subject: str = "work") -> Message:
    return mailbox.send(lead, "coder", kind="request", subject=subject, body=body)


def result(mailbox: Mailbox, request: Message) -> Message:
    """The one result of a request, when it is there."""
    eventually(lambda: any(message.parent_id == request.id for message in mailbox.look("crew").messages))
    (found,) = (message for message in mailbox.look("crew").messages if message.parent_id == request.id)
    return found


def displayed(mailbox: Mailbox, alias: str = "coder") -> str:
    return {entry.member.alias: entry.displayed for entry in mailbox.look("crew").members}[alias]


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def once(run: Run, *words: str, options: tuple[str, ...] = ()) -> Ended:
    """One request, in this process."""
    return run("work", "crew", "coder", "--once", *options, "--", *words)


def test_a_request_is_answered_with_the_output_of_the_command(
    mailbox: Mailbox, lead: Membership, run: Run
) -> None:
    request = ask(mailbox, lead, "shout", "hello")
    ended = once(run, "sh", "-c", "cat >/dev/null; echo done; echo")
    assert ended.status == 0
    found = result(mailbox, request)
    assert found.report is not None
    assert (found.body, found.report.outcome) == ("done", "completed")
    lines = [line.split("  ", 1)[1] for line in ended.out.splitlines()]
    assert lines[0] == "joined crew as coder; Ctrl-C leaves"
    assert lines[1] == "request from lead: hello"
    assert lines[2].startswith("completed after ")
    assert lines[3] == "left crew"
    assert displayed(mailbox) == "offline"


def test_the_command_gets_the_message_as_json_and_four_variables_and_no_text_of_a_peer(
    mailbox: Mailbox, lead: Membership, run: Run
) -> None:
    request = ask(mailbox, lead, "$(touch /tmp/evil) \u202e 漢", "; rm -rf /")
    program = (
        "import json, os, sys; names = ('TEAM', 'ALIAS', 'ID', 'FROM');"
        "print(json.dumps([json.load(sys.stdin), {n: os.environ['PI_TEAM_' + n] for n in names},"
        " [v for v in os.environ.values() if 'rm -rf' in v or 'evil' in v], sys.argv]))"
    )
    once(run, sys.executable, "-c", program)
    message, variables, leaked, arguments = json.loads(result(mailbox, request).body)
    assert (message["id"], message["subject"], message["body"]) == (request.id, request.subject, request.body)
    assert (message["from"], message["state"]) == ("lead", "processing")
    assert "claim" not in message
    assert variables == {"TEAM": "crew", "ALIAS": "coder", "ID": request.id, "FROM": "lead"}
    assert (leaked, arguments) == ([], ["-c"])


def test_an_id_that_is_no_word_stays_out_of_the_environment(
    mailbox: Mailbox, lead: Membership, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer chooses its ids, and could put a NUL, a newline or a command there."""
    request = ask(mailbox, lead, "x")
    monkeypatch.setattr("pi_team.cli.work.answer", answering_as(request, "a\nb;$(x)\0"))
    once(run, "sh", "-c", 'cat >/dev/null; echo "${PI_TEAM_ID-none}"')
    assert result(mailbox, request).body == "none"


def answering_as(request: Message, identifier: str) -> Callable[..., Any]:
    return lambda command, _request, *rest, **more: answer(
        command, changed_message(request, id=identifier), *rest, **more
    )


def test_a_failing_command_is_a_failed_result_with_the_tail_of_its_errors(
    mailbox: Mailbox, lead: Membership, run: Run
) -> None:
    request = ask(mailbox, lead, "x")
    once(run, "sh", "-c", "echo some output; seq 100000 >&2; echo the reason >&2; exit 7")
    found = result(mailbox, request)
    assert found.report is not None
    assert found.report.outcome == "failed"
    assert found.body.startswith("The command failed. Its exit status was 7.\n\nStandard error:\n")
    assert "99999\n100000\nthe reason\n\nStandard output:\nsome output" in found.body


def test_a_command_that_cannot_be_started_fails_the_request(
    mailbox: Mailbox, lead: Membership, run: Run, tmp_path: Any
) -> None:
    script = tmp_path / "script"
    script.write_text("no interpreter\n")
    script.chmod(0o700)
    request = ask(mailbox, lead, "x")
    once(run, str(script))
    assert result(mailbox, request).body == "The command could not be started: Exec format error."


def test_a_request_that_takes_too_long_fails_and_its_command_is_ended(
    mailbox: Mailbox, lead: Membership, run: Run
) -> None:
    request = ask(mailbox, lead, "x")
    started = time.monotonic()
    once(run, "sh", "-c", "echo $$; sleep 600", options=("--timeout", "0.3"))
    assert time.monotonic() - started < 10
    found = result(mailbox, request)
    assert found.body.startswith("The command failed. It was ended after 0.3 s.\n")
    assert not psutil.pid_exists(int(found.body.split()[-1]))


def test_a_huge_output_is_cut_to_what_a_report_may_hold(mailbox: Mailbox, lead: Membership, run: Run) -> None:
    """Every character is a control that takes six bytes as JSON: the bytes bind, not the characters."""
    request = ask(mailbox, lead, "x")
    once(run, "sh", "-c", "printf head; head -c 5000000 /dev/zero | tr '\\0' '\\1'; printf tail")
    found = result(mailbox, request)
    assert found.report is not None
    assert found.body.startswith("head")
    assert found.body.endswith("tail")
    assert "characters left out" in found.body
    assert 31_900 < report_bytes(found.report) <= 32_000


def test_only_requests_are_claimed_and_notes_are_shown(mailbox: Mailbox, lead: Membership, run: Run) -> None:
    """A result that waits for the worker's alias is its person's to take, not the command's to answer."""
    coder = mailbox.join("crew", "coder")
    asked = mailbox.send(coder, "lead", kind="request", subject="question", body="?")
    mailbox.leave(coder)
    claimed = mailbox.claim(lead, message_id=asked.id)
    assert claimed is not None
    mailbox.settle(lead, asked.id, Report("completed", "answer"))
    mailbox.send(lead, "coder", kind="note", subject="by the way", body="by the way")
    request = ask(mailbox, lead, "x")
    ended = once(run, "true")
    assert "note from lead: by the way" in ended.out
    states = {message.id: message.state for message in mailbox.look("crew").messages}
    assert states[request.id] == "completed"
    assert states[result(mailbox, asked).id] == "pending"


def test_requests_are_answered_in_order_and_at_once(mailbox: Mailbox, lead: Membership, spawn: Spawn) -> None:
    """An idle worker wakes when the record changes, not at its next heartbeat; the next follows directly."""
    worker = spawn("work", "crew", "coder", "--json", "--", "cat")
    worker.event("joined")
    eventually(lambda: displayed(mailbox) == "idle")
    started = time.monotonic()
    requests = [ask(mailbox, lead, f"body {number}", f"number {number}") for number in range(3)]
    settled = [worker.event("settled")["id"] for _ in requests]
    assert time.monotonic() - started < 1.9
    assert settled == [request.id for request in requests]
    worker.signal(signal.SIGTERM)
    ended = worker.ended()
    assert ended.status == 143
    assert ended.objects[-1] == {"event": "left", "team": "crew"}


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)],
)
def test_a_worker_told_to_stop_ends_its_command_leaves_and_the_request_is_interrupted(
    number: int, status: int, mailbox: Mailbox, lead: Membership, spawn: Spawn
) -> None:
    request = ask(mailbox, lead, "x")
    worker = spawn("work", "crew", "coder", "--json", "--", "sh", "-c", "sleep 600 & wait")
    worker.event("request")
    eventually(lambda: displayed(mailbox) == "busy")
    eventually(lambda: len(psutil.Process(worker.pid).children(recursive=True)) == 2)
    children = psutil.Process(worker.pid).children(recursive=True)
    worker.signal(number)
    ended = worker.ended()
    assert ended.status == status
    found = result(mailbox, request)
    assert found.report is not None
    assert found.report.outcome == "interrupted"
    assert displayed(mailbox) == "offline"
    eventually(lambda: not any(child.is_running() and child.status() != "zombie" for child in children))


def test_a_worker_whose_reader_leaves_leaves_too(mailbox: Mailbox, lead: Membership, spawn: Spawn) -> None:
    """`pi-team work … | head -1`: quiet, with the exit status of SIGPIPE, and no member is left behind."""
    worker = spawn("work", "crew", "coder", "--", "cat")
    assert worker.line().endswith("joined crew as coder; Ctrl-C leaves\n")
    assert worker.popen.stdout is not None
    worker.popen.stdout.close()
    ask(mailbox, lead, "x")
    assert worker.popen.wait(15) == 141
    assert worker.popen.stderr is not None
    assert worker.popen.stderr.read() == ""
    assert displayed(mailbox) == "offline"


@pytest.mark.slow
def test_a_killed_worker_is_swept_by_another_worker(mailbox: Mailbox, lead: Membership, spawn: Spawn) -> None:
    """Nobody else polls: the other worker notices the stale claim and settles it as interrupted."""
    request = ask(mailbox, lead, "x")
    other = spawn("work", "crew", "other", "--json", "--", "cat")
    other.event("joined")
    worker = spawn("work", "crew", "coder", "--json", "--", "sleep", "600")
    worker.event("request")
    eventually(lambda: bool(psutil.Process(worker.pid).children()))
    (command,) = psutil.Process(worker.pid).children()
    worker.signal(signal.SIGKILL)
    worker.ended()
    command.kill()
    found = result(mailbox, request)
    assert found.report is not None
    assert found.report.outcome == "interrupted"


@pytest.mark.usefixtures("lead")
def test_a_living_alias_is_refused(run: Run) -> None:
    ended = run("work", "crew", "lead", "--json", "--", "cat")
    assert (ended.status, ended.error["code"]) == (1, "ALIAS_ALIVE")


@pytest.mark.slow
def test_a_long_command_keeps_its_worker_present_and_notes_shown(
    mailbox: Mailbox, lead: Membership, spawn: Spawn
) -> None:
    """Heartbeats go on while the command runs, so that nobody takes a busy worker for dead."""
    request = ask(mailbox, lead, "x")
    worker = spawn("work", "crew", "coder", "--json", "--", "sleep", "5")
    worker.event("request")
    mailbox.send(lead, "coder", kind="note", subject="meanwhile", body="meanwhile")
    presence = f"{mailbox.path}/crew/presence/coder.json"
    seen = set()
    while not any(message.parent_id == request.id for message in mailbox.look("crew").messages):
        with open(presence, encoding="utf-8") as file:
            seen.add(json.load(file)["seen"])
        time.sleep(0.05)
    assert len(seen) >= 3
    assert worker.event("note")["message"]["subject"] == "meanwhile"
    assert worker.event("settled")["outcome"] == "completed"

"""Showing, claiming, releasing and settling: every claimed request ends once and is answered once."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from pi_team.domain import operations as op
from pi_team.domain.model import Report
from pi_team.domain.reports import report_bytes
from pi_team.errors import AlreadyClaiming, MessageUnknown, NotClaimed, ReportInvalid
from pi_team.limits import REPORT_BYTES, REPORT_FILE_CHARACTERS, REPORT_FILES, STORED_BODY_CHARACTERS

DONE = Report("completed", "done")
UNFIT: Any = {"outcome": "?", "body": ""}


def test_notes_are_shown_once(pair: Any) -> None:
    """They become seen as they are answered; requests and other people's notes stay."""
    pair.join("c")
    shown = [pair.send(sender, "b", kind="note") for sender in ("a", "c")]
    pair.send("a", "b")
    pair.send("a", "c", kind="note")
    answer = pair.do(op.notes, pair.seats["b"])
    assert [(message.id, message.state) for message in answer] == [(note.id, "seen") for note in shown]
    change = pair.attempt(op.notes, pair.seats["b"])
    assert (change.answer, change.state) == ((), pair.state)


def test_a_note_that_came_after_the_look_is_not_taken_unseen(pair: Any) -> None:
    """Whoever displays before it takes names what it displayed; another's note and a request stay, too."""
    displayed = pair.send("a", "b", kind="note")
    others = [pair.send("a", "b", kind="note"), pair.send("b", "a", kind="note"), pair.send("a", "b")]
    ids = {message.id for message in (displayed, *others[1:])}
    assert [note.id for note in pair.do(op.notes, pair.seats["b"], ids=ids)] == [displayed.id]
    assert {pair.state.message(other.id).state for other in others} == {"pending"}
    assert pair.do(op.notes, pair.seats["b"], ids=ids) == ()


def test_the_first_pending_request_or_result_is_claimed(pair: Any) -> None:
    """In record order, whatever its kind; the claim is the claimant's token, and comes last in the text."""
    pair.send("a", "b", kind="note")
    first, second = pair.send("a", "b"), pair.send("a", "b")
    claimed = pair.claim("b")
    assert (claimed.id, claimed.state, claimed.claim) == (first.id, "processing", pair.seats["b"].token)
    assert claimed.text.endswith(f',"rootId":"{first.id}","claim":"{pair.seats["b"].token}"}}')
    pair.settle("b", first)
    assert pair.claim("b").id == second.id
    assert pair.claim("a").id == pair.result(first).id


def test_a_certain_message_is_claimed(pair: Any) -> None:
    """For who waits for one result and leaves the rest to somebody else."""
    pair.send("a", "b")
    second = pair.send("a", "b")
    assert pair.claim("b", message_id=second.id).id == second.id


def test_there_may_be_nothing_to_claim(pair: Any) -> None:
    """That is an answer and not an error, and it changes nothing."""
    note = pair.send("a", "b", kind="note")
    others = pair.send("b", "a")
    settled = pair.worked("a", "b").parent_id
    for values in (
        {},
        {"ready": False},
        {"message_id": note.id},
        {"message_id": others.id},
        {"message_id": settled},
    ):
        change = pair.attempt(op.claim, pair.seats["b"], **values)
        assert (change.answer, change.refusal) == (None, None)
        assert change.state is pair.state
    pair.send("a", "b")
    assert pair.claim("b", ready=False) is None
    with pytest.raises(MessageUnknown, match="crew has no message 'none'"):
        pair.claim("b", message_id="none")


def test_one_member_has_one_claim(pair: Any) -> None:
    """A second one is refused until the first has ended, also for a certain message."""
    first, second = pair.send("a", "b"), pair.send("a", "b")
    pair.claim("b")
    for values in ({}, {"message_id": second.id}):
        with pytest.raises(AlreadyClaiming, match=f"b is working on request {first.id} already"):
            pair.claim("b", **values)


def test_a_released_message_is_as_it_was_before(pair: Any) -> None:
    """Nothing was done, so that nothing is told to the emitter, and it can be claimed again."""
    request = pair.send("a", "b")
    pair.claim("b")
    assert pair.do(op.release, pair.seats["b"], request.id) is True
    assert pair.message(request).text == request.text
    assert pair.claim("b").id == request.id


def test_a_settled_request_is_answered(pair: Any) -> None:
    """One result in the same publication: to the emitter, same subject and root, its parent the request."""
    root = pair.send("b", "a", kind="note")
    request = pair.send("a", "b", subject="Do it", parent=root.id)
    pair.claim("b")
    pair.now += 7
    report = Report("failed", "no é", ("f",), ("t: failed",))
    assert pair.do(op.settle, pair.seats["b"], request.id, report) is True
    assert (pair.message(request).state, pair.message(request).claim) == ("completed", pair.seats["b"].token)
    result = pair.state.messages[-1]
    assert result.text == (
        f'{{"id":"{result.id}","team":"crew","from":"b","to":"a","subject":"Do it","body":"no é",'
        f'"kind":"result","state":"pending","created":1000007,"rootId":"{root.id}","parentId":"{request.id}",'
        '"result":{"outcome":"failed","body":"no é","files":["f"],"tests":["t: failed"]}}'
    )


@pytest.mark.parametrize(
    ("outcome", "state"),
    [("completed", "completed"), ("failed", "completed"), ("interrupted", "interrupted")],
)
def test_a_message_ends_as_its_outcome_says(pair: Any, outcome: Any, state: str) -> None:
    """A failure was worked on all the same; a reviewed result ends without another, and keeps its report."""
    result = pair.worked("a", "b", outcome)
    assert pair.state.messages[0].state == state
    pair.claim("a")
    assert pair.settle("a", result, outcome) is True
    reviewed = pair.message(result)
    assert (reviewed.state, reviewed.report) == (state, Report(outcome, "done"))
    assert len(pair.state.messages) == 2


def test_what_is_final_already_is_said_to_be(pair: Any) -> None:
    """Settled before, or cancelled meanwhile: a session that comes late goes on instead of stopping."""
    pair.join("c")
    settled, cancelled = pair.send("a", "b"), pair.send("c", "b")
    pair.claim("b")
    pair.settle("b", settled)
    pair.claim("b")
    pair.do(op.leave, pair.seats["c"])
    pair.do(op.remove_member, None, "c")
    assert pair.message(cancelled).claim is None
    for message in (settled, cancelled):
        for operation, rest in ((op.settle, (DONE,)), (op.settle, (Report(**UNFIT),)), (op.release, ())):
            change = pair.attempt(operation, pair.seats["b"], message.id, *rest)
            assert (change.answer, change.refusal) == (False, None)
            assert change.state is pair.state


def test_only_the_claimant_settles_and_releases(pair: Any) -> None:
    """Neither the emitter, nor a recipient that has not claimed it, nor an older token of it."""
    request, other = pair.send("a", "b"), pair.send("a", "b")
    pair.claim("b")
    cases = [
        ("a", request.id, f"message {request.id} is addressed to b, not to a"),
        ("b", other.id, f"message {other.id} is pending and claimed by nobody"),
        ("b", "none", "crew has no message 'none'"),
    ]
    for alias, message_id, reason in cases:
        for operation, rest in ((op.settle, (DONE,)), (op.release, ())):
            with pytest.raises(NotClaimed, match=reason):
                pair.do(operation, pair.seats[alias], message_id, *rest)


def test_a_claim_of_an_older_token_is_not_the_new_ones(pair: Any) -> None:
    """Even where a peer failed to interrupt it, the new session does not get hold of it."""
    request = pair.send("a", "b")
    pair.claim("b")
    claimed = pair.state
    pair.join("b", session="session-b")
    pair.state = attrs.evolve(pair.state, messages=claimed.messages)
    with pytest.raises(NotClaimed, match="is processing and claimed by another session"):
        pair.settle("b", request)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"outcome": "done"}, "the outcome is 'done'"),
        ({"body": None}, "body is a string"),
        ({"files": (1,)}, "files and tests are lists of strings"),
        ({"body": "b" * (STORED_BODY_CHARACTERS + 1)}, "16,001 characters in its body; 16,000 is the limit"),
        ({"files": ("f",) * (REPORT_FILES + 1)}, "51 files; 50 is the limit"),
        ({"tests": ("t",) * (REPORT_FILES + 1)}, "51 tests; 50 is the limit"),
        ({"files": ("f" * (REPORT_FILE_CHARACTERS + 1),)}, "4,097 characters in a file's name; 4,096"),
        ({"tests": ("t" * 20_000, "u" * 12_000)}, "32,064 bytes as JSON; 32,000 is the limit"),
    ],
)
def test_a_report_is_bounded(pair: Any, values: Any, reason: str) -> None:
    """The work stays claimed, so that a shorter report can follow."""
    request = pair.send("a", "b")
    pair.claim("b")
    with pytest.raises(ReportInvalid, match=reason):
        pair.do(op.settle, pair.seats["b"], request.id, attrs.evolve(DONE, **values))
    assert pair.message(request).state == "processing"
    assert pair.settle("b", request)


def test_a_report_may_fill_its_limit(pair: Any) -> None:
    """The bounds are inclusive."""
    request = pair.send("a", "b")
    pair.claim("b")
    report = attrs.evolve(DONE, body="é" * 15_000, tests=("t",))
    report = attrs.evolve(report, tests=("t" * (1 + REPORT_BYTES - report_bytes(report)),))
    assert report_bytes(report) == REPORT_BYTES
    assert pair.do(op.settle, pair.seats["b"], request.id, report)

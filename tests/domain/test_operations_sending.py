"""What may be sent, and why not: every refusal names what is wrong with the values that were given."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from pi_team.domain import operations as op
from pi_team.domain.capacity import records_taken, slots_taken
from pi_team.errors import (
    Duplicate,
    LimitBody,
    LimitHistory,
    LimitInput,
    LimitRecipient,
    LimitSender,
    LimitSubject,
    LimitThread,
    MembershipLost,
    ParentNotCompleted,
    ParentUnknown,
    PiTeamError,
    RecipientUnknown,
    SelfAddressed,
    UsageError,
)
from pi_team.limits import MEMBER_SLOTS, RECORDS, THREAD_MESSAGES


def test_a_message_is_queued_in_the_order_that_peers_write(pair: Any) -> None:
    """Without a parent it is the root of its own thread."""
    message = pair.send("a", "b", subject="Hello", body="é")
    assert message is pair.state.messages[-1]
    assert message.text == (
        f'{{"id":"{message.id}","team":"crew","from":"a","to":"b","subject":"Hello","body":"é",'
        f'"kind":"request","state":"pending","created":1000000,"rootId":"{message.id}"}}'
    )
    reply = pair.send("b", "a", kind="note", parent=message.id)
    assert reply.text.endswith(f'"rootId":"{message.id}","parentId":"{message.id}"}}')


def test_an_offline_recipient_is_fine(pair: Any) -> None:
    """What is addressed to it waits."""
    pair.do(op.leave, pair.seats["b"])
    assert pair.send("a", "b").state == "pending"


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"to": "a"}, SelfAddressed, "a cannot send a message to itself"),
        ({"to": "x"}, RecipientUnknown, "'x' is not a member of crew: its members are a, b"),
        ({"kind": "result"}, UsageError, "a request or a note, not 'result'"),
        ({"subject": ""}, LimitSubject, "the subject is blank"),
        ({"subject": " \t\n\v\f\r\u00a0\u2028\ufeff"}, LimitSubject, "the subject is blank"),
        ({"subject": "s" * 161}, LimitSubject, "the subject has 161 characters; 160 is the limit"),
        ({"body": "é" * 8001}, LimitBody, "the body has 16,002 bytes; 16,000 is the limit"),
        ({"body": "\n" * 11_000}, LimitInput, "has 22,051 bytes as JSON; 20,000 is the limit"),
        ({"parent": "none"}, ParentUnknown, "crew has no message 'none'"),
    ],
)
def test_what_cannot_be_sent(pair: Any, values: Any, error: type[PiTeamError], message: str) -> None:
    """The team stays the very object that it was."""
    given = {"to": "b", "kind": "request", "subject": "S", "body": "B"} | values
    change = pair.attempt(op.send, pair.seats["a"], **given)
    assert change.state is pair.state
    with pytest.raises(error, match=message):
        change.unwrap()


def test_an_unknown_recipient_is_answered_with_those_there_are(crew: Any) -> None:
    """The hint can be followed as it stands."""
    crew.join("a")
    hint = crew.attempt(op.send, crew.seats["a"], to="x", kind="note", subject="S", body="").refusal.hint
    assert hint == "Nobody else has joined yet."
    crew.join("b", "c")
    hint = crew.attempt(op.send, crew.seats["a"], to="x", kind="note", subject="S", body="").refusal.hint
    assert hint == "Address one of: b, c."


@pytest.mark.parametrize("values", [{"subject": "\x1c"}, {"subject": "\x85"}, {"subject": "s" * 160}])
def test_what_javascript_does_not_trim_is_a_subject(pair: Any, values: Any) -> None:
    """Python's idea of white space is another one."""
    assert pair.send("a", "b", **values).subject == values["subject"]


def test_text_that_no_encoding_holds_is_sent(pair: Any) -> None:
    """Lone surrogates count as the three bytes of a replacement; halves that meet are one character."""
    assert pair.send("a", "b", body="\ud83d" * 1000).body == "\ud83d" * 1000
    assert pair.send("a", "b", body="\ud83d\udd11").body == "🔑"
    with pytest.raises(LimitBody):
        pair.send("a", "b", body="\ud83d" * 5334)


def test_a_stranger_cannot_send(pair: Any) -> None:
    """Membership is checked before everything else."""
    with pytest.raises(MembershipLost):
        pair.do(op.send, attrs.evolve(pair.seats["a"], token="x"), to="x", kind="?", subject="", body="")


def test_the_same_message_within_a_minute_is_a_repetition(pair: Any) -> None:
    """Sender, recipient, subject and body together; whatever its kind and state."""
    first = pair.send("a", "b", kind="note", body="B")
    pair.do(op.notes, pair.seats["b"])
    pair.now += 59_999
    with pytest.raises(Duplicate, match=f"sent to b 59 s ago as {first.id}; within 60 s"):
        pair.send("a", "b", kind="request", body="B")
    pair.send("a", "b", body="C")
    pair.send("a", "b", body="B", subject="T")
    pair.send("b", "a", body="B")
    pair.now += 1
    pair.send("a", "b", body="B")


def test_a_clock_that_stepped_back_does_not_extend_the_minute(pair: Any) -> None:
    """A message from the future would otherwise be a repetition for as long as the step was."""
    pair.send("a", "b", body="B")
    pair.now -= 1
    pair.send("a", "b", body="B")


def test_a_parent_has_to_involve_the_sender(pair: Any) -> None:
    """A thread is between those who are in it."""
    pair.join("c")
    request = pair.send("a", "b")
    with pytest.raises(ParentUnknown, match="is between a and b, not from or to c"):
        pair.send("c", "a", parent=request.id)


@pytest.mark.parametrize("outcome", ["failed", "interrupted"])
def test_more_work_is_not_built_on_what_was_not_completed(pair: Any, outcome: str) -> None:
    """Neither on the request nor on its result, by neither end; a word about it is always possible."""
    result = pair.worked("a", "b", outcome)
    for parent in (result.id, result.parent_id):
        for sender, to in (("a", "b"), ("b", "a")):
            with pytest.raises(ParentNotCompleted, match=f"the work of {parent} ended as {outcome}"):
                pair.send(sender, to, parent=parent)
            pair.send(sender, to, kind="note", parent=parent)


def test_more_work_is_built_on_what_was_completed_or_goes_on(pair: Any) -> None:
    """A question while the work goes on, a follow-up when it is done, also if its review was cut short."""
    request = pair.send("a", "b")
    question = pair.send("b", "a", parent=request.id)
    pair.claim("b")
    pair.settle("b", request)
    pair.claim("a", message_id=pair.result(request).id)
    pair.do(op.leave, pair.seats["a"])
    pair.join("a")
    assert pair.message(pair.result(request)).state == "interrupted"
    for parent in (request, question, pair.result(request)):
        assert pair.send("a", "b", parent=parent.id).root_id == request.id


def test_a_thread_has_eight_messages_besides_results(pair: Any) -> None:
    """Two agents must not talk to each other for ever; a new thread is a decision."""
    result = pair.worked("a", "b")
    for _ in range(THREAD_MESSAGES - 1):
        last = pair.send("a", "b", kind="note", parent=result.id)
    with pytest.raises(LimitThread, match=f"the thread of {last.id} has 8 messages; 8 is the limit"):
        pair.send("b", "a", parent=last.id)
    pair.send("b", "a")


def test_a_recipient_has_fifty_slots(pair: Any) -> None:
    """Its own outstanding requests reserve some of them for their results."""
    for number in range(MEMBER_SLOTS):
        if number % 5:
            pair.send("a", "b", kind="note")
        else:
            pair.send("b", "a")
    assert (slots_taken(pair.state, "b"), slots_taken(pair.state, "a")) == (50, 10)
    with pytest.raises(LimitRecipient, match="b has 50 unsettled or reserved; 50 is the limit"):
        pair.send("a", "b", kind="note")
    pair.do(op.notes, pair.seats["b"])
    pair.send("a", "b", kind="note")


def test_a_request_needs_a_slot_for_its_result(pair: Any) -> None:
    """The result comes unasked, so there has to be room for it before the work begins."""
    pair.join("c", "d")
    for _ in range(MEMBER_SLOTS):
        pair.send("c", "a", kind="note")
    with pytest.raises(LimitSender, match="a has 50 unsettled or reserved; 50 is the limit"):
        pair.send("a", "b")
    pair.send("a", "b", kind="note")
    # The room is kept while the request becomes its result, whoever else sends.
    pair.do(op.notes, pair.seats["a"])
    request = pair.send("a", "b")
    for _ in range(MEMBER_SLOTS - 1):
        pair.send("c", "a", kind="note")
    with pytest.raises(LimitRecipient):
        pair.send("d", "a", kind="note")
    pair.claim("b")
    pair.settle("b", request)
    assert slots_taken(pair.state, "a") == MEMBER_SLOTS


def test_the_history_keeps_room_for_every_result(pair: Any) -> None:
    """499 records: a note fits, a request with its result does not; and the promised results still come."""
    request = pair.send("a", "b")
    while records_taken(pair.state) < RECORDS - 1:
        pair.send("a", "b", kind="note")
        pair.do(op.notes, pair.seats["b"])
    with pytest.raises(LimitHistory, match=r"has 499 records, .* and a request needs 2; 500 is the limit"):
        pair.send("a", "b")
    pair.send("a", "b", kind="note")
    with pytest.raises(LimitHistory, match="a note needs 1"):
        pair.send("b", "a", kind="note")
    pair.claim("b")
    assert pair.settle("b", request)
    assert len(pair.state.messages) == RECORDS


def test_an_overfilled_team_only_stops_sending(pair: Any) -> None:
    """A peer put more into the record than we would; what is there can still be worked off."""
    request = pair.send("a", "b")
    extra = tuple(attrs.evolve(request, id=f"x{number}") for number in range(RECORDS + 20))
    texts = [message.__class__.from_json(request.to_json() | {"id": message.id}) for message in extra]
    pair.state = attrs.evolve(pair.state, messages=(request, *texts))
    with pytest.raises(LimitRecipient, match="b has 521"):
        pair.send("a", "b")
    pair.claim("b")
    assert pair.settle("b", request)
    pair.claim("b")
    pair.do(op.leave, pair.seats["b"])
    assert pair.do(op.remove_member, pair.seats["a"], "b").refused == RECORDS + 19
    assert len(pair.state.messages) == 2 * (RECORDS + 21)

"""Polling, claiming and delivering: when, in which order, and never two at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from pi_team.session.effects import AskReadiness, Deliver, Remember, Show
from pi_team.session.events import NotStarted, Poll, Readiness, Settled, Started
from scripted_host import BUSY, READY, of

if TYPE_CHECKING:
    from scripted_host import Host


@pytest.mark.parametrize(
    "hindrance",
    [{"model": False}, {"idle": False}, {"queued": True}, {"prompt": True}, {"editor_empty": False}],
    ids=lambda hindrance: next(iter(hindrance)),
)
def test_each_hindrance_keeps_the_message_pending(alice: Host, bob: Host, hindrance: dict[str, bool]) -> None:
    """No model, a running turn, queued input, an open dialogue, a half-written prompt: nothing is claimed."""
    alice.team("send bob Fix the parser")
    bob.ready = attrs.evolve(READY, **hindrance)
    bob.poll()
    assert [message.state for message in bob.messages()] == ["pending"]
    assert bob.delivered is None
    bob.ready = READY
    bob.poll()
    assert bob.delivered is not None


def test_the_membership_is_written_down_before_the_claim(alice: Host, bob: Host) -> None:
    """The host is asked again behind the entry, so that its answer proves that the entry is written."""
    alice.team("send bob Fix the parser")
    bob.answers = False
    assert of(AskReadiness, bob.poll())
    joined = bob.entry
    assert joined is not None
    named = {"team": "crew", "alias": "bob", "session": "session-bob", "paused": None}
    assert joined == joined | named
    effects = bob.tell(READY)
    assert [type(effect) for effect in effects] == [Remember, AskReadiness]
    assert effects[0] == Remember(joined | {"paused": "recovery"})
    assert bob.own_claims() == []
    assert of(Deliver, bob.tell(READY))
    assert len(bob.own_claims()) == 1


def test_a_host_that_became_busy_behind_the_entry(alice: Host, bob: Host) -> None:
    """Nothing was claimed, and the entry does not stay as if something were."""
    alice.team("send bob Fix the parser")
    bob.answers = False
    bob.poll()
    bob.tell(READY)
    bob.tell(BUSY)
    assert bob.own_claims() == []
    bob.poll()
    assert bob.entry is not None
    assert bob.entry["paused"] is None


def test_a_readiness_that_nobody_asked_for_claims_nothing(alice: Host, bob: Host) -> None:
    """A host that tells its readiness again and again, or late, starts no work with it."""
    alice.team("send bob Fix the parser")
    bob.answers = False
    for _ in range(3):
        assert bob.tell(READY) == []
    bob.poll()
    bob.tell(BUSY)
    assert bob.tell(READY) == []
    assert bob.own_claims() == []


def test_one_question_at_a_time(alice: Host, bob: Host) -> None:
    """Polls while the host owes its answer ask no second time."""
    alice.team("send bob Fix the parser")
    bob.answers = False
    asked = [effect for _ in range(5) for effect in of(AskReadiness, bob.poll())]
    assert len(asked) == 1


def test_one_delivery_at_a_time(alice: Host, bob: Host) -> None:
    """While one is under way nothing more is claimed, however often it polls and whatever it is told."""
    alice.team("send bob First")
    alice.team("send bob Second")
    bob.poll()
    before = bob.delivered
    for event in (Poll(), READY, Started("d1"), NotStarted("d1"), Started("d2"), NotStarted("d9"), Poll()):
        bob.tell(event)
    assert bob.delivered is before
    assert [message.subject for message in bob.own_claims()] == ["First"]
    bob.settle("done")
    assert bob.delivered is not before
    assert [message.subject for message in bob.own_claims()] == ["Second"]


def test_the_end_of_another_turn_does_not_settle_what_has_not_started(alice: Host, bob: Host) -> None:
    """The person's turn ended just before the delivery: its end came later on the pipe than the claim."""
    alice.team("send bob Fix the parser")
    bob.answers = False
    bob.poll()
    bob.tell(READY)
    bob.tell(READY)
    bob.tell(Settled("what the person asked for", "stop"))
    assert [message.state for message in bob.messages()] == ["processing"]
    bob.tell(Started("d1"))
    bob.settle("the work")
    assert [message.body for message in bob.messages()][1:] == ["the work"]


def test_nothing_is_written_while_nothing_changes(alice: Host, bob: Host) -> None:
    """A poll of an unchanged team opens no transaction: presence apart, no file is made or renamed."""
    alice.poll()
    bob.poll()
    bob.fs.forget()
    for _ in range(5):
        bob.poll()
    changing = {"link", "create", "rename", "mkdir", "unlink"}
    written = {str(call) for call in bob.fs.calls if call.method in changing}
    assert not [call for call in written if "revisions" in call or "state.json" in call or "lock" in call]
    assert [call for call in written if call.startswith("rename") and "bob" in call]  # the heartbeats


def test_heartbeats_say_what_the_session_does(alice: Host, bob: Host) -> None:
    """Idle, busy from the moment of the delivery on, paused: others see it without a write to the record."""

    def seen() -> str:
        entries = alice.mailbox.look("crew").members
        return next(entry.displayed for entry in entries if entry.member.alias == "bob")

    revision = alice.mailbox.look("crew").revision
    assert seen() == "idle"
    bob.team("pause")
    assert seen() == "paused"
    assert alice.mailbox.look("crew").revision == revision
    bob.team("resume")
    alice.team("send bob Fix the parser")
    bob.poll()
    assert seen() == "busy"


def test_heartbeats_go_on_during_a_long_turn(alice: Host, bob: Host) -> None:
    """Twenty minutes of work: the member stays alive for the others, and the claim stays its own."""
    alice.team("send bob Fix the parser")
    bob.poll()
    for _ in range(40):
        bob.poll(29.0)
        alice.poll(0.0)
    assert [message.state for message in alice.messages()] == ["processing"]
    bob.settle("done at last")
    assert alice.messages()[-1].body == "done at last"


def test_notes_are_shown_whatever_the_session_does_and_start_nothing(alice: Host, bob: Host) -> None:
    """Idle, at work and paused: each note is shown once and becomes seen."""
    alice.team("note bob Lunch is ready")
    shown = of(Show, bob.poll())
    assert [(show.entry["kind"], show.entry["title"]) for show in shown] == [
        ("note", "Note from alice: Lunch is ready")
    ]
    assert bob.delivered is None
    assert [message.state for message in bob.messages()] == ["seen"]
    alice.team("send bob Fix the parser")
    bob.poll()
    alice.team("note bob While you work")
    assert len(of(Show, bob.poll())) == 1
    bob.team("pause")
    bob.settle("done")
    alice.team("note bob While you rest")
    assert len(of(Show, bob.poll())) == 1
    assert of(Show, bob.poll()) == []


def test_requests_are_taken_in_the_order_of_the_record(alice: Host, bob: Host) -> None:
    """Results and requests alike, whoever sent them."""
    bob.team("pause")
    for subject in ("One", "Two", "Three"):
        alice.team(f"send bob {subject}")
    bob.team("resume")
    order = []
    for _ in range(3):
        assert bob.delivered is not None
        order.append(bob.delivered.details["subject"])
        bob.settle("done")
    assert order == ["One", "Two", "Three"]


def test_a_readiness_of_any_kind_is_no_harm_before_joining(alice: Host) -> None:
    """Events of a host that is in no team."""
    alice.team("leave")
    for event in (Poll(), Readiness(*[True] * 5), Started("d1"), NotStarted("d1"), Settled(None, "stop")):
        assert alice.tell(event) == []
    assert alice.state == "detached"

"""Looking after what was asked for: when, how often, and until when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pi_team.limits import REVIEW_AFTER
from pi_team.session.effects import AskReadiness, Deliver
from scripted_host import BUSY, READY, of

if TYPE_CHECKING:
    from scripted_host import Host, OpenHost


@pytest.fixture
def waiting(alice: Host, bob: Host) -> Host:
    """A session that has asked another, which is paused, for something."""
    bob.team("pause")
    alice.team("send bob Fix the parser")
    return alice


def after(host: Host, others: Host, seconds: float) -> list[Deliver]:
    """What is delivered while that time passes, each turn ending at once; everybody stays alive."""
    delivered = []
    for _ in range(int(seconds // 20)):
        effects = host.poll(20.0)
        others.poll(0.0)
        found = of(Deliver, effects)
        delivered += found
        if found:
            host.settle("noted")
    return delivered


def test_a_request_is_chased_after_five_minutes(waiting: Host, bob: Host) -> None:
    """Not before, and the turn names what is unresolved; the claim of nothing is needed for it."""
    assert after(waiting, bob, 280) == []
    (review,) = after(waiting, bob, 40)
    assert review.kind == "review"
    request = waiting.messages()[0]
    for part in (
        "[pi-team] Review for you, alice",
        "to bob, pending, 5 min old",
        "Fix the parser",
        request.id,
    ):
        assert part in review.text
    assert len(waiting.messages()) == 1


def test_reviews_come_at_most_once_a_minute_and_three_times(waiting: Host, bob: Host) -> None:
    """After three without any change of the record it stays quiet, from then on."""
    reviews = after(waiting, bob, 480)
    assert len(reviews) == 3
    assert after(waiting, bob, 900) == []


def test_a_change_of_the_record_allows_reviews_again(waiting: Host, bob: Host) -> None:
    """Any change: here the recipient takes another name."""
    assert len(after(waiting, bob, 600)) == 3
    bob.team("rename-member bob robert")
    assert len(after(waiting, bob, 600)) == 3


def test_no_review_where_everything_has_its_result(alice: Host, bob: Host) -> None:
    """Settled in time, or nothing asked at all."""
    alice.team("send bob Fix the parser")
    bob.poll()
    bob.settle("done")
    alice.poll()
    alice.settle("looked at")
    assert after(alice, bob, 600) == []


def test_a_waiting_message_comes_before_a_review(waiting: Host, bob: Host) -> None:
    """What is addressed to the session says more than a reminder."""
    after(waiting, bob, 280)
    waiting.ready = BUSY
    bob.team("send alice A question first")
    after(waiting, bob, 40)
    waiting.ready = READY
    waiting.poll()
    assert waiting.delivered is not None
    assert waiting.delivered.kind == "request"


def test_a_message_that_came_after_the_question(waiting: Host, bob: Host) -> None:
    """Asked for a review, answered with a claim: the count of what is pending went below nothing."""
    bob.team("pause")
    waiting.answers = False
    assert of(AskReadiness, waiting.poll(REVIEW_AFTER))
    bob.team("send alice Meanwhile")
    waiting.tell(READY)
    assert of(Deliver, waiting.tell(READY))
    assert waiting.shown is not None
    assert " · 0 pending · " in str(waiting.shown.widget)


def test_a_paused_session_reviews_nothing(waiting: Host, bob: Host) -> None:
    """A review is a turn too."""
    waiting.team("pause")
    assert after(waiting, bob, 900) == []


def test_a_host_that_is_not_ready_is_not_asked_more_than_once_a_minute(waiting: Host, bob: Host) -> None:
    """A person is at work for an hour: no review comes in between, and afterwards one."""
    waiting.ready = BUSY
    waiting.script.clear()
    after(waiting, bob, 900)
    assert 9 <= waiting.script.count("< ask readiness") <= 11
    waiting.ready = READY
    assert len(after(waiting, bob, 70)) == 1


def test_reviews_count_as_automatic_turns(host: OpenHost, alice: Host, bob: Host) -> None:
    """Nobody is there while they run."""
    carol = host("carol", cap=2)
    carol.team("join crew carol")
    bob.team("pause")
    carol.team("send bob Fix the parser")
    assert len(after(carol, bob, 900)) == 2
    assert carol.state == "paused"
    assert alice.state == "receiving"


def test_the_list_is_capped(alice: Host, bob: Host) -> None:
    """Twenty, oldest first, and how many more."""
    bob.team("pause")
    for number in range(27):
        alice.team(f"send bob Number {number:02}")
    reviews = after(alice, bob, 320)
    assert "27 requests of yours without a result" in reviews[0].text
    assert "Number 19" in reviews[0].text
    assert "Number 20" not in reviews[0].text
    assert "7 more requests, left out here" in reviews[0].text

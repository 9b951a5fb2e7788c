"""Leaving, being shut down, pausing and resuming: what becomes of present work, and of the membership."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from pi_team.session.effects import Deliver, Remember, Watch
from pi_team.session.events import NotStarted, Shutdown
from scripted_host import notices, of

if TYPE_CHECKING:
    from scripted_host import Host


def members(host: Host) -> dict[str, str]:
    return {entry.member.alias: entry.member.status for entry in host.mailbox.look("crew").members}


def test_leaving_twice_leaves_at_once(alice: Host, bob: Host) -> None:
    """The second `leave` does not wait for the turn: its work is interrupted."""
    alice.team("send bob Fix the parser")
    bob.poll()
    bob.team("leave")
    assert bob.state == "leaving"
    bob.team("leave")
    assert bob.state == "detached"
    assert members(alice) == {"alice": "idle", "bob": "offline"}
    report = alice.messages()[1].report
    assert report is not None
    assert report.outcome == "interrupted"
    bob.settle("too late for anybody")
    assert len(alice.messages()) == 2


def test_a_leaving_session_claims_nothing(alice: Host, bob: Host) -> None:
    """What waits stays for whoever comes back."""
    alice.team("send bob First")
    alice.team("send bob Second")
    bob.poll()
    bob.team("leave")
    bob.poll()
    bob.settle("done")
    assert [message.state for message in alice.messages() if message.kind == "request"] == [
        "completed",
        "pending",
    ]


def test_leaving_while_the_delivery_is_on_its_way(alice: Host, bob: Host) -> None:
    """The host could not start it: the claim is given back, and the session leaves."""
    alice.team("send bob Fix the parser")
    bob.answers = False
    bob.poll()
    bob.tell(bob.ready)
    bob.tell(bob.ready)
    bob.team("leave")
    assert bob.state == "leaving"
    bob.tell(NotStarted("d1"))
    assert bob.state == "detached"
    assert [message.state for message in alice.messages()] == ["pending"]


@pytest.mark.parametrize("what", ["types", "stops", "resumes", "cannot record"])
def test_a_leaving_session_promises_no_resume(alice: Host, bob: Host, what: str) -> None:
    """Reception was said to be paused, or to go on, in a session that was about to leave."""
    alice.team("send bob Fix the parser")
    bob.poll()
    bob.team("pause")
    bob.team("leave")
    if what == "types":
        effects = bob.type()
    elif what == "stops":
        effects = bob.settle(stop="aborted")
    elif what == "resumes":
        effects = bob.team("resume")
        assert bob.state == "leaving"
    else:
        bob.fs.at("create").fail(errno.ENOSPC).always()
        effects = bob.settle()
        bob.fs.forget()
        effects += bob.poll()
    told = " ".join(notices(effects))
    assert told
    assert "resume" not in told
    assert "eceiving" not in told


def test_leaving_during_a_review_does_not_wait(alice: Host, bob: Host) -> None:
    """There is no result to report."""
    bob.team("pause")
    alice.team("send bob Fix the parser")
    for _ in range(12):
        bob.poll(30)
        alice.poll(0)
    assert alice.delivered is not None
    assert alice.delivered.kind == "review"
    alice.team("leave")
    assert alice.state == "detached"


def test_a_shutdown_interrupts_and_stays_restorable(alice: Host, bob: Host) -> None:
    """Quit, `/new`, `/resume` and reload alike: the entry stays as it was, with its recovery pause."""
    alice.team("send bob Fix the parser")
    bob.poll()
    effects = bob.tell(Shutdown())
    assert of(Remember, effects) == []
    assert of(Watch, effects) == [Watch(None)]
    assert bob.entry is not None
    assert bob.entry["paused"] == "recovery"
    assert members(alice)["bob"] == "offline"
    report = alice.messages()[1].report
    assert report is not None
    assert report.outcome == "interrupted"


def test_a_shutdown_that_cannot_be_recorded_ends_all_the_same(bob: Host, alice: Host) -> None:
    """The disk is full: the others notice the end of the process."""
    bob.fs.at("create").fail(errno.ENOSPC).always()
    bob.tell(Shutdown())
    assert bob.state == "closed"
    assert members(alice)["bob"] == "idle"


def test_a_leave_that_is_refused_says_so_every_time(bob: Host) -> None:
    """A person who asks twice is answered twice, and is still a member."""
    bob.fs.at("create").fail(errno.ENOSPC).always()
    for _ in range(2):
        (told,) = notices(bob.team("leave"), "error")
        assert "could not leave crew" in told
    assert bob.state == "receiving"
    bob.fs.forget()
    bob.team("leave")
    assert bob.state == "detached"


def test_a_leave_after_work_is_tried_again(alice: Host, bob: Host) -> None:
    """The result was recorded, the leaving was not: the next polls try, and say so once."""
    alice.team("send bob Fix the parser")
    bob.poll()
    bob.team("leave")
    bob.fs.at("create", nth=4).fail(errno.ENOSPC).always()
    told = notices(bob.settle("done"))
    assert bob.state == "leaving"
    told += notices(bob.poll()) + notices(bob.poll())
    assert len([text for text in told if "could not leave" in text]) == 1
    bob.fs.forget()
    bob.poll()
    assert bob.state == "detached"
    assert alice.messages()[1].body == "done"


def test_a_pause_during_work_waits_for_its_end(alice: Host, bob: Host) -> None:
    """The result is completed, and then nothing more is claimed."""
    alice.team("send bob First")
    alice.team("send bob Second")
    bob.poll()
    told = notices(bob.team("pause"))
    assert told == ["Pausing when the present team work is done and reported. /team resume takes that back."]
    bob.settle("done")
    assert bob.state == "paused"
    report = next(message.report for message in bob.messages() if message.kind == "result")
    assert report is not None
    assert report.outcome == "completed"
    assert of(Deliver, bob.poll()) == []


def test_resume_takes_a_pause_back_that_has_not_come_yet(alice: Host, bob: Host) -> None:
    """Pause and resume during one turn leave nothing behind."""
    alice.team("send bob First")
    bob.poll()
    bob.team("pause")
    bob.team("resume")
    bob.settle("done")
    assert bob.state == "receiving"


def test_a_paused_session_is_still_there(alice: Host, bob: Host) -> None:
    """Its tools work, its notes are shown, others see that it is paused."""
    bob.team("pause")
    assert bob.tool("team_send", to="alice", kind="note", subject="s", body="b")["isError"] is False
    roster = alice.tool("team_members")["details"]["members"]
    assert [member["status"] for member in roster] == ["paused"]

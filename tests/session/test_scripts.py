"""Whole interactions, event by event and effect by effect: what a host has to do, and when."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

from scripted_host import BUSY

if TYPE_CHECKING:
    from scripted_host import Host, OpenHost


def script(host: Host) -> str:
    return "\n".join(host.script) + "\n"


def test_joining_asking_answering_and_looking_at_the_result(alice: Host, bob: Host) -> None:
    """The main job: each side claims only after its session has written down that it comes back paused."""
    alice.script.clear()
    bob.script.clear()
    alice.team("send bob Fix the parser")
    bob.poll()
    bob.settle("Fixed.", files=("/p/x.py",))
    alice.poll()
    alice.settle("Thanks to nobody.")
    assert script(bob) == dedent("""\
        > poll
        < ask readiness
        < state receiving: crew · bob · receiving · 1 pending · 1 teammate online
        > ready
        < remember bob recovery
        < ask readiness
        > ready
        < deliver d1: request Fix the parser
        < state working: crew · bob · working on a request from alice · 0 pending · 1 teammate online
        > started d1
        > settled stop
        < remember bob None
        < state receiving: crew · bob · receiving · 0 pending · 1 teammate online
        """)
    assert script(alice) == dedent("""\
        > /team send bob Fix the parser
        < show sent: Request queued for bob: Fix the parser
        < answer
        > poll
        < ask readiness
        < state receiving: crew · alice · receiving · 1 pending · 1 teammate online
        > ready
        < remember alice recovery
        < ask readiness
        > ready
        < deliver d1: result Fix the parser
        < state working: crew · alice · checking a result from bob · 0 pending · 1 teammate online
        > started d1
        > settled stop
        < remember alice None
        < state receiving: crew · alice · receiving · 0 pending · 1 teammate online
        """)


def test_joining_and_leaving(host: OpenHost) -> None:
    """A session without a team, its first team, and none again."""
    alice = host("alice")
    alice.team("create crew")
    alice.team("join crew alice")
    alice.poll()
    alice.team("leave")
    alice.poll()
    assert script(alice) == dedent("""\
        > /team create crew
        < info: Team crew is there. /team join crew ALIAS makes this session a member.
        < state detached: None
        < answer
        > /team join crew alice
        < remember alice None
        < watch crew
        < info: Joined crew as alice. Requests to alice start turns here whenever this session is idle.
        < state receiving: crew · alice · receiving · 0 pending · 0 teammates online
        < answer
        > poll
        > /team leave
        < remember left
        < watch None
        < info: Left crew. What is addressed to this session waits there.
        < state detached: None
        < answer
        > poll
        """)


def test_a_host_that_is_busy_in_the_moment_of_starting(alice: Host, bob: Host) -> None:
    """A prompt came in between: the claim is given back, and the next poll delivers."""
    alice.team("send bob Fix the parser")
    bob.script.clear()
    bob.starts = False
    bob.poll()
    assert [message.state for message in bob.messages()] == ["pending"]
    bob.ready = BUSY
    bob.poll()
    assert script(bob) == dedent("""\
        > poll
        < ask readiness
        < state receiving: crew · bob · receiving · 1 pending · 1 teammate online
        > ready
        < remember bob recovery
        < ask readiness
        > ready
        < deliver d1: request Fix the parser
        < state working: crew · bob · working on a request from alice · 0 pending · 1 teammate online
        > not started d1
        < remember bob None
        < state receiving: crew · bob · receiving · 0 pending · 1 teammate online
        > poll
        < ask readiness
        < state receiving: crew · bob · receiving · 1 pending · 1 teammate online
        > not ready
        """)


def test_a_person_takes_over(alice: Host, bob: Host) -> None:
    """Typing during team work: the result goes out at once, and nothing is claimed until resume."""
    alice.team("send bob Fix the parser")
    alice.team("send bob Then the printer")
    bob.poll()
    bob.script.clear()
    bob.type("/p/half.py")
    bob.settle("what the person asked for")
    bob.poll()
    bob.team("resume")
    assert script(bob) == dedent("""\
        > typed
        < warning: You took over during team work. The teammate gets a result that says interrupted, and \
nothing of what follows. Reception is paused; /team resume goes on.
        < remember bob explicit
        < state paused: crew · bob · paused; /team resume goes on · 1 pending · 1 teammate online
        > settled stop
        > poll
        > /team resume
        < remember bob None
        < ask readiness
        < info: Receiving again.
        < state receiving: crew · bob · receiving · 1 pending · 1 teammate online
        < answer
        > ready
        < remember bob recovery
        < ask readiness
        > ready
        < deliver d2: request Then the printer
        < state working: crew · bob · working on a request from alice · 0 pending · 1 teammate online
        > started d2
        """)


def test_leaving_during_work(alice: Host, bob: Host) -> None:
    """The present result is reported first; the second `leave` would not have waited."""
    alice.team("send bob Fix the parser")
    bob.poll()
    bob.script.clear()
    bob.team("leave")
    bob.settle("Fixed.")
    assert script(bob) == dedent("""\
        > /team leave
        < info: Leaving when the present team work is done and reported. /team leave again leaves at once.
        < state leaving: crew · bob · working on a request from alice, then leaving · 0 pending · 1 teammate online
        < answer
        > settled stop
        < remember left
        < watch None
        < info: Left crew. What is addressed to this session waits there.
        < state detached: None
        """)  # noqa: E501 - a line of the script is a line
    report = alice.messages()[-1].report
    assert report is not None
    assert (report.outcome, report.body) == ("completed", "Fixed.")

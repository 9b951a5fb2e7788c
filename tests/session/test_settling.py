"""How a turn's end becomes a result: outcome, text and files; takeover; the cap on automatic turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pi_team.domain.reports import report_bytes, require_report
from pi_team.limits import AUTOMATIC_RESULT_CHARACTERS, REPORT_FILES, REPORT_FIT_BYTES
from pi_team.session import reports
from pi_team.session.effects import Deliver
from pi_team.session.events import NotStarted, Settled, Started
from scripted_host import READY, notices, of

if TYPE_CHECKING:
    from pi_team.domain.model import Report
    from scripted_host import Host, OpenHost


def at_work(alice: Host, bob: Host, subject: str = "Fix the parser") -> None:
    alice.team(f"send bob {subject}")
    bob.poll()
    assert bob.state == "working"


def result(host: Host) -> Report:
    report = host.messages()[-1].report
    assert report is not None
    return report


# --- outcomes


@pytest.mark.parametrize(
    ("stop", "outcome", "says"),
    [
        ("stop", "completed", "All done."),
        ("toolUse", "completed", "All done."),
        ("length", "completed", "cut off by the model's limit"),
        ("error", "failed", "The turn failed: overloaded"),
        ("aborted", "interrupted", "stopped the work"),
    ],
)
def test_the_outcome_comes_from_the_stop_reason(
    alice: Host, bob: Host, stop: str, outcome: str, says: str
) -> None:
    """Each way in which a turn of an agent ends."""
    at_work(alice, bob)
    bob.settle("All done.", stop, "overloaded" if stop == "error" else None, ("/p/a.py", "/p/b.py"))
    assert result(bob).outcome == outcome
    assert says in result(bob).body
    assert result(bob).files == ("/p/a.py", "/p/b.py")
    assert [message.state for message in bob.messages()][:1] == [
        "interrupted" if outcome == "interrupted" else "completed"
    ]


def test_a_stopped_turn_forwards_nothing_and_pauses(alice: Host, bob: Host) -> None:
    """Escape: a person intervened, so nothing more is claimed until that person says so."""
    at_work(alice, bob)
    alice.team("send bob Another")
    effects = bob.settle("half of a sent", "aborted")
    assert "half of a sent" not in result(bob).body
    assert (bob.state, bob.entry and bob.entry["paused"]) == ("paused", "explicit")
    assert "You stopped team work." in notices(effects, "warning")[0]


@pytest.mark.parametrize("text", [None, "", " \n\t"])
def test_a_turn_without_a_text_says_so(alice: Host, bob: Host, text: str | None) -> None:
    """It ended with a call of a tool, say: the result is not blank."""
    at_work(alice, bob)
    bob.settle(text)
    assert result(bob).body == "The turn ended without a final text."


def test_the_text_is_cut_and_says_so() -> None:
    """Three thousand characters, never inside what is shown as one, and the rest counted."""
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
    for padding in range(len(family)):
        report = reports.of_turn(Settled("x" * padding + family * 1_000, "stop"))
        assert len(report.body) <= AUTOMATIC_RESULT_CHARACTERS
        kept, mark = report.body.split(" [… ")
        assert kept == "x" * padding + family * ((len(kept) - padding) // len(family))
        assert mark == f"{padding + 1_000 * len(family) - len(kept):,} more characters]"


def test_the_longest_error_leaves_room() -> None:
    """A provider's page of HTML does not become the result."""
    report = require_report(reports.of_turn(Settled("y" * 9_999, "error", "x" * 1_000_000)))
    assert len(report.body) < AUTOMATIC_RESULT_CHARACTERS + 700


def test_files_are_cut_to_what_a_report_may_hold() -> None:
    """By number, by length and by bytes; how many are missing stands in the text."""
    many = reports.fitted("completed", "x", [f"/p/{number}" for number in range(60)])
    assert (len(many.files), many.body) == (REPORT_FILES, "x\n\n[10 more files changed, not listed here]")
    long = reports.fitted("completed", "x", ["/p/a", "/" + "x" * 5_000, "/p/b", "/p/a"])
    assert (long.files, long.body) == (("/p/a", "/p/b"), "x\n\n[1 more file changed, not listed here]")
    wide = reports.fitted(
        "completed", "y" * 3_000, [f"/{number}/" + "\u20ac" * 1_000 for number in range(50)]
    )
    assert 0 < len(wide.files) < 12
    assert f"[{50 - len(wide.files)} more files changed" in wide.body
    for report in (many, long, wide):
        assert report_bytes(require_report(report)) <= REPORT_FIT_BYTES


def test_a_result_is_delivered_with_outcome_files_and_an_excerpt(alice: Host, bob: Host) -> None:
    """The emitter sees what it asked for, cut, with the id of its request, and what came back."""
    alice.tool("team_send", to="bob", kind="request", subject="Long", body="w" * 2_000)
    bob.poll()
    bob.settle("Done.", files=("/p/a.py",))
    alice.poll()
    assert alice.delivered is not None
    text = alice.delivered.text
    request = alice.messages()[0]
    assert text.count("w") < 520
    assert "more characters, left out here]" in text
    for part in (
        request.id,
        "Outcome: completed",
        "Done.",
        "- /p/a.py",
        "[pi-team] Result from bob to you, alice",
    ):
        assert part in text
    assert alice.delivered.details["outcome"] == "completed"
    assert alice.delivered.details["files"] == ["/p/a.py"]


@pytest.mark.parametrize(("stop", "state"), [("stop", "completed"), ("aborted", "interrupted")])
def test_a_result_is_settled_when_its_turn_ends(alice: Host, bob: Host, stop: str, state: str) -> None:
    """And it yields nothing: results of results would never end."""
    at_work(alice, bob)
    bob.settle("Done.")
    alice.poll()
    alice.settle("looked at it", stop)
    assert [message.state for message in alice.messages()] == ["completed", state]
    bob.poll()
    alice.poll()
    assert len(alice.messages()) == 2


def test_a_message_that_was_settled_meanwhile(alice: Host, bob: Host) -> None:
    """Another process settled it with the session's own token: this result is late, and that is all."""
    at_work(alice, bob)
    owner = bob.controller._context.owner
    alice.mailbox.settle(owner, bob.messages()[0].id, reports.fitted("failed", "by hand", ()))
    effects = bob.settle("too late")
    assert [message.body for message in bob.messages()][1:] == ["by hand"]
    assert "came too late" in notices(effects, "warning")[0]
    assert bob.state == "receiving"


# --- takeover


def test_a_takeover_reports_at_once_and_forwards_nothing_of_what_follows(alice: Host, bob: Host) -> None:
    """The result has the files so far; the text of the turn that went on under the person is not in it."""
    at_work(alice, bob)
    bob.type("/p/half.py")
    assert (result(bob).outcome, result(bob).files) == ("interrupted", ("/p/half.py",))
    bob.settle("secrets of the person", files=("/p/half.py", "/p/private.py"))
    assert len(bob.messages()) == 2
    assert "secrets" not in result(bob).body
    assert "The user of this session took over" in result(bob).body
    assert bob.state == "paused"


def test_a_delivery_that_was_overtaken_and_did_not_start(alice: Host, bob: Host) -> None:
    """Typed while the delivery is on its way: nothing was done, so the claim is given back, and no pause."""
    alice.team("send bob Fix the parser")
    bob.answers = False
    bob.poll()
    bob.tell(READY)
    bob.tell(READY)
    bob.type()
    assert [message.state for message in bob.own_claims()] == ["processing"]
    bob.tell(NotStarted("d1"))
    assert [message.state for message in bob.messages()] == ["pending"]
    assert bob.state == "receiving"


def test_a_started_delivery_that_was_overtaken_is_interrupted(alice: Host, bob: Host) -> None:
    """The host started the turn although it had told of the person's input before."""
    alice.team("send bob Fix the parser")
    bob.answers = False
    bob.poll()
    bob.tell(READY)
    bob.tell(READY)
    bob.type("/p/a.py")
    bob.tell(Started("d1"))
    assert (result(bob).outcome, result(bob).files) == ("interrupted", ("/p/a.py",))
    assert bob.state == "paused"


def test_typing_while_nothing_of_the_team_runs_pauses_nothing(alice: Host, bob: Host) -> None:
    """A person's own turn between two requests."""
    bob.type()
    bob.settle("for the person")
    at_work(alice, bob)
    assert bob.messages()[0].state == "processing"


def test_taking_over_the_look_at_a_result(alice: Host, bob: Host) -> None:
    """That result counts as delivered: it is not delivered again, and the inbox shows it."""
    at_work(alice, bob)
    bob.settle("Done.")
    alice.poll()
    effects = alice.type()
    assert "not delivered again" in notices(effects, "warning")[0]
    assert [message.state for message in alice.messages()] == ["completed", "interrupted"]
    alice.team("resume")
    assert of(Deliver, alice.poll()) == []


# --- the cap


def capped(host: OpenHost, cap: int) -> Host:
    carol = host("carol", cap=cap)
    carol.team("join crew carol")
    return carol


def work_off(carol: Host, turns: int) -> None:
    for _ in range(turns):
        carol.poll()
        assert carol.state == "working"
        carol.settle("done")


def test_reception_pauses_at_the_cap_and_says_so(alice: Host, host: OpenHost) -> None:
    """Two turns without a person, and the third request waits."""
    carol = capped(host, 2)
    for number in range(3):
        alice.team(f"send carol Number {number}")
    carol.poll()
    carol.settle("done")
    effects = carol.settle("done")
    assert carol.state == "paused"
    assert "2 automatic turns without you" in notices(effects, "warning")[0]
    assert of(Deliver, carol.poll()) == []
    assert [message.state for message in carol.messages() if message.kind == "request"][2] == "pending"
    assert carol.entry is not None
    assert carol.entry["paused"] is None  # it ends with the session


@pytest.mark.parametrize("how", ["type", "resume"])
def test_a_person_lifts_the_pause_of_the_cap(alice: Host, host: OpenHost, how: str) -> None:
    """By typing or by `resume`, and the count begins anew."""
    carol = capped(host, 1)
    for number in range(3):
        alice.team(f"send carol Number {number}")
    work_off(carol, 1)
    assert carol.state == "paused"
    if how == "type":
        carol.type()
        carol.settle("for the person")
    else:
        carol.team("resume")
    assert carol.state == "working"
    carol.settle("done")
    assert carol.state == "paused"


def test_typing_begins_the_count_anew(alice: Host, host: OpenHost) -> None:
    """Before the cap is reached, too."""
    carol = capped(host, 2)
    for number in range(2):
        alice.team(f"send carol Number {number}")
        work_off(carol, 1)
        carol.type()
    assert carol.state == "receiving"


def test_typing_does_not_lift_an_explicit_pause(alice: Host, bob: Host) -> None:
    """Only `resume` does."""
    bob.team("pause")
    alice.team("send bob Fix the parser")
    bob.type()
    bob.poll()
    assert bob.state == "paused"


def test_without_a_cap_nothing_pauses(alice: Host, host: OpenHost) -> None:
    """0 removes it."""
    carol = capped(host, 0)
    for number in range(12):
        alice.team(f"send carol Number {number}")
        work_off(carol, 1)
    assert carol.state == "receiving"


def test_a_delivery_that_did_not_start_does_not_count(alice: Host, host: OpenHost) -> None:
    """Only turns count."""
    carol = capped(host, 1)
    alice.team("send carol Fix the parser")
    carol.starts = False
    for _ in range(3):
        carol.poll()
    assert carol.state == "receiving"

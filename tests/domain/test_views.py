"""What members and others see, compared with what the TypeScript pi-team shows of the same record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pi_team.domain import operations as op
from pi_team.domain import views
from pi_team.domain.codec import TeamCodec
from pi_team.domain.model import Membership, Status, Verdict
from pi_team.errors import MembershipLost

DATA = Path(__file__).parent / "data"
SNAPSHOTS: dict[str, Any] = json.loads((DATA / "full.snapshots.json").read_text())
# What the presence files said when those snapshots were taken.
PRESENCE: dict[str, Status] = {"lead": "idle", "coder": "busy", "reviewer": "paused"}


def shown(alias: str, _token: str) -> Status | None:
    return PRESENCE.get(alias)


def alive(_alias: str, _token: str) -> Verdict:
    return "alive"


@pytest.mark.parametrize("who", SNAPSHOTS)
def test_a_member_sees_what_a_peer_shows_it(who: str) -> None:
    """The same roster, messages and flow; our roster adds what is displayed to what is stored."""
    state = TeamCodec("crew").decode((DATA / "full.payload.json").read_text())
    expected = SNAPSHOTS[who]
    alias = "reviewer" if who == "rev" else who
    member = state.member(alias)
    assert member is not None
    owner = Membership("crew", alias, member.session, member.token)
    snapshot = views.snapshot(state, owner, 30, judge=alive, shown=shown)
    assert snapshot.alias == alias
    seen = snapshot.to_json()
    assert (seen["team"], seen["revision"], seen["sweepable"]) == ("crew", 30, expected["sweepable"])
    assert seen["messages"] == expected["messages"]
    assert seen["flow"] == expected["flow"]
    for entry, peer_entry in zip(seen["members"], expected["members"], strict=True):
        assert entry["alive"] is True
        assert entry["status"] == "idle"  # as it is stored
        assert {**entry, "status": entry["displayed"]} == {
            **peer_entry,
            "displayed": entry["displayed"],
            "alive": True,
        }
    assert json.loads(json.dumps(seen)) == seen


def test_a_snapshot_needs_a_membership(pair: Any) -> None:
    """Who was replaced sees nothing any more."""
    stranger = Membership("crew", "a", "s", "other")
    with pytest.raises(MembershipLost):
        views.snapshot(pair.state, stranger, 1, judge=pair.judge, shown=shown)


@pytest.mark.parametrize(
    ("verdict", "presence", "displayed", "is_alive"),
    [
        ("alive", "busy", "busy", True),
        ("alive", None, "idle", True),
        ("dead", "busy", "offline", False),
        ("unknown", "busy", "offline", None),
    ],
)
def test_a_member_is_displayed_as_far_as_it_is_known(
    pair: Any, verdict: str, presence: Status | None, displayed: str, is_alive: bool | None
) -> None:
    """The record's own status may be long out of date, and so may a presence."""
    pair.verdicts["b"] = verdict
    pair.do(op.leave, pair.seats["a"])
    view = views.look(pair.state, 3, judge=pair.judge, shown=lambda _alias, _token: presence)
    left, entry = view.members
    assert (left.displayed, left.alive) == ("offline", False)
    assert (entry.displayed, entry.alive) == (displayed, is_alive)
    assert pair.asked == ["b"]  # who is offline needs no judgement


def test_anybody_sees_the_whole_team(pair: Any) -> None:
    """A look shows every message, the flow without bodies, and whether something has to be swept."""
    request = pair.send("a", "b")
    pair.worked("b", "a")
    pair.claim("b", message_id=request.id)
    view = views.look(pair.state, 9, judge=pair.judge, shown=shown)
    assert (view.team, view.revision, view.sweepable) == ("crew", 9, False)
    assert view.messages is pair.state.messages
    assert [entry.to_json() for entry in view.flow] == [
        {
            "id": request.id,
            "from": "a",
            "to": "b",
            "subject": "S",
            "state": "processing",
            "created": request.created,
        }
    ]
    assert pair.asked == ["a", "b"]  # once each, for the roster and the claims alike
    pair.verdicts["b"] = "dead"
    assert views.look(pair.state, 9, judge=pair.judge, shown=shown).sweepable
    assert views.sweepable(pair.state, pair.judge)


@pytest.mark.parametrize("verdict", ["alive", "unknown", "dead"])
@pytest.mark.parametrize("case", ["stands", "idle", "other token", "offline", "absent"])
def test_what_is_sweepable_is_what_a_sweep_interrupts(pair: Any, verdict: str, case: str) -> None:
    """A poll opens the mailbox exactly when there is something to do."""
    pair.verdicts["b"] = verdict
    if case != "idle":
        pair.send("a", "b")
        pair.claim("b")
    members = pair.state.members
    if case == "other token":
        members = (members[0], members[1].from_json(members[1].to_json() | {"token": "new"}))
    if case == "offline":
        members = (members[0], members[1].from_json(members[1].to_json() | {"status": "offline"}))
    if case == "absent":
        members = members[:1]
    pair.state = pair.state.__class__("crew", members, pair.state.messages, pair.state.frame)
    expected = case in {"other token", "offline", "absent"} or (case == "stands" and verdict == "dead")
    assert views.sweepable(pair.state, pair.judge) == expected
    change = pair.attempt(op.sweep, pair.seats["a"])
    assert (change.state is not pair.state) == (change.answer == 1) == expected


def test_a_note_is_never_a_claim(pair: Any) -> None:
    """A peer's note that claims to be processed is nobody's work; removing its recipient still ends it."""
    note = pair.send("a", "b", kind="note")
    odd = note.from_json(note.to_json() | {"state": "processing", "claim": "x"})
    pair.state = pair.state.__class__("crew", pair.state.members, (odd,), pair.state.frame)
    assert not views.sweepable(pair.state, pair.judge)
    assert pair.do(op.notes, pair.seats["b"]) == ()
    assert pair.claim("b") is None
    pair.do(op.leave, pair.seats["b"])
    assert pair.do(op.remove_member, None, "b").discarded == 1

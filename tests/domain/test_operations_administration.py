"""Renaming, removing, closing: what persons and members do to each other's memberships."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from pi_team.domain import operations as op
from pi_team.domain.codec import TeamCodec
from pi_team.domain.model import TeamState
from pi_team.domain.operations.settlement import DIED, REMOVED_AT_WORK, REMOVED_UNSTARTED
from pi_team.errors import (
    AliasExists,
    MemberAlive,
    MembershipLost,
    MemberUnknown,
    NameInvalid,
    PiTeamError,
    TeamActive,
)


def test_a_member_renames_itself(pair: Any) -> None:
    """Everything follows, its claim and history too; the old pair is worth nothing, the token stays."""
    done = pair.worked("b", "a")
    request = pair.send("b", "a")
    pair.send("a", "b")
    pair.claim("a")
    before = pair.seats["a"]
    after = pair.do(op.rename_member, before, "a", "z")
    assert after == attrs.evolve(before, alias="z")
    assert pair.summary() == [
        "request b>z completed claimed",
        "result z>b pending",
        "request b>z processing claimed",
        "request z>b pending",
    ]
    assert pair.asked == []
    assert pair.state.member_with_token(before.token).alias == "z"
    assert pair.state.member_of_session(before.session).alias == "z"
    assert pair.state.member_with_token("x") is pair.state.member_of_session("x") is None
    with pytest.raises(MembershipLost):
        pair.do(op.release, before, request.id)
    assert pair.do(op.release, after, request.id)
    assert pair.state.result_of(done.parent_id).sender == "z"


@pytest.mark.parametrize("actor", ["b", None])
def test_others_rename_who_is_offline(pair: Any, actor: str | None) -> None:
    """A member gets its own membership back, a person gets nothing."""
    pair.send("b", "a")
    pair.do(op.leave, pair.seats["a"])
    seat = pair.seats[actor] if actor else None
    assert pair.do(op.rename_member, seat, "a", "z") == seat
    assert pair.statuses() == {"z": "offline", "b": "idle"}
    assert pair.summary() == ["request b>z pending"]
    assert pair.asked == []


def test_others_rename_who_is_dead_after_sweeping_it(pair: Any) -> None:
    """Its claim is interrupted in the same publication, and its token is worth nothing under either alias."""
    request = pair.send("b", "a")
    pair.claim("a")
    pair.verdicts["a"] = "dead"
    pair.do(op.rename_member, pair.seats["b"], "a", "z")
    assert pair.statuses() == {"z": "offline", "b": "idle"}
    assert pair.summary() == ["request b>z interrupted claimed", "result z>b pending"]
    assert pair.result(request).report == DIED
    for alias in ("a", "z"):
        with pytest.raises(MembershipLost):
            pair.do(op.notes, attrs.evolve(pair.seats["a"], alias=alias))


@pytest.mark.parametrize(
    ("alias", "new", "error", "reason"),
    [
        ("x", "z", MemberUnknown, "'x' is not a member of crew: its members are a, b, c"),
        ("c", "Z", NameInvalid, "'Z' is not a valid alias"),
        ("c", "z\n", NameInvalid, "is not a valid alias"),
        ("c", "b", AliasExists, "b is a member of crew already"),
        ("b", "b", AliasExists, "b is a member of crew already"),
        ("a", "z", MemberAlive, r"a is a living session \(process 7\) and cannot be renamed by others"),
    ],
)
def test_what_cannot_be_renamed(
    pair: Any, alias: str, new: str, error: type[PiTeamError], reason: str
) -> None:
    """Refused, and the team is the very object that it was."""
    pair.join("c")
    pair.do(op.leave, pair.seats["c"])
    change = pair.attempt(op.rename_member, pair.seats["b"], alias, new)
    assert change.state is pair.state
    with pytest.raises(error, match=reason):
        change.unwrap()


@pytest.mark.parametrize("end", ["sender", "recipient"])
def test_an_endpoint_of_an_unsettled_message_is_taken(pair: Any, end: str) -> None:
    """A removed member's note is still on its way: the new name would pass for its sender."""
    pair.join("c")
    message = pair.send("c", "b", kind="note")
    pair.do(op.leave, pair.seats["c"])
    pair.do(op.remove_member, None, "c")
    if end == "recipient":  # only a peer leaves such a record behind
        turned = message.from_json(message.to_json() | {"from": "b", "to": "c"})
        pair.state = attrs.evolve(pair.state, messages=(turned,))
    with pytest.raises(AliasExists, match=f"c is an endpoint of message {message.id}, which is pending"):
        pair.do(op.rename_member, pair.seats["a"], "a", "c")
    if end == "sender":
        pair.do(op.notes, pair.seats["b"])
        pair.do(op.rename_member, pair.seats["a"], "a", "c")


def test_a_sweep_stays_when_the_rename_is_refused(pair: Any) -> None:
    """The member is dead whatever its name; the sweep that the operation needed is published all the same."""
    request = pair.send("b", "a")
    pair.claim("a")
    pair.verdicts["a"] = "dead"
    with pytest.raises(AliasExists):
        pair.do(op.rename_member, pair.seats["b"], "a", "b")
    assert pair.statuses() == {"a": "offline", "b": "idle"}
    assert pair.result(request).report == DIED


def test_removing_a_member_settles_what_involves_it(pair: Any) -> None:
    """At once: refused with a result, cancelled without, discarded; what it sent to others still arrives."""
    pair.join("c")
    at_work = pair.send("b", "a")
    waiting = pair.send("c", "a")
    pair.send("c", "a", kind="note")
    pair.send("a", "b")
    pair.send("a", "b")
    pair.send("a", "c", kind="note")
    reviewed, unread = pair.worked("a", "c"), pair.worked("c", "a", "failed")
    pair.claim("a", message_id=at_work.id)
    pair.claim("b")
    pair.verdicts["a"] = "dead"
    removal = pair.do(op.remove_member, pair.seats["b"], "a")
    assert (removal.refused, removal.cancelled, removal.discarded) == (2, 2, 2)
    assert pair.summary() == [
        "request b>a interrupted claimed",
        "request c>a interrupted",
        "note c>a seen",
        "request a>b interrupted",
        "request a>b interrupted",
        "note a>c pending",
        "request a>c completed claimed",
        "result c>a seen",
        "request c>a completed claimed",
        "result a>c pending",
        "result a>b pending",
        "result a>c pending",
    ]
    assert pair.result(at_work).report == REMOVED_AT_WORK
    assert pair.result(waiting).report == REMOVED_UNSTARTED
    assert pair.message(reviewed).state == "seen"
    assert pair.message(unread).state == "pending"
    assert [member.alias for member in pair.state.members] == ["b", "c"]


def test_a_result_under_review_is_discarded_with_its_claim(pair: Any) -> None:
    """Nobody is left who could settle it."""
    result = pair.worked("a", "b")
    pair.claim("a")
    pair.verdicts["a"] = "dead"
    pair.do(op.remove_member, None, "a")
    assert (pair.message(result).state, pair.message(result).claim) == ("seen", None)


@pytest.mark.parametrize(
    ("actor", "alias", "error", "reason"),
    [
        ("a", "x", MemberUnknown, "its members are a, b"),
        ("a", "a", MemberAlive, "a cannot remove itself"),
        ("a", "b", MemberAlive, "b may be a living session"),
        (None, "b", MemberAlive, "b may be a living session"),
    ],
)
def test_who_cannot_be_removed(
    pair: Any, actor: str | None, alias: str, error: type[PiTeamError], reason: str
) -> None:
    """Not knowing whether a session lives refuses like knowing."""
    pair.verdicts["b"] = "unknown"
    change = pair.attempt(op.remove_member, pair.seats[actor] if actor else None, alias)
    assert change.state is pair.state
    with pytest.raises(error, match=reason):
        change.unwrap()


def test_history_may_read_from_itself_to_itself(pair: Any) -> None:
    """After a removal and a rename; readers accept it, and work goes on."""
    pair.worked("a", "b")
    pair.do(op.leave, pair.seats["b"])
    pair.do(op.remove_member, pair.seats["a"], "b")
    pair.claim("a")
    pair.settle("a", pair.state.messages[1])
    pair.seats["b"] = pair.do(op.rename_member, pair.seats["a"], "a", "b")
    assert pair.summary() == ["request b>b completed claimed", "result b>b completed claimed"]
    pair.join("a")
    assert pair.worked("a", "b").state == "pending"


def test_a_team_is_closed_when_nobody_is_in_it(pair: Any) -> None:
    """The dead are swept, whether they hold a claim or not, before the team is renamed or deleted."""
    pair.join("c")
    request = pair.send("a", "b")
    pair.claim("b")
    pair.do(op.leave, pair.seats["c"])
    pair.verdicts |= {"a": "dead", "b": "dead"}
    pair.do(op.close_team)
    assert pair.statuses() == {"a": "offline", "b": "offline", "c": "offline"}
    assert pair.result(request).report == DIED
    assert sorted(pair.asked) == ["a", "b"]
    change = pair.attempt(op.close_team)
    assert change.state is pair.state
    assert change.refusal is None


def test_a_team_with_a_living_member_stays_open(pair: Any) -> None:
    """Who is dead stays swept, in one publication, and the refusal names the others."""
    pair.join("c")
    request = pair.send("a", "b")
    pair.claim("b")
    pair.verdicts |= {"b": "dead", "c": "unknown"}
    with pytest.raises(TeamActive, match=r"crew has living members: a, c \(not known yet\)"):
        pair.do(op.close_team)
    assert pair.statuses() == {"a": "idle", "b": "offline", "c": "idle"}
    assert pair.result(request).report == DIED


def test_a_team_bears_its_new_name_everywhere(pair: Any) -> None:
    """Otherwise the record would be refused under the new name; unknown keys come along."""
    pair.worked("a", "b")
    text = TeamCodec("crew").encode(pair.state).replace('"version":1', '"version":1,"new":{"team":"crew"}')
    renamed = op.retitle(TeamCodec("crew").decode(text), "fleet")
    written = TeamCodec("fleet").encode(renamed)
    assert written == text.replace('"team":"crew"', '"team":"fleet"').replace(
        '"new":{"team":"fleet"}', '"new":{"team":"crew"}'
    )
    assert isinstance(TeamCodec("fleet").decode(written), TeamState)
    with pytest.raises(NameInvalid):
        op.retitle(pair.state, "Fleet")

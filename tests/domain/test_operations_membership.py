"""Joining, leaving, sweeping: who holds an alias, and what becomes of claims whose holder goes."""

from __future__ import annotations

from typing import Any

import pytest

from pi_team.domain import operations as op
from pi_team.domain.model import Membership
from pi_team.domain.operations.settlement import DIED, LEFT, RETURNED
from pi_team.errors import AliasAlive, LimitIdentifier, LimitMembers, MembershipLost, NameInvalid
from pi_team.limits import CWD_CHARACTERS, IDENTIFIER_CHARACTERS, MEMBERS

JOIN: dict[str, Any] = {"alias": "a", "session": "s", "cwd": "/", "pid": 1, "token": "t"}


def test_a_new_team_is_empty() -> None:
    """There is nobody until somebody joins."""
    state = op.create("crew")
    assert (state.members, state.messages) == ((), ())


@pytest.mark.parametrize("name", ["", "A", "crew\n", "1x", "x" * 49, "-x", "ä"])
def test_names_are_checked_whole(crew: Any, name: str) -> None:
    """A trailing line break would end up in a file name."""
    with pytest.raises(NameInvalid):
        op.create(name)
    with pytest.raises(NameInvalid):
        crew.do(op.join, **JOIN | {"alias": name})


def test_joining_writes_the_member_as_peers_do(crew: Any) -> None:
    """The keys are in the order that the TypeScript pi-team writes."""
    seat = crew.do(op.join, **JOIN)
    assert seat == Membership("crew", "a", "s", "t")
    assert crew.state.members[0].text == (
        '{"team":"crew","alias":"a","session":"s","token":"t","cwd":"/","pid":1,"seen":1000000,"status":"idle"}'
    )


@pytest.mark.parametrize(
    "values",
    [
        {"session": ""},
        {"session": "s" * (IDENTIFIER_CHARACTERS + 1)},
        {"token": ""},
        {"cwd": ""},
        {"cwd": "/" * (CWD_CHARACTERS + 1)},
    ],
)
def test_what_a_member_brings_is_bounded(crew: Any, values: dict[str, str]) -> None:
    """A member that readers refuse would make the whole record unreadable."""
    with pytest.raises(LimitIdentifier, match="characters, not 1 to"):
        crew.do(op.join, **JOIN | values)


@pytest.mark.parametrize("key", ["session", "token", "cwd"])
def test_what_a_member_brings_is_as_the_record_has_it(crew: Any, key: str) -> None:
    """Two halves of a character are one when the record is read again: the session must know itself in it."""
    halves, whole = "\ud83d\ude00", "\N{GRINNING FACE}"
    seat = crew.do(op.join, **JOIN | {key: halves})
    assert getattr(crew.state.members[0], key) == whole
    assert crew.do(op.leave, seat) is None
    longest = CWD_CHARACTERS if key == "cwd" else IDENTIFIER_CHARACTERS
    crew.do(op.join, **JOIN | {key: halves * longest})


def test_a_session_whose_id_has_halves_of_a_character_may_join_again(crew: Any) -> None:
    """In the same process, however often, as any other."""
    for token in ("t1", "t2"):
        seat = crew.do(op.join, **JOIN | {"session": "\ud83d\ude00", "token": token})
        assert seat.session == "\N{GRINNING FACE}"


def test_a_hundred_members_are_the_limit(crew: Any) -> None:
    """The hundred-and-first is refused, while those who are there may come back."""
    crew.join(*[f"a{number}" for number in range(MEMBERS)])
    with pytest.raises(LimitMembers, match="crew has 100 members; 100 is the limit"):
        crew.join("late")
    crew.do(op.leave, crew.seats["a5"])
    crew.join("a5")


@pytest.mark.parametrize(("verdict", "word"), [("alive", "is a living"), ("unknown", "may be a living")])
def test_a_living_holder_keeps_its_alias(pair: Any, verdict: str, word: str) -> None:
    """Not knowing is refused like knowing; and the holder is judged by its token, not by its alias."""
    pair.verdicts["a"] = verdict
    change = pair.attempt(op.join, **JOIN)
    assert change.state is pair.state
    with pytest.raises(AliasAlive, match=f"a {word} session \\(process 7\\)"):
        change.unwrap()
    assert pair.asked == ["a"]


def test_the_same_session_in_the_same_process_may_join_again(pair: Any) -> None:
    """Its helper restarted; another process that resumes the session is refused while the first lives."""
    with pytest.raises(AliasAlive):
        pair.join("a", session="session-a", pid=8)
    before = pair.seats["a"]
    after = pair.join("a", session="session-a", pid=7)
    assert after.token != before.token
    assert pair.asked == ["a"]  # for the first attempt only
    with pytest.raises(MembershipLost, match="another session"):
        pair.do(op.notes, before)


def test_a_dead_holder_is_replaced_and_its_claim_interrupted(pair: Any) -> None:
    """The emitter hears of it, and the work is not done a second time by itself."""
    request = pair.send("b", "a")
    waiting = pair.send("b", "a")
    pair.claim("a")
    pair.verdicts["a"] = "dead"
    pair.now += 5
    pair.join("a", session="other", pid=8)
    assert pair.summary() == [
        "request b>a interrupted claimed",
        "request b>a pending",
        "result a>b pending",
    ]
    assert pair.result(request).report == RETURNED
    assert pair.result(request).created == pair.now
    assert pair.claim("a").id == waiting.id
    assert [member.alias for member in pair.state.members] == ["a", "b"]


def test_who_joins_an_offline_alias_inherits_what_is_addressed_to_it(pair: Any) -> None:
    """An alias is an address."""
    request = pair.send("b", "a")
    pair.do(op.leave, pair.seats["a"])
    pair.join("a", session="other")
    assert pair.claim("a").id == request.id


def test_leaving_interrupts_the_own_claim_only(pair: Any) -> None:
    """What waits, and what others work on, is not touched; the address stays."""
    taken, kept = pair.send("b", "a"), pair.send("b", "a")
    pair.send("a", "b")
    pair.claim("a")
    pair.claim("b")
    pair.do(op.leave, pair.seats["a"])
    assert pair.summary() == [
        "request b>a interrupted claimed",
        "request b>a pending",
        "request a>b processing claimed",
        "result a>b pending",
    ]
    assert pair.statuses() == {"a": "offline", "b": "idle"}
    assert pair.result(taken).report == LEFT
    assert pair.state.result_of(kept.id) is None
    with pytest.raises(MembershipLost, match="a is offline"):
        pair.do(op.leave, pair.seats["a"])


def test_a_result_under_review_is_not_delivered_again(pair: Any) -> None:
    """When its emitter leaves while reviewing it, it ends interrupted and yields nothing."""
    result = pair.worked("a", "b")
    pair.claim("a")
    pair.do(op.leave, pair.seats["a"])
    pair.join("a")
    assert pair.claim("a") is None
    assert pair.message(result).state == "interrupted"
    assert len(pair.state.messages) == 2


@pytest.mark.parametrize(
    ("owner", "reason"),
    [
        (Membership("other", "a", "s", "t"), "a membership of other is none of crew"),
        (Membership("crew", "x", "s", "t"), "x is not a member of crew any more"),
        (Membership("crew", "a", "s", "t"), "a belongs to another session"),
    ],
)
def test_only_the_current_pair_counts(pair: Any, owner: Membership, reason: str) -> None:
    """Every operation of an owner is fenced by alias and token together."""
    for operation, args in (
        (op.leave, ()),
        (op.notes, ()),
        (op.claim, ()),
        (op.release, ("m",)),
        (op.settle, ("m", LEFT)),
        (op.sweep, ()),
        (op.rename_member, ("b", "c")),
        (op.remove_member, ("b",)),
    ):
        change = pair.attempt(operation, owner, *args)
        assert change.state is pair.state
        with pytest.raises(MembershipLost, match=reason):
            change.unwrap()


def test_a_sweep_interrupts_the_claims_of_the_dead(pair: Any) -> None:
    """Only who is dead *and* holds a claim is taken offline; a member is asked about once."""
    pair.join("c", "d")
    request = pair.send("a", "b")
    pair.send("a", "c")
    pair.claim("b")
    pair.claim("c")
    pair.verdicts |= {"b": "dead", "c": "unknown", "d": "dead"}
    assert pair.do(op.sweep, pair.seats["a"]) == 1
    assert pair.statuses() == {"a": "idle", "b": "offline", "c": "idle", "d": "idle"}
    assert pair.result(request).report == DIED
    assert pair.asked == ["b", "c"]
    change = pair.attempt(op.sweep, pair.seats["a"])
    assert (change.state, change.answer) == (pair.state, 0)


def test_a_sweep_interrupts_what_an_older_token_claimed(pair: Any) -> None:
    """A peer let a living alias be taken over and left the claim; the living holder stays connected."""
    pair.send("a", "b")
    pair.claim("b")
    claimed = pair.state
    pair.do(op.leave, pair.seats["b"])
    pair.join("b")
    pair.state = op.create("crew").__class__("crew", pair.state.members, claimed.messages, pair.state.frame)
    assert pair.do(op.sweep, pair.seats["a"]) == 1
    assert pair.statuses() == {"a": "idle", "b": "idle"}
    assert pair.asked == []
    assert pair.summary() == ["request a>b interrupted claimed", "result b>a pending"]

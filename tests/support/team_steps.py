"""The operations of the domain on one team, by sessions that may go on with memberships that they lost."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar
from unittest.mock import patch

import pytest

from pi_team.domain import operations as op
from pi_team.domain import views
from pi_team.domain.codec import TeamCodec
from pi_team.domain.lifecycles import UNSETTLED, is_claimed, membership_of
from pi_team.domain.model import Membership, Report, TeamState, Verdict
from pi_team.domain.operations import sending

if TYPE_CHECKING:
    from collections.abc import Callable

SLOTS, RECORDS, THREAD = 3, 8, 3
NAMES = ("a", "b", "c")
SESSIONS = ("s1", "s2")
LOST = 9
"""Which of several memberships: one that does not fit any more."""


class TeamSteps:
    """A team, the memberships that its sessions ever held, and what only an onlooker knows."""

    happened: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        self.numbers = count(1)
        self.now = 1_000_000
        self.state = op.create("crew")
        self.seats: list[Membership] = []
        self.holder: dict[str, str] = {}  # alias -> the token of the session that it rightly belongs to
        self.identity: dict[str, int] = {}  # alias -> which member it is, through all renames
        self.ends: dict[str, tuple[int, int]] = {}  # message -> the members that it is from and to
        self.cancelled: set[str] = set()
        self.reader = TeamCodec("crew")
        self.limits = [
            patch.object(sending, "MEMBER_SLOTS", SLOTS),
            patch.object(sending, "RECORDS", RECORDS),
            patch.object(sending, "THREAD_MESSAGES", THREAD),
        ]
        for limit in self.limits:
            limit.start()

    def teardown(self) -> None:
        """Give the limits back."""
        for limit in self.limits:
            limit.stop()

    # --- what the steps share

    def new_id(self) -> str:
        return f"id{next(self.numbers)}"

    def seat(self, index: int) -> Membership:
        """A membership that is current, or with ``LOST`` the last one that is not."""
        current = [seat for seat in self.seats if self.holder.get(seat.alias) == seat.token]
        lost = [seat for seat in self.seats if seat not in current]
        if current and (index != LOST or not lost):
            return current[index % len(current)]
        return lost[-1]

    def named(self, index: int) -> str:
        """An alias, those of members at work first."""
        at_work = {message.recipient for message in self.state.messages if is_claimed(message)}
        return sorted(NAMES, key=lambda alias: alias not in at_work)[index % len(NAMES)]

    def picked(self, index: int) -> str:
        """A message's id, those that are worked on first."""
        found = sorted(self.state.messages, key=is_claimed, reverse=True)
        return found[index % len(found)].id if found else "none"

    def claimant(self, message_id: str, index: int | None) -> Membership:
        """The membership that has claimed a message, unless another one is wanted."""
        message = self.state.message(message_id)
        holders = [seat for seat in self.seats if message is not None and seat.token == message.claim]
        return holders[-1] if holders and index is None else self.seat(index or 0)

    def publish(self, step: op.Change[Any], owner: Membership | None = None) -> bool:
        """Take the new state over; says whether the operation was carried out."""
        before, self.state = self.state, step.state
        self.now += 1_000
        done = step.refusal is None
        if owner is not None and done:
            assert self.holder.get(owner.alias) == owner.token, f"Fenced: {owner} acted"
        if step.refusal is not None:
            self.happened[step.refusal.code] += 1
        for old, new in zip(before.messages, step.state.messages, strict=False):
            assert old.state in UNSETTLED or old.state == new.state, f"Final: {old.id} was {old.state}"
            self.happened[f"{old.kind} {old.state} {new.state}"] += old.state != new.state
        for message in step.state.messages[len(before.messages) :]:
            if message.kind == "result":
                self.ends[message.id] = self.ends[str(message.parent_id)][::-1]
            else:
                self.ends[message.id] = (self.identity[message.sender], self.identity[message.recipient])
        for member in step.state.members:
            if membership_of(member) == "offline":
                self.holder.pop(member.alias, None)
        return done

    @staticmethod
    def judge(judgement: dict[str, Verdict]) -> Callable[[str, str], Verdict]:
        return lambda alias, _token: judgement[alias]

    def given(self, judgement: dict[str, Verdict] | None = None) -> dict[str, Any]:
        given: dict[str, Any] = {"now": self.now, "new_id": self.new_id}
        return given if judgement is None else given | {"judge": self.judge(judgement)}

    # --- the operations

    def join(self, alias: str, session: str, pid: int, judgement: dict[str, Verdict]) -> None:
        step = op.join(
            self.state,
            alias=alias,
            session=session,
            cwd="/",
            pid=pid,
            token=self.new_id(),
            **self.given(judgement),
        )
        new = self.state.member(alias) is None
        if self.publish(step):
            seat = step.unwrap()
            self.seats.append(seat)
            self.holder[alias] = seat.token
            if new:
                self.identity[alias] = next(self.numbers)

    def come_back(self) -> None:
        """Whoever left or was swept joins again, so that there is mostly somebody to act."""
        for alias, session in zip(NAMES, SESSIONS, strict=False):
            if membership_of(self.state.member(alias)) != "connected":
                self.join(alias, session, 1, dict.fromkeys(NAMES, "alive"))

    def leave(self, index: int) -> None:
        owner = self.seat(index)
        self.publish(op.leave(self.state, owner, **self.given()), owner)

    def ask(self, index: int, other: int, parent: int | None) -> None:
        self.send(index, other, "request", parent)

    def tell(self, index: int, other: int, parent: int | None) -> None:
        self.send(index, other, "note", parent)

    def send(self, index: int, other: int, kind: Any, parent: int | None) -> None:
        owner = self.seat(index)
        others = [one.alias for one in self.state.members if one.alias != owner.alias]
        to = [*others, owner.alias, "nobody"][other % (len(others) + 2)]
        belongs = None if parent is None else self.picked(parent)
        values = {"to": to, "kind": kind, "subject": "S", "body": self.new_id(), "parent": belongs}
        self.publish(op.send(self.state, owner, **values, **self.given()), owner)

    def notes(self, index: int) -> None:
        owner = self.seat(index)
        self.publish(op.notes(self.state, owner), owner)

    def claim(self, index: int) -> None:
        owner = self.seat(index)
        self.publish(op.claim(self.state, owner), owner)

    def claim_that(self, index: int, ready: bool, message: int) -> None:
        owner = self.seat(index)
        self.publish(op.claim(self.state, owner, ready=ready, message_id=self.picked(message)), owner)

    def release(self, message: int, index: int | None) -> None:
        message_id = self.picked(message)
        owner = self.claimant(message_id, index)
        self.publish(op.release(self.state, owner, message_id), owner)

    def settle(self, message: int, index: int | None, outcome: Any) -> None:
        message_id = self.picked(message)
        owner = self.claimant(message_id, index)
        report = Report(outcome, "done")
        self.publish(op.settle(self.state, owner, message_id, report, **self.given()), owner)

    def work(self, index: int, outcome: Any) -> None:
        """Claim and settle, which is what mostly happens, and too rare by chance."""
        self.claim(index)
        self.settle(0, None, outcome)

    def sweep(self, index: int, judgement: dict[str, Verdict]) -> None:
        before, owner = self.state, self.seat(index)
        worth = views.sweepable(before, self.judge(judgement))
        if self.publish(op.sweep(before, owner, **self.given(judgement)), owner):
            assert (self.state is not before) == worth, "SweepExact: swept though not sweepable, or not"
            self.swept_exactly(before, judgement)

    def swept_exactly(self, before: TeamState, judgement: dict[str, Verdict]) -> None:
        held = {member.token for member in before.members if judgement[member.alias] != "dead"}
        for old, new in zip(before.messages, self.state.messages, strict=False):
            stale = is_claimed(old) and old.claim not in held
            assert (new is not old) == stale, f"SweepExact: {old.id} by {old.claim}"
        assert not views.sweepable(self.state, self.judge(judgement)), "SweepExact: something is left"

    def rename(self, index: int | None, alias: str, new: str, judgement: dict[str, Verdict]) -> None:
        actor = None if index is None else self.seat(index)
        itself = actor is not None and actor.alias == alias
        step = op.rename_member(self.state, actor, alias, new, **self.given(judgement))
        if self.publish(step, actor):
            token = self.holder.pop(alias, None)
            self.identity[new] = self.identity.pop(alias)
            if itself:
                assert token is not None
                self.holder[new] = token
                self.seats.append(step.unwrap() or pytest.fail("a member keeps its membership"))

    def remove(self, index: int | None, alias: str, judgement: dict[str, Verdict]) -> None:
        actor = None if index is None else self.seat(index)
        before = self.state
        if self.publish(op.remove_member(before, actor, alias, **self.given(judgement)), actor):
            self.holder.pop(alias, None)
            self.identity.pop(alias)
            self.cancelled |= {
                message.id
                for message in before.messages
                if message.kind == "request" and message.sender == alias and message.state in UNSETTLED
            }

    def close(self, judgement: dict[str, Verdict]) -> None:
        before = self.state
        done = self.publish(op.close_team(before, **self.given(judgement)))
        living = [one.alias for one in before.members if membership_of(one) == "connected"]
        assert done == all(judgement[alias] == "dead" for alias in living)

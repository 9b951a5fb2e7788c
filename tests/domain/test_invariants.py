"""The named invariants of docs/lifecycles.md, held by arbitrary sequences of operations.

Judgements are arbitrary: a living session may be taken for dead at any step, which covers more than
any rule of presence could produce. Sessions go on using memberships that they lost. The limits are
made small, so that they are reached. At the end come the controls: operations with one rule dropped,
each of which must break the invariant that the rule is there for.
"""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar
from unittest.mock import patch

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import team_invariants
from pi_team.domain import operations as op
from pi_team.domain import views
from pi_team.domain.codec import TeamCodec
from pi_team.domain.lifecycles import MESSAGE, UNSETTLED, is_claimed, membership_of, moved
from pi_team.domain.model import Membership, Message, Report, TeamState, Verdict
from pi_team.domain.operations import administration, change, membership, messages, sending, settlement

if TYPE_CHECKING:
    from collections.abc import Callable

SLOTS, RECORDS, THREAD = 3, 8, 3
NAMES = ("a", "b", "c")
SESSIONS = ("s1", "s2")

names = st.sampled_from(NAMES)
sessions = st.sampled_from(SESSIONS)
# Which of several: 0 is the first, LOST one that does not fit any more. Most steps are likely ones.
likely = st.sampled_from([0, 0, 0, 1, 1, 2, 3, LOST := 9])
verdicts: st.SearchStrategy[Verdict] = st.sampled_from(["alive", "alive", "dead", "unknown"])
judgements = st.fixed_dictionaries(dict.fromkeys(NAMES, verdicts))
outcomes = st.sampled_from(["completed", "failed", "interrupted"])


class Team(RuleBasedStateMachine):
    """A team, the memberships that its sessions ever held, and what only an onlooker knows."""

    happened: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
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

    # --- the steps; few rules, because every example goes without some of the rules

    @initialize()
    def two_are_there(self) -> None:
        self.join("a", "s1", 1, dict.fromkeys(NAMES, "alive"))
        self.join("b", "s2", 2, dict.fromkeys(NAMES, "alive"))

    @rule(
        step=st.sampled_from(["ask", "tell", "notes", "claim", "claim_that", "release", "settle", "work"]),
        index=likely,
        other=likely,
        perhaps=st.none() | likely,
        outcome=outcomes,
    )
    def act(self, *, step: str, index: int, other: int, perhaps: int | None, outcome: Any) -> None:
        """A step of a member with a message."""
        if not self.holder:
            self.come_back()
        {
            "ask": lambda: self.ask(index, other, perhaps),
            "tell": lambda: self.tell(index, other, perhaps),
            "notes": lambda: self.notes(index),
            "claim": lambda: self.claim(index),
            "claim_that": lambda: self.claim_that(index, perhaps is None, other),
            "release": lambda: self.release(other, perhaps),
            "settle": lambda: self.settle(other, perhaps, outcome),
            "work": lambda: self.work(index, outcome),
        }[step]()

    @rule(
        step=st.sampled_from(["join", "come_back", "leave", "sweep", "rename", "remove", "remove", "close"]),
        index=likely,
        by=st.none() | likely,
        whom=likely,
        new=names,
        session=sessions,
        judgement=judgements,
    )
    def change_roster(
        self,
        *,
        step: str,
        index: int,
        by: int | None,
        whom: int,
        new: str,
        session: str,
        judgement: dict[str, Verdict],
    ) -> None:
        """A step of a member, or of a person, with a membership."""
        alias = self.named(whom)
        steps: dict[str, Callable[[], None]] = {
            "join": lambda: self.join(alias, session, 1, judgement),
            "come_back": self.come_back,
            "leave": lambda: self.leave(index),
            "sweep": lambda: self.sweep(index, judgement),
            "rename": lambda: self.rename(by, alias, new, judgement),
            "remove": lambda: self.remove(by, alias, judgement),
            "close": lambda: self.close(judgement),
        }
        steps[step]()

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

    # --- what always holds

    @invariant()
    def one_claim(self) -> None:
        """A recipient holds at most one claim, and so does a token."""
        team_invariants.one_claim(self.state)

    @invariant()
    def claim_owner(self) -> None:
        """What is claimed is claimed by the connected member that it is addressed to."""
        team_invariants.claim_owner(self.state)

    @invariant()
    def one_result(self) -> None:
        """A request has one result once it has ended, and none before, nor when it was cancelled."""
        team_invariants.one_result(self.state, self.cancelled)

    @invariant()
    def result_to_emitter(self) -> None:
        """A result goes back the way that its request came, in its thread, whatever was renamed."""
        team_invariants.result_to_emitter(self.state)

    @invariant()
    def follows(self) -> None:
        """Every message that is from or to a member bears its alias, also after renames."""
        for message in self.state.messages:
            sender, recipient = self.ends[message.id]
            for alias, identity in self.identity.items():
                assert sender != identity or message.sender == alias, f"Follows: {message.id}"
                assert recipient != identity or message.recipient == alias, f"Follows: {message.id}"

    @invariant()
    def endpoints(self) -> None:
        """What is unsettled has a recipient, and a request an emitter too."""
        team_invariants.endpoints(self.state)

    @invariant()
    def no_self(self) -> None:
        """Nobody owes anything to itself."""
        team_invariants.no_self(self.state)

    @invariant()
    def slots(self) -> None:
        """Nobody's slots overflow, however many results arrive at once."""
        team_invariants.slots(self.state, SLOTS)

    @invariant()
    def history(self) -> None:
        """The records, those promised included, stay within the history."""
        team_invariants.history(self.state, RECORDS)

    @invariant()
    def stored(self) -> None:
        """Every state can be written, and reads back as it is."""
        read = self.reader.decode(TeamCodec("crew").encode(self.state))
        assert (read.members, read.messages) == (self.state.members, self.state.messages)


INVARIANTS = (
    Team.one_claim,
    Team.claim_owner,
    Team.one_result,
    Team.result_to_emitter,
    Team.follows,
    Team.endpoints,
    Team.no_self,
    Team.slots,
    Team.history,
    Team.stored,
)

TRANSITIONS = {
    f"{kind} {source} {row.dest}"
    for row in MESSAGE.transitions
    for kind in row.kinds
    for source in row.sources
    if (kind, source) != ("note", "processing")  # only a peer's record has that
}
REFUSALS = {
    *("ALIAS_ALIVE", "ALIAS_EXISTS", "ALREADY_CLAIMING", "LIMIT_HISTORY", "LIMIT_RECIPIENT", "LIMIT_SENDER"),
    *("LIMIT_THREAD", "MEMBERSHIP_LOST", "MEMBER_ALIVE", "MEMBER_UNKNOWN", "MESSAGE_UNKNOWN", "NOT_CLAIMED"),
    *("PARENT_NOT_COMPLETED", "PARENT_UNKNOWN", "RECIPIENT_UNKNOWN", "SELF_ADDRESSED", "TEAM_ACTIVE"),
}

TestTeam = Team.TestCase
TestTeam.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_machine_takes_every_transition() -> None:
    """The invariants did not hold by nothing happening: every transition and every refusal came up.

    All but the discarding of a result under review, which is too rare for chance: a test of the removal
    shows it (`test_a_result_under_review_is_discarded_with_its_claim`).
    """
    Team.happened.clear()
    some = settings(max_examples=100, stateful_step_count=60, deadline=None, database=None)
    wanted = (TRANSITIONS | REFUSALS) - {"result processing seen"}
    missing = wanted
    for _ in range(10):  # the rarest comes up in one of some hundred sequences
        if missing:
            run_state_machine_as_test(Team, settings=some)
            missing = {step for step in wanted if not Team.happened[step]}
    assert missing == set()


# --- controls -------------------------------------------------------------------------------------

DEAD: dict[str, Verdict] = dict.fromkeys(NAMES, "dead")
ALIVE: dict[str, Verdict] = dict.fromkeys(NAMES, "alive")
A, B = 0, 1  # the seats of a and b, as long as both are current


def no_interrupt(state: TeamState, *_args: Any, **_given: Any) -> TeamState:
    return state


def owner_by_alias(state: TeamState, owner: Membership) -> Any:
    return change.require_member(state, owner.alias)


def owner_though_offline(state: TeamState, owner: Membership) -> Any:
    member = change.require_member(state, owner.alias)
    return member if member.token == owner.token else change.require_owner(state, owner)


def nothing(*_args: Any, **_given: Any) -> None:
    """A check that was dropped."""


def claim_a_second(state: TeamState, owner: Membership, **_given: Any) -> op.Change[Message | None]:
    change.require_owner(state, owner)
    for message in state.messages:
        if message.recipient == owner.alias and message.state == "pending" and message.kind != "note":
            claimed = moved(message, "claim", claim=owner.token)
            return op.Change(messages._with(state, message, claimed), claimed)
    return op.Change(state)


removal_of = administration._removal_of
renamed = administration._renamed
result_for = settlement.result_for


def removal_without(dropped: str) -> Callable[[Message, str], settlement.Settlement | None]:
    def choose(message: Message, alias: str) -> settlement.Settlement | None:
        settled = removal_of(message, alias)
        return None if settled is None or settled.trigger == dropped else settled

    return choose


def removal_without_results(message: Message, alias: str) -> settlement.Settlement | None:
    settled = removal_of(message, alias)
    return attrs.evolve(settled, report=None) if settled is not None else None


def rename_without_history(state: TeamState, alias: str, new: str) -> TeamState:
    after = renamed(state, alias, new)
    pairs = zip(state.messages, after.messages, strict=True)
    return attrs.evolve(
        after, messages=tuple(late if late.state in UNSETTLED else early for early, late in pairs)
    )


def result_to_itself(request: Message, report: Report, **given: Any) -> Message:
    result = result_for(request, report, **given)
    return Message.from_json(result.to_json() | {"to": result.sender})


def unreserved_slots(state: TeamState, alias: str) -> int:
    return sum(message.recipient == alias for message in state.messages if message.state in UNSETTLED)


def unreserved_records(state: TeamState) -> int:
    return len(state.messages)


def always(*_args: Any) -> bool:
    return True


@attrs.frozen
class Control:
    """An operation with a rule dropped, steps that need the rule, and the invariant that breaks."""

    module: Any
    name: str
    broken: Any
    steps: tuple[Callable[[Team], None], ...]
    breaks: str


def ask(team: Team) -> None:
    team.ask(A, 0, None)


def tell(team: Team) -> None:
    team.tell(A, 0, None)


def claim(team: Team) -> None:
    team.claim(B)


def settle(team: Team) -> None:
    team.settle(0, None, "completed")


def take_over(team: Team) -> None:
    team.join("b", "s1", 9, DEAD)


def remove_a(team: Team) -> None:
    team.remove(None, "a", DEAD)


def remove_b(team: Team) -> None:
    team.remove(None, "b", DEAD)


CONTROLS = {
    "a join leaves old claims": Control(
        membership, "interrupt_claims", no_interrupt, (ask, claim, take_over), "ClaimOwner"
    ),
    "a leave leaves its claim": Control(
        membership, "interrupt_claims", no_interrupt, (ask, claim, lambda team: team.leave(B)), "ClaimOwner"
    ),
    "tokens are not compared": Control(
        messages, "require_owner", owner_by_alias, (take_over, lambda team: team.notes(LOST)), "Fenced"
    ),
    "who is offline acts": Control(
        messages,
        "require_owner",
        owner_though_offline,
        (lambda team: team.leave(B), lambda team: team.notes(LOST)),
        "Fenced",
    ),
    "one claim is not enough": Control(op, "claim", claim_a_second, (ask, ask, claim, claim), "OneClaim"),
    "a removal leaves its requests": Control(
        administration, "_removal_of", removal_without("cancel"), (ask, remove_a), "Endpoints"
    ),
    "a removal leaves its notes": Control(
        administration, "_removal_of", removal_without("discard"), (tell, remove_b), "Endpoints"
    ),
    "a refusal is not answered": Control(
        administration, "_removal_of", removal_without_results, (ask, remove_b), "OneResult"
    ),
    "a name in use is taken": Control(
        administration,
        "_require_free",
        nothing,
        (tell, remove_a, lambda team: team.rename(0, "b", "a", ALIVE)),
        "NoSelf",
    ),
    "a rename forgets the history": Control(
        administration,
        "_renamed",
        rename_without_history,
        (ask, claim, settle, lambda team: team.rename(B, "b", "c", ALIVE)),
        "ResultToEmitter",
    ),
    "a rename forgets what was seen": Control(
        administration,
        "_renamed",
        rename_without_history,
        (tell, lambda team: team.notes(B), lambda team: team.rename(B, "b", "c", ALIVE)),
        "Follows",
    ),
    "a result goes astray": Control(
        settlement, "result_for", result_to_itself, (ask, claim, settle), "ResultToEmitter"
    ),
    "slots are not reserved": Control(
        sending,
        "slots_taken",
        unreserved_slots,
        (ask,) * SLOTS + (lambda team: team.tell(B, 0, None),),
        "Slots",
    ),
    "records are not reserved": Control(
        sending,
        "records_taken",
        unreserved_records,
        (ask, *(tell, lambda team: team.notes(B)) * RECORDS),
        "History",
    ),
    "a poll always sweeps": Control(
        views, "sweepable", always, (ask, claim, lambda team: team.sweep(A, ALIVE)), "SweepExact"
    ),
}


def run(control: Control) -> None:
    team = Team()
    try:
        team.two_are_there()
        for step in control.steps:
            step(team)
            for holds in INVARIANTS:
                holds(team)
    finally:
        team.teardown()


@pytest.mark.parametrize("control", CONTROLS.values(), ids=CONTROLS)
def test_a_dropped_rule_breaks_its_invariant(control: Control) -> None:
    """Evidence that the machine above can fail: the same steps are harmless while the rule is kept."""
    run(control)
    breaks = pytest.raises(AssertionError, match=f"^{control.breaks}:")
    with patch.object(control.module, control.name, control.broken), breaks:
        run(control)

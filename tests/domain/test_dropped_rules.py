"""Controls: operations with one rule dropped, each of which must break the invariant that the rule is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import attrs
import pytest

from pi_team.domain import operations as op
from pi_team.domain import views
from pi_team.domain.lifecycles import UNSETTLED, moved
from pi_team.domain.model import Membership, Message, Report, TeamState, Verdict
from pi_team.domain.operations import administration, change, membership, messages, sending, settlement
from team_machine import INVARIANTS, Team
from team_steps import LOST, NAMES, RECORDS, SLOTS

if TYPE_CHECKING:
    from collections.abc import Callable

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

"""The named invariants of docs/lifecycles.md that one state of a team shows by itself."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pi_team.domain.capacity import records_taken, slots_taken
from pi_team.domain.lifecycles import UNSETTLED, is_claimed, membership_of
from pi_team.limits import MEMBER_SLOTS, RECORDS

if TYPE_CHECKING:
    from collections.abc import Container

    from pi_team.domain.model import TeamState


def one_claim(state: TeamState) -> None:
    """A recipient holds at most one claim, and so does a token."""
    claimed = [message for message in state.messages if is_claimed(message)]
    for holders in (Counter(one.recipient for one in claimed), Counter(one.claim for one in claimed)):
        assert max(holders.values(), default=0) <= 1, f"OneClaim: {holders}"


def claim_owner(state: TeamState) -> None:
    """What is claimed is claimed by the connected member that it is addressed to."""
    for message in state.messages:
        if is_claimed(message):
            member = state.member(message.recipient)
            assert membership_of(member) == "connected", f"ClaimOwner: {message.id}"
            assert member is not None
            assert member.token == message.claim, f"ClaimOwner: {message.id}"


def one_result(state: TeamState, cancelled: Container[str]) -> None:
    """A request has one result once it has ended, and none before, nor when it was cancelled."""
    results = Counter(one.parent_id for one in state.messages if one.kind == "result")
    for message in state.messages:
        if message.kind == "request":
            none_yet = message.state in UNSETTLED or message.id in cancelled
            assert results[message.id] == (0 if none_yet else 1), f"OneResult: {message.id}"


def result_to_emitter(state: TeamState) -> None:
    """A result goes back the way that its request came, in its thread, whatever was renamed."""
    for message in state.messages:
        if message.kind == "result":
            request = state.message(str(message.parent_id))
            assert request is not None
            there, back = (request.sender, request.recipient), (message.recipient, message.sender)
            assert there == back, f"ResultToEmitter: {message.id}"
            assert (message.root_id, message.subject) == (request.root_id, request.subject)


def endpoints(state: TeamState) -> None:
    """What is unsettled has a recipient, and a request an emitter too."""
    present = {member.alias for member in state.members}
    for message in state.messages:
        if message.state in UNSETTLED:
            assert message.recipient in present, f"Endpoints: {message.id}"
            assert message.kind != "request" or message.sender in present, f"Endpoints: {message.id}"


def no_self(state: TeamState) -> None:
    """Nobody owes anything to itself."""
    for message in state.messages:
        if message.state in UNSETTLED:
            assert message.sender != message.recipient, f"NoSelf: {message.id}"


def slots(state: TeamState, most: int = MEMBER_SLOTS) -> None:
    """Nobody's slots overflow, however many results arrive at once."""
    for member in state.members:
        assert slots_taken(state, member.alias) <= most, f"Slots: {member.alias}"


def history(state: TeamState, most: int = RECORDS) -> None:
    """The records, those promised included, stay within the history."""
    assert records_taken(state) <= most, "History: overfilled"


def check(state: TeamState, cancelled: Container[str]) -> None:
    """All of them. Raises AssertionError with the name of the one that does not hold."""
    one_claim(state)
    claim_owner(state)
    one_result(state, cancelled)
    result_to_emitter(state)
    endpoints(state)
    no_self(state)
    slots(state)
    history(state)

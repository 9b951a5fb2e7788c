"""How much of a team's room is taken; a request takes the room of its result with it (docs/limits.md)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from pi_team.domain.lifecycles import UNSETTLED

if TYPE_CHECKING:
    from pi_team.domain.model import Message, TeamState


@lru_cache(maxsize=4)  # asked for several times of the same state, and few of many messages are unsettled
def unsettled(state: TeamState) -> tuple[Message, ...]:
    """The messages that something is still to happen to, in record order."""
    return tuple(message for message in state.messages if message.state in UNSETTLED)


def outstanding(state: TeamState) -> tuple[Message, ...]:
    """The requests whose result is still to come, in record order."""
    return tuple(message for message in unsettled(state) if message.kind == "request")


def slots_taken(state: TeamState, alias: str) -> int:
    """The member's slots in use: what is unsettled and addressed to it, and one per request it waits for."""
    return sum(
        (message.recipient == alias) + (message.sender == alias and message.kind == "request")
        for message in unsettled(state)
    )


def records_taken(state: TeamState) -> int:
    """The team's records in use: every message, and one per result that is still to come."""
    return len(state.messages) + len(outstanding(state))

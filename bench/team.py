"""Teams of a given size for the benchmarks."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import attrs

from pi_team import Mailbox
from pi_team.domain.model import Message
from pi_team.domain.operations import Change

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pi_team.domain.model import JsonObject, Membership, TeamState

TEAM = "crew"
BODY_BYTES = 300
_EARLIER = 3_600_000
"""Milliseconds ago that the planted messages were sent."""


def text(number: int) -> str:
    """A text of :data:`BODY_BYTES` bytes; no two numbers give the same."""
    sentence = f"{number:08d} the tests of the parser fail on an empty line, please have a look at it. "
    return (sentence * (BODY_BYTES // len(sentence) + 1))[:BODY_BYTES]


def settled(count: int, sender: str, recipient: str) -> tuple[Message, ...]:
    """Messages as a team at work leaves them: requests, their results and notes, nothing outstanding."""
    created = int(time.time() * 1_000) - _EARLIER
    values: list[JsonObject] = []
    while len(values) < count:
        number = len(values)
        request = _message(number, (sender, recipient), "request", "completed", created)
        request["claim"] = str(uuid.uuid4())
        result = _message(number + 1, (recipient, sender), "result", "completed", created)
        result |= {
            "rootId": request["id"],
            "parentId": request["id"],
            "claim": str(uuid.uuid4()),
            "result": {"outcome": "completed", "body": result["body"], "files": [], "tests": []},
        }
        result["body"] = "completed"
        note = _message(number + 2, (sender, recipient), "note", "seen", created)
        values += [request, result, note]
    return tuple(Message.from_json(value) for value in values[:count])


def _message(number: int, ends: tuple[str, str], kind: str, state: str, created: int) -> JsonObject:
    identifier = str(uuid.uuid4())
    return {
        "id": identifier,
        "team": TEAM,
        "from": ends[0],
        "to": ends[1],
        "subject": f"message {number}",
        "body": text(number),
        "kind": kind,
        "state": state,
        "created": created + number,
        "rootId": identifier,
    }


class BenchMailbox(Mailbox):
    """A mailbox whose record can be set to a size."""

    def plant(self, messages: Sequence[Message]) -> None:
        """Publish a revision with exactly these messages, by the same engine that sends."""

        def replace(state: TeamState, _: object) -> Change[None]:
            return Change(attrs.evolve(state, messages=tuple(messages)))

        self._engine.operate(TEAM, replace)


def team_of(mailbox: BenchMailbox, messages: int) -> tuple[Membership, Membership]:
    """Create the team, let ann and ben join it, and plant its messages."""
    mailbox.create(TEAM)
    ann, ben = mailbox.join(TEAM, "ann"), mailbox.join(TEAM, "ben")
    mailbox.plant(settled(messages, ann.alias, ben.alias))
    return ann, ben

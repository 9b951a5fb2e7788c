"""Moving several messages at once, with the results that requests yield in the same publication."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from pi_team.domain.lifecycles import MESSAGE, MessageTrigger, is_claimed, moved, transition_of
from pi_team.domain.model import Message, Report

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_team.domain.model import JsonObject, NewId, TeamState

_UNKNOWN_EXTENT = (
    "Some of the work may have been done. Nothing is retried by itself: look before you ask again."
)

LEFT = Report("interrupted", f"The session working on this request left the team. {_UNKNOWN_EXTENT}")
DIED = Report("interrupted", f"The session working on this request ended without a result. {_UNKNOWN_EXTENT}")
RETURNED = Report("interrupted", f"The session working on this request was replaced. {_UNKNOWN_EXTENT}")
REMOVED_AT_WORK = Report("interrupted", f"The member working on this request was removed. {_UNKNOWN_EXTENT}")
REMOVED_UNSTARTED = Report("interrupted", "The recipient was removed before it began. Nothing was done.")


@attrs.frozen
class Settlement:
    """What is to happen to a message: the trigger, and what the result says where a request yields one."""

    trigger: MessageTrigger
    report: Report | None = None


def settle_each(
    state: TeamState, choose: Callable[[Message], Settlement | None], *, now: float, new_id: NewId
) -> TeamState:
    """Move every message that ``choose`` has a settlement for, and append the results, in record order.

    Args:
        state: the team.
        choose: the settlement of a message, or ``None`` to leave it as it is.
        now: milliseconds since 1970.
        new_id: gives the results' ids.
    """
    chosen = [(index, message, choose(message)) for index, message in enumerate(state.messages)]
    messages = list(state.messages)
    for index, message, settlement in chosen:
        if settlement is None:
            continue
        messages[index] = moved(message, settlement.trigger)
        answers = transition_of(message.kind, settlement.trigger).answers
        if message.kind == "request" and answers and settlement.report is not None:
            messages.append(result_for(message, settlement.report, now=now, message_id=new_id()))
    return attrs.evolve(state, messages=tuple(messages))


def interrupt_claims(
    state: TeamState, concerns: Callable[[Message], bool], report: Report, *, now: float, new_id: NewId
) -> TeamState:
    """Interrupt the claimed messages that ``concerns`` picks; ``state`` itself when there is none."""
    if not any(is_claimed(message) and concerns(message) for message in state.messages):
        return state
    settlement = Settlement("interrupt", report)
    return settle_each(
        state,
        lambda message: settlement if is_claimed(message) and concerns(message) else None,
        now=now,
        new_id=new_id,
    )


def result_for(request: Message, report: Report, *, now: float, message_id: str) -> Message:
    """The result of a request, from its recipient to its emitter."""
    return new_message(
        {
            "id": message_id,
            "team": request.team,
            "from": request.recipient,
            "to": request.sender,
            "subject": request.subject,
            "body": report.body,
            "kind": "result",
            "created": now,
            "rootId": request.root_id,
            "parentId": request.id,
            "result": report.to_json(),
        }
    )


_KEYS = (
    *("id", "team", "from", "to", "subject", "body", "kind", "state"),
    *("created", "rootId", "parentId", "result"),
)


def new_message(value: JsonObject) -> Message:
    """A message in the initial state of its lifecycle, its keys in the record's order."""
    value = value | {"state": MESSAGE.initial}
    return Message.from_json({key: value[key] for key in _KEYS if key in value})

"""Sending, showing, claiming, releasing and settling messages (docs/lifecycles.md, "Operations")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs

from pi_team.domain.lifecycles import is_claimed, is_unsettled, moved
from pi_team.domain.operations.change import Change, operation, require_owner
from pi_team.domain.operations.sending import require_capacity, require_new, require_parent, require_sendable
from pi_team.domain.operations.settlement import Settlement, new_message, settle_each
from pi_team.domain.reports import require_report
from pi_team.errors import AlreadyClaiming, MessageUnknown, NotClaimed
from pi_team.json_text import well_paired

if TYPE_CHECKING:
    from collections.abc import Collection

    from pi_team.domain.model import Membership, Message, NewId, Report, TeamState


@operation
def send(
    state: TeamState,
    owner: Membership,
    *,
    to: str,
    kind: Literal["request", "note"],
    subject: str,
    body: str,
    parent: str | None = None,
    now: float,
    new_id: NewId,
) -> Change[Message]:
    """Queue a message; answers it. An offline recipient is fine.

    Args:
        state: the team.
        owner: the sender's membership.
        to: the recipient's alias.
        kind: a request asks for work and yields a result, a note only informs.
        subject: 1 to 160 characters, not blank.
        body: at most 16,000 bytes of UTF-8.
        parent: the id of a message from or to the sender that this one belongs to.
        now: milliseconds since 1970.
        new_id: gives the message's id.

    Refuses with ``MEMBERSHIP_LOST``, ``USAGE``, ``SELF_ADDRESSED``, ``RECIPIENT_UNKNOWN``,
    ``LIMIT_SUBJECT``, ``LIMIT_BODY``, ``LIMIT_INPUT``, ``PARENT_UNKNOWN``, ``PARENT_NOT_COMPLETED``,
    ``LIMIT_THREAD``, ``DUPLICATE``, ``LIMIT_RECIPIENT``, ``LIMIT_SENDER`` and ``LIMIT_HISTORY``.
    """
    require_owner(state, owner)
    value = {"from": owner.alias, "to": to, "kind": kind}
    value |= {"subject": well_paired(subject), "body": well_paired(body)}
    require_sendable(state, value, parent)
    answered = None if parent is None else require_parent(state, owner.alias, parent, kind)
    require_new(state, value, now)
    require_capacity(state, owner.alias, to, kind)
    message_id = new_id()
    thread = {"id": message_id, "team": state.team, "created": now, "rootId": message_id}
    if answered is not None:
        thread |= {"rootId": answered.root_id, "parentId": answered.id}
    message = new_message(value | thread)
    return Change(attrs.evolve(state, messages=(*state.messages, message)), message)


@operation
def notes(
    state: TeamState, owner: Membership, *, ids: Collection[str] | None = None
) -> Change[tuple[Message, ...]]:
    """Take the caller's pending notes: they become seen, and are answered in record order.

    Args:
        state: the team.
        owner: the caller's membership.
        ids: take no others than these, which were displayed; all where none are given.

    Refuses with ``MEMBERSHIP_LOST``.
    """
    require_owner(state, owner)
    shown = {
        index: moved(message, "show")
        for index, message in enumerate(state.messages)
        if message.kind == "note"
        and message.recipient == owner.alias
        and message.state == "pending"
        and (ids is None or message.id in ids)
    }
    if not shown:
        return Change(state, ())
    messages = tuple(shown.get(index, message) for index, message in enumerate(state.messages))
    return Change(attrs.evolve(state, messages=messages), tuple(shown.values()))


@operation
def claim(
    state: TeamState, owner: Membership, *, ready: bool = True, message_id: str | None = None
) -> Change[Message | None]:
    """Claim the caller's first pending request or result, or the one asked for.

    Answers the claimed message, or ``None`` when there is nothing to claim: the caller is not ready,
    nothing is pending, or the message asked for is not pending for it.

    Refuses with ``MEMBERSHIP_LOST``, ``ALREADY_CLAIMING`` and, for an id that no message has,
    ``MESSAGE_UNKNOWN``.
    """
    require_owner(state, owner)
    if not ready:
        return Change(state)
    if message_id is not None and state.message(message_id) is None:
        raise MessageUnknown(f"{state.team} has no message {message_id!r}")
    for message in state.messages:
        if message.recipient == owner.alias and is_claimed(message):
            raise AlreadyClaiming(f"{owner.alias} is working on {message.kind} {message.id} already")
    for message in state.messages:
        if (
            message.recipient == owner.alias
            and message.state == "pending"
            and message.kind != "note"
            and message_id in {None, message.id}
        ):
            claimed = moved(message, "claim", claim=owner.token)
            return Change(_with(state, message, claimed), claimed)
    return Change(state)


@operation
def release(state: TeamState, owner: Membership, message_id: str) -> Change[bool]:
    """Put back a claimed message that the caller could not start on.

    Answers ``False`` when the message is final already and the caller its recipient.

    Refuses with ``MEMBERSHIP_LOST`` and ``NOT_CLAIMED``.
    """
    require_owner(state, owner)
    message = _claimed_by(state, owner, message_id)
    if not is_unsettled(message):
        return Change(state, answer=False)
    return Change(_with(state, message, moved(message, "release")), answer=True)


@operation
def settle(
    state: TeamState, owner: Membership, message_id: str, report: Report, *, now: float, new_id: NewId
) -> Change[bool]:
    """End the caller's work on a message. A request yields its result; a reviewed result just ends.

    Answers ``False`` when the message is final already and the caller its recipient: it was settled
    before, or interrupted or cancelled meanwhile.

    Args:
        state: the team.
        owner: the claimant's membership.
        message_id: the claimed message.
        report: what the result says; of a reviewed result, only the outcome counts.
        now: milliseconds since 1970.
        new_id: gives the result's id.

    Refuses with ``MEMBERSHIP_LOST``, ``NOT_CLAIMED`` and ``REPORT_INVALID``.
    """
    require_owner(state, owner)
    claimed = _claimed_by(state, owner, message_id)
    if not is_unsettled(claimed):
        return Change(state, answer=False)
    report = require_report(report)
    settlement = Settlement("interrupt" if report.outcome == "interrupted" else "settle", report)
    settled = settle_each(
        state, lambda message: settlement if message is claimed else None, now=now, new_id=new_id
    )
    return Change(settled, answer=True)


def _claimed_by(state: TeamState, owner: Membership, message_id: str) -> Message:
    """The message if the caller has claimed it, or is the recipient of it and it is final already."""
    message = state.message(message_id)
    if message is None:
        raise NotClaimed(f"{state.team} has no message {message_id!r}")
    if message.recipient != owner.alias:
        raise NotClaimed(f"message {message_id} is addressed to {message.recipient}, not to {owner.alias}")
    if is_unsettled(message) and not (is_claimed(message) and message.claim == owner.token):
        holder = "another session" if message.claim is not None else "nobody"
        raise NotClaimed(f"message {message_id} is {message.state} and claimed by {holder}")
    return message


def _with(state: TeamState, message: Message, by: Message) -> TeamState:
    messages = tuple(by if other is message else other for other in state.messages)
    return attrs.evolve(state, messages=messages)

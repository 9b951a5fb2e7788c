"""What a message has to satisfy to be sent, check by check (docs/lifecycles.md, "Operations")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_team.domain.capacity import records_taken, slots_taken
from pi_team.domain.operations.change import roster_text
from pi_team.errors import (
    Duplicate,
    LimitBody,
    LimitHistory,
    LimitInput,
    LimitRecipient,
    LimitSender,
    LimitSubject,
    LimitThread,
    ParentNotCompleted,
    ParentUnknown,
    RecipientUnknown,
    SelfAddressed,
    UsageError,
)
from pi_team.json_text import canonical
from pi_team.limits import (
    BODY_BYTES,
    DUPLICATE_WINDOW,
    MEMBER_SLOTS,
    RECORDS,
    SEND_INPUT_BYTES,
    SUBJECT_CHARACTERS,
    THREAD_MESSAGES,
)

if TYPE_CHECKING:
    from pi_team.domain.model import JsonObject, Message, TeamState

_BLANK = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What JavaScript's trim removes; Python's strip removes others, and not U+FEFF."""


def require_sendable(state: TeamState, value: JsonObject, parent: str | None) -> None:
    """Check what can be said of the message without looking at other messages.

    Args:
        state: the team.
        value: the message's ``from``, ``to``, ``kind``, ``subject`` and ``body``.
        parent: the id that it answers, if any.
    """
    to, kind, subject, body = value["to"], value["kind"], value["subject"], value["body"]
    if kind not in {"request", "note"}:
        raise UsageError(f"a message to send is a request or a note, not {kind!r}")
    if to == value["from"]:
        raise SelfAddressed(f"{to} cannot send a message to itself")
    if state.member(to) is None:
        others = [member.alias for member in state.members if member.alias != value["from"]]
        raise RecipientUnknown(
            f"{to!r} is not a member of {state.team}: {roster_text(state)}",
            hint=f"Address one of: {', '.join(others)}." if others else "Nobody else has joined yet.",
        )
    if not subject.strip(_BLANK):
        raise LimitSubject("the subject is blank")
    if len(subject) > SUBJECT_CHARACTERS:
        raise LimitSubject(f"the subject has {len(subject):,} characters; {SUBJECT_CHARACTERS} is the limit")
    size = len(body.encode("utf-8", "surrogatepass"))
    if size > BODY_BYTES:
        raise LimitBody(f"the body has {size:,} bytes; {BODY_BYTES:,} is the limit")
    sent = {"to": to, "kind": kind, "subject": subject, "body": body}
    size = len(canonical(sent if parent is None else sent | {"parentId": parent}).encode())
    if size > SEND_INPUT_BYTES:
        raise LimitInput(f"the message has {size:,} bytes as JSON; {SEND_INPUT_BYTES:,} is the limit")


def require_parent(state: TeamState, sender: str, parent: str, kind: str) -> Message:
    """The message that the new one belongs to, if it may be continued.

    Only a request is more work. It must not build on work that was not completed, whether its parent
    is that request, which has a result by then, or the result itself.
    """
    answered = state.message(parent)
    if answered is None:
        raise ParentUnknown(f"{state.team} has no message {parent!r}")
    if sender not in {answered.sender, answered.recipient}:
        raise ParentUnknown(
            f"message {parent} is between {answered.sender} and {answered.recipient}, not from or to {sender}"
        )
    if kind == "request":
        result = answered if answered.kind == "result" else state.result_of(answered.id)
        report = None if result is None else result.report
        if report is not None and report.outcome != "completed":
            raise ParentNotCompleted(f"the work of {parent} ended as {report.outcome}")
    taken = sum(
        message.root_id == answered.root_id and message.kind != "result" for message in state.messages
    )
    if taken >= THREAD_MESSAGES:
        raise LimitThread(f"the thread of {parent} has {taken} messages; {THREAD_MESSAGES} is the limit")
    return answered


def require_new(state: TeamState, value: JsonObject, now: float) -> None:
    """Refuse what was sent a moment ago already; a clock that stepped back does not lengthen the moment."""
    sender, to, subject, body = value["from"], value["to"], value["subject"], value["body"]
    for message in state.messages:
        if (
            message.body == body
            and message.subject == subject
            and message.sender == sender
            and message.recipient == to
            and 0 <= now - message.created < DUPLICATE_WINDOW * 1000
        ):
            seconds = int((now - message.created) / 1000)
            raise Duplicate(
                f"the same message was sent to {to} {seconds} s ago as {message.id}; "
                f"within {DUPLICATE_WINDOW:.0f} s it is taken for a repetition"
            )


def require_capacity(state: TeamState, sender: str, to: str, kind: str) -> None:
    """Refuse what has no room: at the recipient, for its result at the sender, or in the history."""
    taken = slots_taken(state, to)
    if taken >= MEMBER_SLOTS:
        raise LimitRecipient(f"{to} has {taken} unsettled or reserved; {MEMBER_SLOTS} is the limit")
    if kind == "request":
        taken = slots_taken(state, sender)
        if taken >= MEMBER_SLOTS:
            raise LimitSender(f"{sender} has {taken} unsettled or reserved; {MEMBER_SLOTS} is the limit")
    taken = records_taken(state)
    needed = 2 if kind == "request" else 1
    if taken + needed > RECORDS:
        raise LimitHistory(
            f"{state.team} has {taken} records, those reserved for results included, "
            f"and a {kind} needs {needed}; {RECORDS} is the limit"
        )

"""The lifecycles of a message and of a membership: the only place where a state comes from.

Theory (docs/lifecycles.md): a message is *unsettled* until it reaches a final state, and every
way there is a transition of the table below, so that the questions that matter can be answered by
reading it. Can work be done twice? Only ``release`` leads back, and only before anything was done.
Can a request stay without an answer? Every transition into a final state yields its result, except
``cancel``, after which nobody is left to read it. Can a note be claimed? No kind, no transition.

A membership is *connected*, *offline* or *absent*. The record stores the first as ``idle``, ``busy``
or ``paused``; what is displayed comes from presence.

The tables are data. The machines of the ``transitions`` library are built from them when they are
first used (importing that library is slow), and the diagrams, the tables in the docs and the TLA+
module are generated from them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import attrs

from pi_team.domain.model import Kind, Member, Message, MessageState, Status, changed_member, changed_message

if TYPE_CHECKING:
    from transitions import EventData, Machine

MessageTrigger: TypeAlias = Literal[
    "claim", "release", "settle", "interrupt", "refuse", "cancel", "show", "discard"
]
MemberTrigger: TypeAlias = Literal["join", "leave", "sweep", "rename", "remove"]
MemberState: TypeAlias = Literal["absent", "connected", "offline"]


class IllegalTransition(ValueError):
    """The lifecycle has no such transition from that state; nothing was changed."""


@attrs.frozen
class Transition:
    """One row of a lifecycle.

    Attributes:
        trigger: the event.
        sources: the states in which it is legal.
        dest: the state that it leads to.
        meaning: when it happens, in a few words.
        kinds: the kinds of message that it is for; empty for a membership.
        claim: what becomes of the message's claim.
        answers: whether a *request* that takes it yields its result in the same publication.
    """

    trigger: str
    sources: tuple[str, ...]
    dest: str
    meaning: str
    kinds: tuple[Kind, ...] = ()
    claim: Literal["kept", "set", "removed"] = "kept"
    answers: bool = False


@attrs.frozen
class Lifecycle:
    """The states of a thing, the one that it begins in, those that it ends in, and every transition."""

    name: str
    states: tuple[str, ...]
    initial: str
    finals: tuple[str, ...]
    transitions: tuple[Transition, ...]


MESSAGE = Lifecycle(
    name="message",
    states=("pending", "processing", "completed", "interrupted", "seen"),
    initial="pending",
    finals=("completed", "interrupted", "seen"),
    transitions=(
        Transition(
            "claim",
            ("pending",),
            "processing",
            "an idle recipient takes it",
            kinds=("request", "result"),
            claim="set",
        ),
        Transition(
            "release",
            ("processing",),
            "pending",
            "the claimant could not start; nothing was done",
            kinds=("request", "result"),
            claim="removed",
        ),
        Transition(
            "settle",
            ("processing",),
            "completed",
            "it was worked on; the outcome is completed or failed",
            kinds=("request", "result"),
            answers=True,
        ),
        Transition(
            "interrupt",
            ("processing",),
            "interrupted",
            "the outcome is interrupted, or the claimant left, died or came back under a new token",
            kinds=("request", "result"),
            answers=True,
        ),
        Transition(
            "refuse",
            ("pending", "processing"),
            "interrupted",
            "its recipient was removed",
            kinds=("request",),
            answers=True,
        ),
        Transition(
            "cancel",
            ("pending", "processing"),
            "interrupted",
            "its emitter was removed; nobody is left to read a result",
            kinds=("request",),
            claim="removed",
        ),
        Transition("show", ("pending",), "seen", "it was displayed", kinds=("note",)),
        Transition(
            "discard",
            ("pending", "processing"),
            "seen",
            "its recipient was removed",
            kinds=("note", "result"),
            claim="removed",
        ),
    ),
)

MEMBERSHIP = Lifecycle(
    name="membership",
    states=("absent", "connected", "offline"),
    initial="absent",
    finals=(),
    transitions=(
        Transition(
            "join",
            ("absent", "offline", "connected"),
            "connected",
            "a session takes the alias under a new token; "
            "from connected only where the holder is dead or is this session's process itself",
        ),
        Transition("leave", ("connected",), "offline", "the session goes; what it claimed is interrupted"),
        Transition("sweep", ("connected",), "offline", "the session is dead; what it claimed is interrupted"),
        Transition("rename", ("connected",), "connected", "the member renames itself"),
        Transition("rename", ("offline",), "offline", "another member or a person renames it"),
        Transition(
            "remove",
            ("offline", "connected"),
            "absent",
            "another member or a person removes it, which is offline or dead",
        ),
    ),
)

UNSETTLED = frozenset(MESSAGE.states) - frozenset(MESSAGE.finals)
"""The states of a message that something is still to happen to."""


# --- the machines ---------------------------------------------------------------------------------


class _Subject:
    """What a machine moves: it holds a state, and the machine adds ``trigger``."""

    state: str
    trigger: Any


@cache
def _machine(lifecycle: Lifecycle) -> Machine:
    from transitions import Machine  # noqa: PLC0415 # slow to import, and not needed to look at a team

    machine = Machine(
        model=None,
        states=list(lifecycle.states),
        initial=lifecycle.initial,
        auto_transitions=False,
        send_event=True,
    )
    for row in lifecycle.transitions:
        machine.add_transition(row.trigger, list(row.sources), row.dest, conditions=_kind_condition(row))
    return machine


def _kind_condition(row: Transition) -> Any:
    def is_for_this_kind(event: EventData) -> bool:
        return not row.kinds or event.kwargs["kind"] in row.kinds

    return is_for_this_kind


@cache
def _next(lifecycle: Lifecycle, kind: str | None, state: str, trigger: str) -> str:
    from transitions import MachineError  # noqa: PLC0415 # as above

    machine = _machine(lifecycle)
    subject = _Subject()
    machine.add_model(subject, initial=state)
    try:
        legal = trigger in machine.events and subject.trigger(trigger, kind=kind)
    except MachineError:
        legal = False
    finally:
        machine.remove_model(subject)
    if not legal:
        what = lifecycle.name if kind is None else kind
        raise IllegalTransition(f"no {trigger!r} for a {what} that is {state}")
    return subject.state


def advance(kind: Kind, state: MessageState, trigger: MessageTrigger) -> MessageState:
    """The state of a message after a trigger.

    Raises:
        IllegalTransition: the lifecycle has no such transition.
    """
    return cast("MessageState", _next(MESSAGE, kind, state, trigger))


def advance_member(state: MemberState, trigger: MemberTrigger) -> MemberState:
    """The state of a membership after a trigger.

    Raises:
        IllegalTransition: the lifecycle has no such transition.
    """
    return cast("MemberState", _next(MEMBERSHIP, None, state, trigger))


# --- moving a message or a member -----------------------------------------------------------------


def is_unsettled(message: Message) -> bool:
    """Whether the message has not reached a final state."""
    return message.state in UNSETTLED


def is_claimed(message: Message) -> bool:
    """Whether a session is working on the message (a note never is, whatever a peer may have written)."""
    return message.state == "processing" and message.kind != "note"


def transition_of(kind: Kind, trigger: MessageTrigger) -> Transition:
    """The row that a message of that kind takes.

    Raises:
        IllegalTransition: none.
    """
    for row in MESSAGE.transitions:
        if row.trigger == trigger and kind in row.kinds:
            return row
    raise IllegalTransition(f"no {trigger!r} for a {kind}")


def moved(message: Message, trigger: MessageTrigger, *, claim: str | None = None) -> Message:
    """The message after a trigger, its claim set, kept or removed as the transition says.

    Args:
        message: the message as it is.
        trigger: the event.
        claim: the claimant's token, for a transition that sets the claim.

    Raises:
        IllegalTransition: the lifecycle has no such transition.
    """
    state = advance(message.kind, message.state, trigger)
    if transition_of(message.kind, trigger).claim == "kept":
        return changed_message(message, state=state)
    return changed_message(message, state=state, claim=claim)


def membership_of(member: Member | None) -> MemberState:
    """The state of a membership, from what the record stores."""
    if member is None:
        return "absent"
    return "offline" if member.status == "offline" else "connected"


def status_after(member: Member | None, trigger: MemberTrigger) -> Status:
    """The status to store after a trigger that takes a member online or offline.

    Raises:
        IllegalTransition: the lifecycle has no such transition.
    """
    return "offline" if advance_member(membership_of(member), trigger) == "offline" else "idle"


def moved_member(member: Member, trigger: MemberTrigger, **changes: str | float) -> Member:
    """The member after a trigger that takes it online or offline, with further changes.

    Raises:
        IllegalTransition: the lifecycle has no such transition.
    """
    return changed_member(member, status=status_after(member, trigger), **changes)

"""The states of a session in a team, as data, and the machine that moves it: the only place of a state.

Theory. A session *works* from the moment in which it claims something (or starts a review) until that is
durably settled or given back, so that "has a claim" and "is working or leaving" are the same. What pauses a
session while it works takes effect when the work ends: `rest` in place of `finish`. Only `receiving` leads
to `work`: a paused, leaving or detached session claims nothing because there is no such transition.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from transitions import Machine, MachineError

from pi_team.domain.lifecycles import IllegalTransition, Lifecycle, Transition

State: TypeAlias = Literal["detached", "receiving", "working", "paused", "leaving", "closed"]
Trigger: TypeAlias = Literal[
    "join", "restore", "work", "finish", "rest", "pause", "resume", "leave", "detach", "close"
]

SESSION: Final = Lifecycle(
    name="session",
    states=("detached", "receiving", "working", "paused", "leaving", "closed"),
    initial="detached",
    finals=("closed",),
    transitions=(
        Transition("join", ("detached",), "receiving", "it became a member, or came back as one"),
        Transition(
            "restore", ("detached",), "paused", "it came back, and was paused or at work when it went"
        ),
        Transition("work", ("receiving",), "working", "it claimed a request or a result, or began a review"),
        Transition(
            "finish", ("working",), "receiving", "the work is durably settled, or was given back unstarted"
        ),
        Transition("rest", ("working",), "paused", "the same, and something asked for a pause meanwhile"),
        Transition(
            "pause", ("receiving",), "paused", "a person, or the cap on automatic turns, asked for it"
        ),
        Transition(
            "resume", ("paused",), "receiving", "a person said so, or typed where only the cap paused"
        ),
        Transition("leave", ("working",), "leaving", "a person said so; the work is reported first"),
        Transition(
            "detach",
            ("receiving", "working", "paused", "leaving"),
            "detached",
            "it left, or its membership is lost",
        ),
        Transition(
            "close",
            ("detached", "receiving", "working", "paused", "leaving"),
            "closed",
            "the host's session ends",
        ),
    ),
)


class SessionMachine:
    """One session's state. The library moves it; nothing else assigns it."""

    state: State
    trigger: Any

    def __init__(self) -> None:
        machine = Machine(
            model=self, states=list(SESSION.states), initial=SESSION.initial, auto_transitions=False
        )
        for row in SESSION.transitions:
            machine.add_transition(row.trigger, list(row.sources), row.dest)

    def fire(self, trigger: Trigger) -> None:
        """Take a transition.

        Raises:
            IllegalTransition: there is none from this state; nothing changed.
        """
        try:
            self.trigger(trigger)
        except MachineError as error:
            raise IllegalTransition(f"no {trigger!r} for a session that is {self.state}") from error

    @property
    def is_joined(self) -> bool:
        """Whether the session is a member."""
        return self.state not in {"detached", "closed"}

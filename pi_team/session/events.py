"""What a host tells the controller. Everything in it is checked for its type by whoever makes it."""

from __future__ import annotations

from typing import TypeAlias

import attrs

Call: TypeAlias = int | str
"""The host's name for a question of its own; the answer bears it."""


@attrs.frozen
class Poll:
    """Time has passed, or the record has changed."""


@attrs.frozen
class Restore:
    """The host's session has begun, or goes on after a helper that died.

    Attributes:
        entry: what it keeps of a membership, as it was written, or None.
        goes_on: whether nobody began it anew.
    """

    entry: object
    goes_on: bool = False


@attrs.frozen
class Command:
    """A person's `/team` line, without the `/team`."""

    call: Call
    line: str


@attrs.frozen
class Complete:
    """What a person has typed behind `/team `, up to the cursor."""

    call: Call
    prefix: str


@attrs.frozen
class ToolCall:
    """The model calls one of the tools; nothing of its parameters has been checked."""

    call: Call
    name: str
    params: object


@attrs.frozen
class Readiness:
    """Whether a turn may be started, at the moment of the answer.

    Attributes:
        model: a model is selected.
        idle: no turn runs.
        queued: something of the person's waits for its turn.
        prompt: a dialogue is open.
        editor_empty: the person is not writing.
    """

    model: bool
    idle: bool
    queued: bool
    prompt: bool
    editor_empty: bool

    @property
    def ready(self) -> bool:
        """Whether nothing stands in the way."""
        return self.model and self.idle and self.editor_empty and not self.queued and not self.prompt


@attrs.frozen
class Started:
    """The turn of a delivery runs."""

    delivery: str


@attrs.frozen
class NotStarted:
    """The host looked again in the moment of starting, and could not; nothing of the delivery was seen."""

    delivery: str


@attrs.frozen
class Confirmed:
    """A person's answer to a question."""

    question: str
    yes: bool


@attrs.frozen
class Typed:
    """A person gave input; the files that the running turn has changed so far, as absolute paths."""

    files: tuple[str, ...] = ()


@attrs.frozen
class Settled:
    """The agent's run is over.

    Attributes:
        text: its last text, if there is one.
        stop: why it ended: `stop`, `length`, `error`, `aborted`, or another word of the host's.
        error: what the model's provider said, where it ended by an error.
        files: the files that successful edits and writes named, as absolute paths.
    """

    text: str | None
    stop: str
    error: str | None = None
    files: tuple[str, ...] = ()


@attrs.frozen
class Shutdown:
    """The host's session ends, or another one takes its place."""


Event: TypeAlias = (
    Poll
    | Restore
    | Command
    | Complete
    | ToolCall
    | Readiness
    | Started
    | NotStarted
    | Confirmed
    | Typed
    | Settled
    | Shutdown
)

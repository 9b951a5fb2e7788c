"""What the controller wants done, in this order. Every text in it is harmless to display."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import attrs

if TYPE_CHECKING:
    from pi_team.session.events import Call

Level: TypeAlias = Literal["info", "warning", "error"]
WorkKind: TypeAlias = Literal["request", "result", "review"]


@attrs.frozen
class AskReadiness:
    """Ask the host for its readiness, after it has done what came before; answered by one Readiness."""


@attrs.frozen
class Deliver:
    """Start a turn with this text, if the host is still ready; answered by Started or NotStarted.

    Attributes:
        delivery: names it in the answer.
        kind: what it is about.
        text: what the model reads.
        details: the same for people: id, from, team, alias, kind, subject, body, created, and for a result
            outcome and files.
    """

    delivery: str
    kind: WorkKind
    text: str
    details: dict[str, Any]


@attrs.frozen
class Confirm:
    """Ask the person; answered by Confirmed."""

    question: str
    title: str
    message: str


@attrs.frozen
class Remember:
    """Write the membership down in the host's session, in place of what was there."""

    entry: dict[str, Any]


@attrs.frozen
class ShowState:
    """How things stand: the widget's line, the rules for the system prompt, whether the tools are there."""

    state: str
    team: str | None
    alias: str | None
    widget: str | None
    rules: str | None
    tools: bool


@attrs.frozen
class Show:
    """Put something into the person's transcript, outside the model's context.

    Its keys are `kind`, `title`, `lines` (a list) and, where there is one, `body`.
    """

    entry: dict[str, Any]


@attrs.frozen
class Notify:
    """Tell the person something."""

    level: Level
    text: str


@attrs.frozen
class Watch:
    """Watch this team's record from now on, or none."""

    team: str | None


@attrs.frozen
class Answer:
    """The answer to a Command (empty), a Complete (`items`) or a ToolCall (`text`, `details`, `isError`)."""

    call: Call
    result: dict[str, Any]


Effect: TypeAlias = AskReadiness | Deliver | Confirm | Remember | ShowState | Show | Notify | Watch | Answer

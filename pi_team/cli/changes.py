"""What changed between two looks at a team, as lines for people and events for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_team.cli.display import state_of
from pi_team.cli.objects import member_object, message_object
from pi_team.cli.output import styled_status
from pi_team.phrases import clock_time

if TYPE_CHECKING:
    from pi_team.cli.output import Output
    from pi_team.domain.model import Message
    from pi_team.domain.views import RosterEntry, TeamView

__all__ = ["tell"]


def tell(output: Output, before: TeamView | None, view: TeamView) -> None:
    """Print what is new in a look; of the first, everything that is not settled."""
    _tell_members(output, before, view)
    known = {} if before is None else {message.id: message.state for message in before.messages}
    for message in view.messages:
        if before is None and message.state not in {"pending", "processing"}:
            continue
        if known.get(message.id) != message.state:
            _tell_message(output, message, view.revision)


def _tell_members(output: Output, before: TeamView | None, view: TeamView) -> None:
    known = {} if before is None else {entry.member.alias: entry for entry in before.members}
    for entry in view.members:
        earlier = known.pop(entry.member.alias, None)
        if earlier is None or _shown(earlier) != _shown(entry):
            output.line(f"{entry.member.alias} is {entry.displayed}", styled_status(entry.displayed))
            output.json({"event": "member", "revision": view.revision, "member": member_object(entry)})
    for alias in known:
        output.line(f"{alias} is no member any more")
        output.json({"event": "member-gone", "revision": view.revision, "alias": alias})


def _shown(entry: RosterEntry) -> tuple[str, str]:
    """What of a member is worth a line when it changes: its status, and which session it is."""
    return entry.displayed, entry.member.token


def _tell_message(output: Output, message: Message, revision: int) -> None:
    state = state_of(message)
    output.line(
        f"{clock_time(message.created)}  {message.sender} to {message.recipient}: {message.kind} {state}: "
        f"{message.subject}  {message.id}",
        styled_status(state),
    )
    output.json({"event": "message", "revision": revision, "message": message_object(message)})

"""Members, messages and looks as the objects that `--json` prints and that a worker's command reads.

They have the record's field names, and unknown keys of newer peers; ownership tokens stay out, because
what is printed ends up in logs and in the contexts of models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pi_team.domain.model import JsonObject, Message
    from pi_team.domain.views import RosterEntry, TeamView

__all__ = ["flow_look", "member_object", "members_look", "message_object", "messages_look"]


def message_object(message: Message) -> JsonObject:
    """One message."""
    return {key: value for key, value in message.to_json().items() if key != "claim"}


def member_object(entry: RosterEntry) -> JsonObject:
    """One member, with `displayed` and `alive`."""
    return {key: value for key, value in entry.to_json().items() if key != "token"}


def members_look(view: TeamView) -> JsonObject:
    """The roster at a revision."""
    return _look(view, "members", [member_object(entry) for entry in view.members])


def messages_look(view: TeamView) -> JsonObject:
    """The messages at a revision."""
    return _look(view, "messages", [message_object(message) for message in view.messages])


def flow_look(view: TeamView) -> JsonObject:
    """The unresolved requests at a revision, without their texts."""
    return _look(view, "flow", [entry.to_json() for entry in view.flow])


def _look(view: TeamView, what: str, items: list[JsonObject]) -> JsonObject:
    return {"team": view.team, "revision": view.revision, what: items}

"""Finding the message that a person means by an id or the beginning of one, and the member of an alias."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_team.errors import MemberUnknown, MessageUnknown, ParentUnknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pi_team.domain.model import Message
    from pi_team.domain.views import TeamView

__all__ = ["own_request", "parent_id", "require_member"]


def own_request(messages: Iterable[Message], identifier: str, me: str) -> Message:
    """The request of mine with that id, or the only one whose id begins so.

    Raises:
        MessageUnknown: there is none, or several.
    """
    mine = [message for message in messages if message.kind == "request" and message.sender == me]
    found = _matching(mine, identifier)
    if not found:
        raise MessageUnknown(f'{me} has asked no request with the id "{identifier}"')
    if len(found) > 1:
        raise MessageUnknown(f'"{identifier}" is the beginning of {len(found)} ids', hint="Give more of it.")
    return found[0]


def parent_id(messages: Iterable[Message], identifier: str) -> str:
    """The whole id of the message meant, or what was given where none is; `send` judges that.

    Raises:
        ParentUnknown: the beginning fits several.
    """
    found = _matching(list(messages), identifier)
    if len(found) > 1:
        raise ParentUnknown(f'"{identifier}" is the beginning of {len(found)} ids', hint="Give more of it.")
    return found[0].id if found else identifier


def require_member(view: TeamView, alias: str) -> None:
    """Refuse an alias that nobody in the team has.

    Raises:
        MemberUnknown: nobody has it.
    """
    if all(entry.member.alias != alias for entry in view.members):
        raise MemberUnknown(f"{alias!r} is not a member of {view.team}")


def _matching(messages: Sequence[Message], identifier: str) -> list[Message]:
    exact = [message for message in messages if message.id == identifier]
    return exact or [message for message in messages if identifier and message.id.startswith(identifier)]

"""What the host's session keeps of a membership, so that the same session finds its way back.

The entry is `{"version": 1, "team", "alias", "session", "place", "paused", "turns"}`, `paused` being
`explicit`, `recovery` or null, or `{"version": 1, "left": true}`. Other fields are another version's and
ignored; the last entry of a session counts. A session that was forked has a copy of it, and another id.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import attrs

from pi_team.domain.codec import is_name
from pi_team.limits import IDENTIFIER_CHARACTERS

if TYPE_CHECKING:
    from pi_team.domain.model import Membership
    from pi_team.presence import Process

Pause: TypeAlias = Literal["explicit", "recovery", "budget"]
"""Why a session claims nothing: a person said so, it may have been at work when it ended, or the cap."""

LEFT: Final[dict[str, Any]] = {"version": 1, "left": True}
_RESTORED: Final = ("explicit", "recovery")
_PLACE_CHARACTERS: Final = 16


@attrs.frozen
class Session:
    """The host's session.

    Attributes:
        id: the host's name for it, the same when it is resumed.
        cwd: its working directory.
        process: the process that is the member: the host's, never a helper's.
    """

    id: str
    cwd: str
    process: Process


@attrs.frozen
class Entry:
    """A membership as a session kept it.

    Attributes:
        team, alias, session: whose it is.
        place: of the membership; None where another version kept it.
        paused: why the session comes back paused; None where it does not.
        turns: automatic turns since a person was there, for another helper of the same process.
    """

    team: str
    alias: str
    session: str
    place: str | None
    paused: Pause | None
    turns: int


class UnreadableEntry(ValueError):
    """It is no entry that any version wrote."""


def place(token: str) -> str:
    """What tells a membership from an earlier one of the same session, which it left: the token, unreadable.

    A session file may be shared; whoever had the token could act as the member.
    """
    return hashlib.sha256(token.encode()).hexdigest()[:_PLACE_CHARACTERS]


def written(
    owner: Membership, session: str, pause: Pause | None, *, endangered: bool, turns: int
) -> dict[str, Any]:
    """The entry to keep.

    Args:
        owner: the membership.
        session: the session's id.
        pause: the pause that holds now. One by the cap ends with the session, and is not kept.
        endangered: whether something may be claimed, so that a restored session has to come back paused.
        turns: automatic turns since a person was there.
    """
    kept = pause if pause in _RESTORED else None
    if endangered and kept is None:
        kept = "recovery"
    return {
        "version": 1,
        "team": owner.team,
        "alias": owner.alias,
        "session": session,
        "place": place(owner.token),
        "paused": kept,
        "turns": turns,
    }


def read(value: object) -> Entry | None:
    """The membership that an entry tells of; None where the session left.

    Raises:
        UnreadableEntry: it is none of the two forms.
    """
    if not isinstance(value, dict) or value.get("version") != 1:
        raise UnreadableEntry
    if value.get("left") is True:
        return None
    team, alias, session = value.get("team"), value.get("alias"), value.get("session")
    if not (isinstance(team, str) and isinstance(alias, str) and isinstance(session, str)):
        raise UnreadableEntry
    if not (is_name(team) and is_name(alias) and 1 <= len(session) <= IDENTIFIER_CHARACTERS):
        raise UnreadableEntry
    held, paused, turns = value.get("place"), value.get("paused"), value.get("turns")
    if paused is not None and paused not in _RESTORED:
        # A kind of pause that a later version knows: whatever it means, work must not start by itself.
        paused = "recovery"
    place_of = held if isinstance(held, str) else None
    counted = turns if isinstance(turns, int) and not isinstance(turns, bool) and turns > 0 else 0
    return Entry(team, alias, session, place_of, paused, counted)

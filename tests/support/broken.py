"""Rules taken out of the code, one at a time: what each prevents has to be noticed by whoever looks for it.

A process that was told to break a rule stays that way; the others keep it.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

from pi_team.domain.lifecycles import is_claimed
from pi_team.domain.operations import change, membership, messages
from pi_team.record.attempt import Attempt, Conflict
from pi_team.record.filesystem import write_all
from pi_team.record.publication import Publisher

if TYPE_CHECKING:
    from pi_team.domain.model import Member, Membership, Message, TeamState


def _wait_for_its_owner(*_: object) -> bool:
    raise Conflict


def _without_its_sync(attempt: Attempt, data: bytes) -> None:
    fs = attempt._team.fs
    fd = fs.create(attempt._private, attempt._team.revisions_fd)
    write_all(fs, fd, data)
    with contextlib.suppress(OSError):
        fs.fsync(fd)
    fs.close(fd)


def _synced_once_more(attempt: Attempt, data: bytes) -> None:
    fs = attempt._team.fs
    fd = fs.create(attempt._private, attempt._team.revisions_fd)
    write_all(fs, fd, data)
    try:
        fs.fsync(fd)
    except OSError:
        fs.fsync(fd)
    fs.close(fd)


def _owner_by_alias(state: TeamState, owner: Membership) -> Member:
    return state.member(owner.alias) or change.require_owner(state, owner)


def _all_claims(state: TeamState, _: object) -> tuple[list[Message], list[Member]]:
    at_work = [message for message in state.messages if is_claimed(message)]
    aliases = {message.recipient for message in at_work}
    return at_work, [member for member in state.members if member.alias in aliases]


_claimed_by = messages._claimed_by


def _whoever_claims(state: TeamState, owner: Membership, message_id: str) -> Message:
    message = state.message(message_id)
    return message if message is not None and is_claimed(message) else _claimed_by(state, owner, message_id)


def _no_interrupt(state: TeamState, *_: object, **__: object) -> TeamState:
    return state


RULES: Final[dict[str, tuple[Any, str, Any]]] = {
    "the look after the link": (Attempt, "verify", lambda _: True),
    "the sync of the file": (Attempt, "write", _without_its_sync),
    "one sync a descriptor": (Attempt, "write", _synced_once_more),
    "helping": (Publisher, "_install_for", _wait_for_its_owner),
    "the owner's token": (messages, "require_owner", _owner_by_alias),
    "whose claim is swept": (membership, "stale_claims", _all_claims),
    "whose claim is settled": (messages, "_claimed_by", _whoever_claims),
    "interrupting what the last holder claimed": (membership, "interrupt_claims", _no_interrupt),
}
"""By what it is that is taken out: where it is, its name there, and what stands there instead."""


def take_out(rule: str) -> None:
    """Do without a rule in this process from now on."""
    place, name, instead = RULES[rule]
    mock.patch.object(place, name, instead).start()

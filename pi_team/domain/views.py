"""Looking at a team without changing it: what one member sees, and what anybody sees.

A view is made of a state, of its revision, and of what presence says about the members. It is a
value of its own; ``to_json`` gives the object that ``--json`` prints, with the record's field names
plus ``displayed`` and ``alive``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import attrs

from pi_team.domain.capacity import outstanding
from pi_team.domain.claims import stale_claims
from pi_team.domain.lifecycles import membership_of
from pi_team.domain.operations.change import require_owner

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_team.domain.model import (
        JsonObject,
        Judge,
        Member,
        Membership,
        Message,
        MessageState,
        Status,
        TeamState,
        Verdict,
    )

    Shown: TypeAlias = Callable[[str, str], Status | None]
    """The status that the presence of an (alias, token) pair shows; ``None`` without such a presence."""


@attrs.frozen
class RosterEntry:
    """A member with what presence says of it.

    Attributes:
        member: its entry in the record.
        displayed: its status as far as it is known now; the record's own may be long out of date.
        alive: whether its session is alive; ``None`` where that is not known.
    """

    member: Member
    displayed: Status
    alive: bool | None

    def to_json(self) -> JsonObject:
        """The member object with ``displayed`` and ``alive``."""
        return self.member.to_json() | {"displayed": self.displayed, "alive": self.alive}


@attrs.frozen
class FlowEntry:
    """An unresolved request, without its body: who owes whom what, since when (milliseconds since 1970)."""

    id: str
    sender: str
    recipient: str
    subject: str
    state: MessageState
    created: float

    def to_json(self) -> JsonObject:
        """The entry with the record's field names."""
        return {
            "id": self.id,
            "from": self.sender,
            "to": self.recipient,
            "subject": self.subject,
            "state": self.state,
            "created": self.created,
        }


@attrs.frozen
class TeamView:
    """A team at one revision.

    Attributes:
        team: its name.
        revision: the record's revision.
        sweepable: whether a sweep would interrupt something.
        members: the roster.
        messages: the messages that the viewer sees, in record order.
        flow: every unresolved request of the team, in record order.
    """

    team: str
    revision: int
    sweepable: bool
    members: tuple[RosterEntry, ...]
    messages: tuple[Message, ...]
    flow: tuple[FlowEntry, ...]

    def to_json(self) -> JsonObject:
        """The whole view as one object."""
        return {
            "team": self.team,
            "revision": self.revision,
            "sweepable": self.sweepable,
            "members": [entry.to_json() for entry in self.members],
            "messages": [message.to_json() for message in self.messages],
            "flow": [entry.to_json() for entry in self.flow],
        }


@attrs.frozen
class Snapshot(TeamView):
    """What one member sees: the messages from or to it, and of others only the flow.

    Attributes:
        alias: whose snapshot it is.
    """

    alias: str


def look(state: TeamState, revision: int, *, judge: Judge, shown: Shown) -> TeamView:
    """The whole team, for somebody who need not be a member.

    Args:
        state: the team.
        revision: the record's revision.
        judge: judges the connected members, each once.
        shown: what a member's presence shows.
    """
    sweepable, members = _sessions(state, judge, shown)
    return TeamView(state.team, revision, sweepable, members, state.messages, flow(state))


def snapshot(state: TeamState, owner: Membership, revision: int, *, judge: Judge, shown: Shown) -> Snapshot:
    """What the caller sees.

    Args:
        state: the team.
        owner: the caller's membership.
        revision: the record's revision.
        judge: judges the connected members, each once.
        shown: what a member's presence shows.

    Raises:
        MembershipLost: the membership is not current.
    """
    require_owner(state, owner)
    sweepable, members = _sessions(state, judge, shown)
    messages = involving(state, owner.alias)
    return Snapshot(state.team, revision, sweepable, members, messages, flow(state), owner.alias)


@lru_cache(maxsize=4)  # a poll asks again and again of a record that did not change
def involving(state: TeamState, alias: str) -> tuple[Message, ...]:
    """The messages from or to an alias, in record order."""
    return tuple(message for message in state.messages if alias in {message.sender, message.recipient})


@lru_cache(maxsize=4)
def flow(state: TeamState) -> tuple[FlowEntry, ...]:
    """The unresolved requests of the team, in record order."""
    return tuple(
        FlowEntry(
            request.id,
            request.sender,
            request.recipient,
            request.subject,
            request.state,
            request.created,
        )
        for request in outstanding(state)
    )


def sweepable(state: TeamState, judge: Judge) -> bool:
    """Whether a sweep would interrupt something; only then is it worth a write."""
    return bool(stale_claims(state, judge)[0])


def _sessions(state: TeamState, judge: Judge, shown: Shown) -> tuple[bool, tuple[RosterEntry, ...]]:
    """Whether a sweep would interrupt something, and the roster, by one and the same judgement."""
    verdicts = {
        (member.alias, member.token): judge(member.alias, member.token)
        for member in state.members
        if membership_of(member) == "connected"
    }
    members = tuple(
        _entry(member, verdicts.get((member.alias, member.token), "dead"), shown) for member in state.members
    )
    return sweepable(state, lambda alias, token: verdicts[alias, token]), members


def _entry(member: Member, verdict: Verdict, shown: Shown) -> RosterEntry:
    """A member is displayed as its presence shows it, and as offline unless it is known to be alive."""
    if verdict != "alive":
        return RosterEntry(member, "offline", None if verdict == "unknown" else False)
    status = shown(member.alias, member.token)
    return RosterEntry(member, member.status if status is None else status, alive=True)

"""Renaming and removing members, and what a team needs before it is renamed or deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from pi_team.domain.capacity import unsettled
from pi_team.domain.lifecycles import advance_member, is_unsettled, membership_of
from pi_team.domain.model import TeamState, changed_member, changed_message
from pi_team.domain.operations.change import (
    Change,
    operation,
    require_member,
    require_name,
    require_owner,
)
from pi_team.domain.operations.membership import replaced, sweep_member
from pi_team.domain.operations.settlement import REMOVED_AT_WORK, REMOVED_UNSTARTED, Settlement, settle_each
from pi_team.errors import AliasExists, MemberAlive, TeamActive

if TYPE_CHECKING:
    from pi_team.domain.model import Judge, Member, Membership, Message, NewId


@operation
def rename_member(
    state: TeamState,
    actor: Membership | None,
    alias: str,
    new: str,
    *,
    judge: Judge,
    now: float,
    new_id: NewId,
) -> Change[Membership | None]:
    """Give a member another alias; every message endpoint follows, settled ones too, and its token stays.

    Answers the caller's membership, under its new alias when it renamed itself; ``None`` for a person.
    A dead member is swept first, and stays swept when the new alias is then refused.

    Args:
        state: the team.
        actor: the caller's membership; ``None`` for a person at the command line.
        alias: the member to rename.
        new: its new alias.
        judge: judges another's connected alias.
        now: milliseconds since 1970.
        new_id: gives ids for the results of interrupted requests.

    Refuses with ``MEMBERSHIP_LOST``, ``NAME_INVALID``, ``MEMBER_UNKNOWN``, ``MEMBER_ALIVE`` and
    ``ALIAS_EXISTS``.
    """
    if actor is not None:
        require_owner(state, actor)
    require_name(new, "alias")
    member = require_member(state, alias)
    if actor is not None and actor.alias == alias:
        actor = attrs.evolve(actor, alias=new)
    else:
        state = _without_session(state, member, judge, now=now, new_id=new_id)
    try:
        _require_free(state, new)
    except AliasExists as refusal:
        return Change(state, refusal=refusal)
    return Change(_renamed(state, alias, new), actor)


def _without_session(
    state: TeamState, member: Member, judge: Judge, *, now: float, new_id: NewId
) -> TeamState:
    """The team with the member offline, swept if need be; ``MEMBER_ALIVE`` unless it is offline or dead."""
    if membership_of(member) == "offline":
        return state
    _require_dead(member, judge, "renamed by others")
    return sweep_member(state, member, now=now, new_id=new_id)


def _require_dead(member: Member, judge: Judge, what: str) -> None:
    verdict = judge(member.alias, member.token)
    if verdict != "dead":
        doubt = "is" if verdict == "alive" else "may be"
        raise MemberAlive(
            f"{member.alias} {doubt} a living session (process {member.pid}) and cannot be {what}"
        )


def _require_free(state: TeamState, new: str) -> None:
    if state.member(new) is not None:
        raise AliasExists(f"{new} is a member of {state.team} already")
    for message in unsettled(state):
        if new in {message.sender, message.recipient}:
            raise AliasExists(f"{new} is an endpoint of message {message.id}, which is {message.state}")


def _renamed(state: TeamState, alias: str, new: str) -> TeamState:
    def follow(message: Message) -> Message:
        ends = {"from": message.sender, "to": message.recipient}
        moved = {key: new for key, end in ends.items() if end == alias}
        return changed_message(message, **moved) if moved else message

    member = require_member(state, alias)
    advance_member(membership_of(member), "rename")
    return attrs.evolve(
        state,
        members=replaced(state, member, changed_member(member, alias=new)),
        messages=tuple(follow(message) for message in state.messages),
    )


@attrs.frozen
class Removal:
    """What the removal of a member settled: how many messages in which way."""

    refused: int = 0
    cancelled: int = 0
    discarded: int = 0


@operation
def remove_member(
    state: TeamState,
    actor: Membership | None,
    alias: str,
    *,
    judge: Judge,
    now: float,
    new_id: NewId,
) -> Change[Removal]:
    """Take an offline or dead member out of the roster and settle what involves it, at once.

    Requests to it are refused, and their emitters get an interrupted result; requests from it are
    cancelled; notes and results to it are discarded. Settled history stays.

    Refuses with ``MEMBERSHIP_LOST``, ``MEMBER_UNKNOWN`` and ``MEMBER_ALIVE``, the latter also for the
    caller itself.
    """
    if actor is not None:
        require_owner(state, actor)
    member = require_member(state, alias)
    if actor is not None and actor.alias == alias:
        raise MemberAlive(f"{alias} cannot remove itself", hint="Leave the team instead.")
    if membership_of(member) != "offline":
        _require_dead(member, judge, "removed")
    advance_member(membership_of(member), "remove")
    counts = {"refuse": 0, "cancel": 0, "discard": 0}

    def choose(message: Message) -> Settlement | None:
        settlement = _removal_of(message, alias)
        if settlement is not None:
            counts[settlement.trigger] += 1
        return settlement

    settled = settle_each(state, choose, now=now, new_id=new_id)
    members = tuple(other for other in state.members if other is not member)
    return Change(
        attrs.evolve(settled, members=members),
        Removal(counts["refuse"], counts["cancel"], counts["discard"]),
    )


def _removal_of(message: Message, alias: str) -> Settlement | None:
    if not is_unsettled(message):
        return None
    if message.kind == "request" and message.sender == alias:
        return Settlement("cancel")
    if message.recipient != alias:
        return None
    if message.kind != "request":
        return Settlement("discard")
    return Settlement("refuse", REMOVED_UNSTARTED if message.state == "pending" else REMOVED_AT_WORK)


@operation
def close_team(state: TeamState, *, judge: Judge, now: float, new_id: NewId) -> Change[None]:
    """Make sure that no session is in the team, for its renaming or deletion, and sweep the dead ones.

    Refuses with ``TEAM_ACTIVE``, naming who is or may be alive; those who are dead stay swept then.
    """
    living: list[str] = []
    for member in state.members:
        if membership_of(member) == "offline":
            continue
        verdict = judge(member.alias, member.token)
        if verdict == "dead":
            state = sweep_member(state, member, now=now, new_id=new_id)
        else:
            living.append(member.alias if verdict == "alive" else f"{member.alias} (not known yet)")
    if not living:
        return Change(state)
    refusal = TeamActive(f"{state.team} has living members: {', '.join(living)}")
    return Change(state, refusal=refusal)


def retitle(state: TeamState, new_team: str) -> TeamState:
    """The same team under another name, which every member and message bears too.

    Raises:
        NameInvalid: the new name is not one.
    """
    require_name(new_team, "team name")
    return TeamState(
        new_team,
        tuple(changed_member(member, team=new_team) for member in state.members),
        tuple(changed_message(message, team=new_team) for message in state.messages),
        state.frame,
    )

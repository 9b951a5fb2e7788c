"""Creating a team, joining and leaving it, and sweeping those who died (docs/lifecycles.md, "Operations")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from pi_team.domain.claims import stale_claims
from pi_team.domain.lifecycles import membership_of, moved_member, status_after
from pi_team.domain.model import FRAME, Member, Membership, TeamState
from pi_team.domain.operations.change import (
    Change,
    operation,
    require_identifier,
    require_name,
    require_owner,
)
from pi_team.domain.operations.settlement import (
    DIED,
    LEFT,
    RETURNED,
    Settlement,
    interrupt_claims,
    settle_each,
)
from pi_team.errors import AliasAlive, LimitMembers
from pi_team.json_text import well_paired
from pi_team.limits import CWD_CHARACTERS, MEMBERS

if TYPE_CHECKING:
    from pi_team.domain.model import Judge, NewId


def create(team: str) -> TeamState:
    """A team without members and messages.

    Raises:
        NameInvalid: the name is not one.
    """
    require_name(team, "team name")
    return TeamState(team, (), (), FRAME)


@operation
def join(
    state: TeamState,
    *,
    alias: str,
    session: str,
    cwd: str,
    pid: int,
    token: str,
    now: float,
    judge: Judge,
    new_id: NewId,
) -> Change[Membership]:
    """Make a session the holder of an alias under a new token, and interrupt what an older token claimed.

    Args:
        state: the team.
        alias: the alias; it inherits what is addressed to it.
        session: the session's id.
        cwd: the session's working directory.
        pid: the session's process; the same one under the same session id may join again.
        token: the new ownership token, unique for ever.
        now: milliseconds since 1970.
        judge: judges the present holder.
        new_id: gives ids for the results of interrupted requests.

    Refuses with ``NAME_INVALID``, ``LIMIT_IDENTIFIER``, ``LIMIT_MEMBERS`` and ``ALIAS_ALIVE``.
    """
    require_name(alias, "alias")
    # As the record has them when it is read again, so that a session knows itself in it.
    session, token, cwd = well_paired(session), well_paired(token), well_paired(cwd)
    require_identifier(session, "session id")
    require_identifier(token, "token")
    require_identifier(cwd, "working directory", CWD_CHARACTERS)
    holder = state.member(alias)
    if holder is None:
        if len(state.members) >= MEMBERS:
            raise LimitMembers(f"{state.team} has {len(state.members)} members; {MEMBERS} is the limit")
    elif membership_of(holder) == "connected":
        _require_replaceable(holder, session, pid, judge)
    values: dict[str, str | float] = {"session": session, "token": token, "cwd": cwd, "pid": pid, "seen": now}
    if holder is None:
        value = {"team": state.team, "alias": alias} | values | {"status": status_after(None, "join")}
        members = (*state.members, Member.from_json(value))
    else:
        joined = moved_member(holder, "join", **values)
        members = replaced(state, holder, joined)
    state = interrupt_claims(
        state, lambda message: message.recipient == alias, RETURNED, now=now, new_id=new_id
    )
    return Change(attrs.evolve(state, members=members), Membership(state.team, alias, session, token))


def _require_replaceable(holder: Member, session: str, pid: int, judge: Judge) -> None:
    if holder.session == session and holder.pid == pid:  # its helper restarted; the session itself is here
        return
    verdict = judge(holder.alias, holder.token)
    if verdict == "alive":
        raise AliasAlive(f"{holder.alias} is a living session (process {holder.pid})")
    if verdict == "unknown":
        raise AliasAlive(
            f"{holder.alias} may be a living session (process {holder.pid}); that is not known yet"
        )


@operation
def leave(state: TeamState, owner: Membership, *, now: float, new_id: NewId) -> Change[None]:
    """Take the caller offline and interrupt its own claims; its address and its history stay.

    Refuses with ``MEMBERSHIP_LOST``.
    """
    member = require_owner(state, owner)
    members = replaced(state, member, moved_member(member, "leave"))
    state = interrupt_claims(
        state,
        lambda message: message.recipient == owner.alias and message.claim == owner.token,
        LEFT,
        now=now,
        new_id=new_id,
    )
    return Change(attrs.evolve(state, members=members))


@operation
def sweep(state: TeamState, owner: Membership, *, judge: Judge, now: float, new_id: NewId) -> Change[int]:
    """Interrupt the stale claims and take the dead members that held them offline; answers how many claims.

    A claim is stale when it is not the token of a connected member with its recipient's alias that is
    not dead (:func:`pi_team.domain.claims.stale_claims`).

    Refuses with ``MEMBERSHIP_LOST``.
    """
    require_owner(state, owner)
    stale, dead = stale_claims(state, judge)
    if not stale:
        return Change(state, 0)
    identities = {id(message) for message in stale}
    settlement = Settlement("interrupt", DIED)
    swept = settle_each(
        state,
        lambda message: settlement if id(message) in identities else None,
        now=now,
        new_id=new_id,
    )
    return Change(attrs.evolve(swept, members=taken_offline(state, dead)), len(stale))


def sweep_member(state: TeamState, member: Member, *, now: float, new_id: NewId) -> TeamState:
    """Take one dead member offline and interrupt what it claimed, for an operation that needs that."""
    swept = interrupt_claims(
        state, lambda message: message.recipient == member.alias, DIED, now=now, new_id=new_id
    )
    return attrs.evolve(swept, members=taken_offline(state, [member]))


def taken_offline(state: TeamState, dead: list[Member]) -> tuple[Member, ...]:
    """The roster with the dead members offline."""
    return tuple(moved_member(member, "sweep") if member in dead else member for member in state.members)


def replaced(state: TeamState, member: Member, by: Member) -> tuple[Member, ...]:
    """The roster with one member replaced, at its place."""
    return tuple(by if other is member else other for other in state.members)

"""Teams as one would explain them: plain values, and what each operation makes of them.

Written from docs/lifecycles.md, "Operations", and from nothing else: no code under test is used here. Members
are known by their session's id, messages by their kind and subject; the machine never gives one twice. What
only a full team refuses is left out: these teams stay small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

THREAD: Final = 8
UNSETTLED: Final = frozenset({"pending", "processing"})
Judge: TypeAlias = "Callable[[str], str]"
"""Says of a session whether it is alive, dead or unknown."""


@attrs.frozen(cache_hash=True)
class Member:
    """An alias, and the session that has it or had it last."""

    alias: str
    session: str
    connected: bool = True


@attrs.frozen(cache_hash=True)
class Message:
    """A message; `claim` is a session, `outcome` a result's, `thread` and `parent` are keys."""

    kind: str
    subject: str
    sender: str
    to: str
    thread: str
    parent: str = ""
    state: str = "pending"
    claim: str = ""
    outcome: str = ""

    @property
    def key(self) -> str:
        """What it is known by; a result bears the subject of its request."""
        return f"{self.kind} {self.subject}"


@attrs.frozen(cache_hash=True)
class Team:
    """A team as its record has it; `title` is the name that the record gives it."""

    title: str
    members: tuple[Member, ...] = ()
    messages: tuple[Message, ...] = ()

    def member(self, alias: str) -> Member | None:
        """The member of that alias."""
        return next((member for member in self.members if member.alias == alias), None)

    def message(self, key: str) -> Message | None:
        """The message of that key."""
        return next((message for message in self.messages if message.key == key), None)


@attrs.frozen
class Owner:
    """Who acts: the alias that it believes to have, and its session."""

    alias: str
    session: str


class No(Exception):
    """An operation refuses.

    Attributes:
        code: why.
        swept: what it nevertheless publishes.
    """

    def __init__(self, code: str, swept: Team | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.swept = swept


# --- what several operations share ------------------------------------------------------------------


def current(team: Team, owner: Owner) -> Member:
    """The owner's entry. Refuses with MEMBERSHIP_LOST."""
    member = team.member(owner.alias)
    if member is None or member.session != owner.session or not member.connected:
        raise No("MEMBERSHIP_LOST")
    return member


def changed(team: Team, member: Member, *by: Member) -> Team:
    """Put a changed member, or none, at the place of another."""
    members = ((other,) if other is not member else by for other in team.members)
    return attrs.evolve(team, members=tuple(one for some in members for one in some))


def replaced(team: Team, message: Message, **by: Any) -> Team:
    """The team with one message changed."""
    messages = (attrs.evolve(one, **by) if one is message else one for one in team.messages)
    return attrs.evolve(team, messages=tuple(messages))


def ended(team: Team, ends: dict[str, str]) -> Team:
    """End messages by key: as an outcome, which a request's result tells its emitter; `cancelled`; `seen`."""
    messages, results = [], []
    for message in team.messages:
        end = ends.get(message.key)
        if end is not None:
            if message.kind == "request" and end != "cancelled":
                back = {"sender": message.to, "to": message.sender, "parent": message.key}
                results.append(Message("result", message.subject, thread=message.thread, outcome=end, **back))
            state = {"failed": "completed", "cancelled": "interrupted"}.get(end, end)
            claim = "" if end in {"cancelled", "seen"} else message.claim
            message = attrs.evolve(message, state=state, claim=claim)  # noqa: PLW2901 - the same one, ended
        messages.append(message)
    return attrs.evolve(team, messages=(*messages, *results))


def interrupted(team: Team, gone: Iterable[Member]) -> Team:
    """Interrupt all that is claimed under the aliases of these members."""
    aliases = {member.alias for member in gone}
    at_work = [one for one in team.messages if one.state == "processing" and one.to in aliases]
    return ended(team, {one.key: "interrupted" for one in at_work})


def swept(team: Team, dead: Iterable[Member]) -> Team:
    """Take these members offline; what they claimed is interrupted."""
    gone = list(dead)
    team = interrupted(team, gone)
    for member in gone:
        team = changed(team, member, attrs.evolve(member, connected=False))
    return team


def vacated(team: Team, judge: Judge) -> Team:
    """The team with its dead swept. Refuses with TEAM_ACTIVE, and they stay swept."""
    there = [member for member in team.members if member.connected]
    for member in there:
        if judge(member.session) == "dead":
            team = swept(team, [member])
    if any(member.connected for member in team.members):
        raise No("TEAM_ACTIVE", team)
    return team


# --- membership -------------------------------------------------------------------------------------


def join(team: Team, judge: Judge, alias: str, session: str) -> tuple[Team, Any]:
    """The session has the alias from now on."""
    holder = team.member(alias)
    if holder is None:
        return attrs.evolve(team, members=(*team.members, Member(alias, session))), alias
    if holder.connected and judge(holder.session) != "dead":
        raise No("ALIAS_ALIVE")
    return changed(interrupted(team, [holder]), holder, Member(alias, session)), alias


def leave(team: Team, _: Judge, owner: Owner) -> tuple[Team, Any]:
    """The owner goes."""
    return swept(team, [current(team, owner)]), None


def sweep(team: Team, judge: Judge, owner: Owner) -> tuple[Team, Any]:
    """Whoever died at work is taken offline; answers how much work that was."""
    current(team, owner)
    at_work = {one.to for one in team.messages if one.state == "processing"}
    dead = [
        one for one in team.members if one.connected and one.alias in at_work and judge(one.session) == "dead"
    ]
    return swept(team, dead), len(dead)


def rename_member(team: Team, judge: Judge, actor: Owner | None, alias: str, new: str) -> tuple[Team, Any]:
    """Everything that bears the alias bears the new one."""
    if actor is not None:
        current(team, actor)
    member = team.member(alias)
    if member is None:
        raise No("MEMBER_UNKNOWN")
    if member.connected and not (actor is not None and actor.alias == alias):
        if judge(member.session) != "dead":
            raise No("MEMBER_ALIVE")
        team = swept(team, [member])
    ends = {end for one in team.messages if one.state in UNSETTLED for end in (one.sender, one.to)}
    if team.member(new) is not None or new in ends:
        raise No("ALIAS_EXISTS", team)
    member = team.member(alias)
    assert member is not None
    messages = tuple(
        attrs.evolve(
            one,
            sender=new if one.sender == alias else one.sender,
            to=new if one.to == alias else one.to,
        )
        for one in team.messages
    )
    renamed = changed(team, member, attrs.evolve(member, alias=new))
    return attrs.evolve(renamed, messages=messages), None


def remove_member(team: Team, judge: Judge, actor: Owner | None, alias: str) -> tuple[Team, Any]:
    """The member is gone, and nothing waits for it; answers how much was refused, cancelled, discarded."""
    if actor is not None:
        current(team, actor)
    member = team.member(alias)
    if member is None:
        raise No("MEMBER_UNKNOWN")
    if member.connected and ((actor is not None and actor.alias == alias) or judge(member.session) != "dead"):
        raise No("MEMBER_ALIVE")
    waiting = [one for one in team.messages if one.state in UNSETTLED]
    cancelled = {one.key: "cancelled" for one in waiting if one.kind == "request" and one.sender == alias}
    refused = {one.key: "interrupted" for one in waiting if one.kind == "request" and one.to == alias}
    discarded = {one.key: "seen" for one in waiting if one.kind != "request" and one.to == alias}
    counts = (len(refused), len(cancelled), len(discarded))
    return changed(ended(team, cancelled | refused | discarded), member), counts


# --- messages ---------------------------------------------------------------------------------------


def send(
    team: Team, _: Judge, owner: Owner, *, to: str, kind: str, subject: str, parent: str
) -> tuple[Team, Any]:
    """One more message."""
    current(team, owner)
    if to == owner.alias:
        raise No("SELF_ADDRESSED")
    if team.member(to) is None:
        raise No("RECIPIENT_UNKNOWN")
    message = Message(kind, subject, owner.alias, to, thread=f"{kind} {subject}", parent=parent)
    if parent:
        answered = team.message(parent)
        if answered is None or owner.alias not in {answered.sender, answered.to}:
            raise No("PARENT_UNKNOWN")
        result = team.message(f"result {answered.subject}") if answered.kind != "note" else None
        if kind == "request" and result is not None and result.outcome != "completed":
            raise No("PARENT_NOT_COMPLETED")
        together = [one for one in team.messages if one.thread == answered.thread and one.kind != "result"]
        if len(together) >= THREAD:
            raise No("LIMIT_THREAD")
        message = attrs.evolve(message, thread=answered.thread)
    return attrs.evolve(team, messages=(*team.messages, message)), message.key


def notes(team: Team, _: Judge, owner: Owner) -> tuple[Team, Any]:
    """The owner has seen its notes."""
    current(team, owner)
    new = [one for one in team.messages if (one.kind, one.to, one.state) == ("note", owner.alias, "pending")]
    return ended(team, {one.key: "seen" for one in new}), tuple(one.key for one in new)


def claim(team: Team, _: Judge, owner: Owner, wanted: str) -> tuple[Team, Any]:
    """The owner works on its first request or result, or on the one that it asks for."""
    current(team, owner)
    if wanted and team.message(wanted) is None:
        raise No("MESSAGE_UNKNOWN")
    mine = [one for one in team.messages if one.to == owner.alias and one.kind != "note"]
    if any(one.state == "processing" for one in mine):
        raise No("ALREADY_CLAIMING")
    for one in mine:
        if one.state == "pending" and wanted in {"", one.key}:
            return replaced(team, one, state="processing", claim=owner.session), one.key
    return team, None


def _claimed(team: Team, owner: Owner, key: str) -> Message | None:
    """What the owner works on; None where it is final. Refuses with NOT_CLAIMED."""
    current(team, owner)
    message = team.message(key)
    if message is None or message.to != owner.alias:
        raise No("NOT_CLAIMED")
    if message.state not in UNSETTLED:
        return None
    if message.state != "processing" or message.claim != owner.session:
        raise No("NOT_CLAIMED")
    return message


def release(team: Team, _: Judge, owner: Owner, key: str) -> tuple[Team, Any]:
    """It was not begun."""
    message = _claimed(team, owner, key)
    if message is None:
        return team, False
    return replaced(team, message, state="pending", claim=""), True


def settle(team: Team, _: Judge, owner: Owner, key: str, outcome: str) -> tuple[Team, Any]:
    """It was worked on."""
    message = _claimed(team, owner, key)
    return (team, False) if message is None else (ended(team, {key: outcome}), True)

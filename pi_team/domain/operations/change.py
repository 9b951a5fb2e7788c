"""What an operation gives back, and the checks that several operations share."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Concatenate, Generic, ParamSpec, TypeVar

import attrs

from pi_team.domain.codec import is_name
from pi_team.domain.lifecycles import membership_of
from pi_team.errors import LimitIdentifier, MembershipLost, MemberUnknown, NameInvalid, PiTeamError
from pi_team.limits import IDENTIFIER_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_team.domain.model import Member, Membership, TeamState

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
P = ParamSpec("P")


@attrs.frozen
class Change(Generic[T_co]):
    """What an operation makes of a team.

    Attributes:
        state: the team afterwards; the very object that went in when nothing changed. It is to be
            published where it differs, also together with a refusal: then it is a sweep that the
            operation needed, and that stays useful (docs/lifecycles.md, "Operations").
        answer: what the operation answers; ``None`` with a refusal.
        refusal: why the operation was refused, if it was.
    """

    state: TeamState
    answer: T_co | None = None
    refusal: PiTeamError | None = None

    def unwrap(self) -> T_co:
        """The answer.

        Raises:
            PiTeamError: the refusal, if the operation was refused.
        """
        if self.refusal is not None:
            raise self.refusal
        return self.answer  # type: ignore[return-value] # None is an answer where T_co says so


def operation(
    body: Callable[Concatenate[TeamState, P], Change[T]],
) -> Callable[Concatenate[TeamState, P], Change[T]]:
    """Let an operation's body raise its refusals; its caller gets them as a :class:`Change` of nothing."""

    @wraps(body)
    def operate(state: TeamState, /, *args: P.args, **kwargs: P.kwargs) -> Change[T]:
        try:
            return body(state, *args, **kwargs)
        except PiTeamError as refusal:
            return Change(state, refusal=refusal)

    return operate


def require_name(name: str, what: str) -> None:
    """Refuse what is no team name or alias with ``NAME_INVALID``."""
    if not is_name(name):
        raise NameInvalid(f"{name!r} is not a valid {what}")


def require_identifier(value: str, what: str, limit: int = IDENTIFIER_CHARACTERS) -> None:
    """Refuse what is empty or longer than ``limit`` characters with ``LIMIT_IDENTIFIER``."""
    if not 1 <= len(value) <= limit:
        raise LimitIdentifier(
            f"the {what} has {len(value):,} characters, not 1 to {limit:,}", hint=f"Give a shorter {what}."
        )


def require_member(state: TeamState, alias: str) -> Member:
    """The member of that alias, or ``MEMBER_UNKNOWN``, which names those that there are."""
    member = state.member(alias)
    if member is None:
        raise MemberUnknown(f"{alias!r} is not a member of {state.team}: {roster_text(state)}")
    return member


def require_owner(state: TeamState, owner: Membership) -> Member:
    """The caller's own entry in the roster, or ``MEMBERSHIP_LOST``: alias *and* token have to be current."""
    if owner.team != state.team:
        raise MembershipLost(f"a membership of {owner.team} is none of {state.team}")
    member = state.member(owner.alias)
    if member is None:
        raise MembershipLost(f"{owner.alias} is not a member of {state.team} any more: renamed or removed")
    if member.token != owner.token:
        raise MembershipLost(f"{owner.alias} belongs to another session of {state.team} by now")
    if membership_of(member) == "offline":
        raise MembershipLost(f"{owner.alias} is offline in {state.team}: it left, or was taken for dead")
    return member


def roster_text(state: TeamState) -> str:
    """The aliases of the team for a message to a person."""
    if not state.members:
        return "it has no members"
    return f"its members are {', '.join(member.alias for member in state.members)}"

"""Claims whose claimant is gone: what a sweep interrupts, and whether there is anything to sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_team.domain.capacity import unsettled
from pi_team.domain.lifecycles import is_claimed, membership_of

if TYPE_CHECKING:
    from pi_team.domain.model import Judge, Member, Message, TeamState


def stale_claims(state: TeamState, judge: Judge) -> tuple[list[Message], list[Member]]:
    """The claimed messages that a sweep interrupts, and the dead members that it takes offline.

    A claim stands while it is the token of a connected member with the recipient's alias that is not
    dead (docs/lifecycles.md, "Sweepable"). The judge is asked at most once for a member, and only for
    members that hold a claim.
    """
    stale: list[Message] = []
    dead: dict[str, Member] = {}
    standing: set[str] = set()
    for message in unsettled(state):
        if not is_claimed(message):
            continue
        alias = message.recipient
        holder = state.member(alias)
        if holder is None or membership_of(holder) != "connected" or holder.token != message.claim:
            stale.append(message)
            continue
        if alias not in standing and alias not in dead:
            if judge(alias, holder.token) == "dead":
                dead[alias] = holder
            else:
                standing.add(alias)
        if alias in dead:
            stale.append(message)
    return stale, list(dead.values())

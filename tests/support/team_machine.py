"""A team under arbitrary operations, and the named invariants of docs/lifecycles.md after each of them.

Judgements are arbitrary: a living session may be taken for dead at any step, which covers more than
any rule of presence could produce. Sessions go on using memberships that they lost. The limits are
made small, so that they are reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import team_invariants
from pi_team.domain.codec import TeamCodec
from team_steps import LOST, NAMES, RECORDS, SESSIONS, SLOTS, TeamSteps

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_team.domain.model import Verdict

names = st.sampled_from(NAMES)
sessions = st.sampled_from(SESSIONS)
# Which of several: 0 is the first, LOST one that does not fit any more. Most steps are likely ones.
likely = st.sampled_from([0, 0, 0, 1, 1, 2, 3, LOST])
verdicts: st.SearchStrategy[Verdict] = st.sampled_from(["alive", "alive", "dead", "unknown"])
judgements = st.fixed_dictionaries(dict.fromkeys(NAMES, verdicts))
outcomes = st.sampled_from(["completed", "failed", "interrupted"])


class Team(TeamSteps, RuleBasedStateMachine):
    """Arbitrary steps, and what has to hold after each."""

    def __init__(self) -> None:
        RuleBasedStateMachine.__init__(self)
        TeamSteps.__init__(self)

    # --- the steps; few rules, because every example goes without some of the rules

    @initialize()
    def two_are_there(self) -> None:
        self.join("a", "s1", 1, dict.fromkeys(NAMES, "alive"))
        self.join("b", "s2", 2, dict.fromkeys(NAMES, "alive"))

    @rule(
        step=st.sampled_from(["ask", "tell", "notes", "claim", "claim_that", "release", "settle", "work"]),
        index=likely,
        other=likely,
        perhaps=st.none() | likely,
        outcome=outcomes,
    )
    def act(self, *, step: str, index: int, other: int, perhaps: int | None, outcome: Any) -> None:
        """A step of a member with a message."""
        if not self.holder:
            self.come_back()
        {
            "ask": lambda: self.ask(index, other, perhaps),
            "tell": lambda: self.tell(index, other, perhaps),
            "notes": lambda: self.notes(index),
            "claim": lambda: self.claim(index),
            "claim_that": lambda: self.claim_that(index, perhaps is None, other),
            "release": lambda: self.release(other, perhaps),
            "settle": lambda: self.settle(other, perhaps, outcome),
            "work": lambda: self.work(index, outcome),
        }[step]()

    @rule(
        step=st.sampled_from(["join", "come_back", "leave", "sweep", "rename", "remove", "remove", "close"]),
        index=likely,
        by=st.none() | likely,
        whom=likely,
        new=names,
        session=sessions,
        judgement=judgements,
    )
    def change_roster(
        self,
        *,
        step: str,
        index: int,
        by: int | None,
        whom: int,
        new: str,
        session: str,
        judgement: dict[str, Verdict],
    ) -> None:
        """A step of a member, or of a person, with a membership."""
        alias = self.named(whom)
        steps: dict[str, Callable[[], None]] = {
            "join": lambda: self.join(alias, session, 1, judgement),
            "come_back": self.come_back,
            "leave": lambda: self.leave(index),
            "sweep": lambda: self.sweep(index, judgement),
            "rename": lambda: self.rename(by, alias, new, judgement),
            "remove": lambda: self.remove(by, alias, judgement),
            "close": lambda: self.close(judgement),
        }
        steps[step]()

    # --- what always holds

    @invariant()
    def one_claim(self) -> None:
        """A recipient holds at most one claim, and so does a token."""
        team_invariants.one_claim(self.state)

    @invariant()
    def claim_owner(self) -> None:
        """What is claimed is claimed by the connected member that it is addressed to."""
        team_invariants.claim_owner(self.state)

    @invariant()
    def one_result(self) -> None:
        """A request has one result once it has ended, and none before, nor when it was cancelled."""
        team_invariants.one_result(self.state, self.cancelled)

    @invariant()
    def result_to_emitter(self) -> None:
        """A result goes back the way that its request came, in its thread, whatever was renamed."""
        team_invariants.result_to_emitter(self.state)

    @invariant()
    def follows(self) -> None:
        """Every message that is from or to a member bears its alias, also after renames."""
        for message in self.state.messages:
            sender, recipient = self.ends[message.id]
            for alias, identity in self.identity.items():
                assert sender != identity or message.sender == alias, f"Follows: {message.id}"
                assert recipient != identity or message.recipient == alias, f"Follows: {message.id}"

    @invariant()
    def endpoints(self) -> None:
        """What is unsettled has a recipient, and a request an emitter too."""
        team_invariants.endpoints(self.state)

    @invariant()
    def no_self(self) -> None:
        """Nobody owes anything to itself."""
        team_invariants.no_self(self.state)

    @invariant()
    def slots(self) -> None:
        """Nobody's slots overflow, however many results arrive at once."""
        team_invariants.slots(self.state, SLOTS)

    @invariant()
    def history(self) -> None:
        """The records, those promised included, stay within the history."""
        team_invariants.history(self.state, RECORDS)

    @invariant()
    def stored(self) -> None:
        """Every state can be written, and reads back as it is."""
        read = self.reader.decode(TeamCodec("crew").encode(self.state))
        assert (read.members, read.messages) == (self.state.members, self.state.messages)


INVARIANTS = (
    Team.one_claim,
    Team.claim_owner,
    Team.one_result,
    Team.result_to_emitter,
    Team.follows,
    Team.endpoints,
    Team.no_self,
    Team.slots,
    Team.history,
    Team.stored,
)

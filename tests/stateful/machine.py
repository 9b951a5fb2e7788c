"""The machine: what Hypothesis lets the processes do, and what befalls them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, Final

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from pi_team.limits import MEMBER_SLOTS
from play import Play
from players import Fate
from possible import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from plain import Message, Team
    from players import Player, Seat

TEAMS: Final = ("crew", "gang")
ALIASES: Final = ("ana", "ben", "cay")
OPEN: Final = 2
"""Processes that are stopped, and operations of the dead of which nothing is known, at most."""
AWAKE: Final = 3
"""Processes that run beside those that are stopped."""
NEEDED: Final = (
    *("processes", "killed", "killed midway", "killed between link and rename"),
    *("stopped", "stopped between link and rename", "continued"),
    *("died midway, and it had happened", "died midway, and it never happened"),
    *("clock set", "look", "create", "join", "leave", "send", "notes", "claim", "release", "settle", "sweep"),
    *("rename_member", "remove_member", "rename_team", "delete_team"),
)
"""What has to have happened in a run that is to say anything."""

COMMON = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
CI = settings(COMMON, max_examples=50, stateful_step_count=30, derandomize=True, database=None)
SMOKE = settings(COMMON, max_examples=5, stateful_step_count=12, derandomize=True, database=None)
# Fewer steps than a member has slots: capacity is not in the plain model (tests/domain has it).
NIGHT = settings(COMMON, max_examples=20_000, stateful_step_count=MEMBER_SLOTS - 5)

LOST: Final = 9
likely = st.sampled_from([0, 0, 0, 1, 1, 2, 3, LOST])
"""Which of several, likely ones first; `LOST` one that no longer holds, where there is one."""

INSTALLING: Final = {"method": "rename", "name": "* -> state.json"}
LINKING: Final = {"method": "link", "name": "*.tmp -> *"}
PLACES: Final[tuple[dict[str, Any], ...]] = (
    *(INSTALLING, INSTALLING, INSTALLING, INSTALLING | {"when": "after"}),
    *(LINKING | {"when": "after"}, LINKING),
    *({"method": "rename", "when": "after"}, {"method": "create", "when": "after"}, {"method": "unlink"}),
)
blows = st.one_of(
    st.sampled_from([Fate(how, **place) for place in PLACES for how in ("kill", "stop")]),
    st.builds(lambda how, nth: Fate(how, nth=nth), st.sampled_from(["kill", "stop"]), st.integers(1, 70)),
)
fates = st.sampled_from([False, False, True]).flatmap(lambda fatal: blows if fatal else st.none())
outcomes = st.sampled_from(["completed", "failed", "interrupted"])


def _steps(name: str, **drawn: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    return st.tuples(st.just(name), st.fixed_dictionaries(drawn))


works = _steps(
    "work",
    do=st.sampled_from(
        [
            *("ask", "settle", "sweep", "tell", "claim", "notes"),
            *("reply", "sweep", "claim that", "release", "settle"),
        ]
    ),
    who=likely,
    which=likely,
    outcome=outcomes,
    fate=fates,
)
services = _steps(
    "serve", who=likely, outcome=st.sampled_from(["completed", "", "failed", "interrupted", ""]), fate=fates
)
roster_changes = _steps(
    "change_roster",
    do=st.sampled_from(["join", "rename", "leave", "rename myself", "remove", "live", "join"]),
    who=likely,
    whom=likely,
    new=st.sampled_from(["dan", "eve", *reversed(ALIASES)]),
    person=st.booleans(),
    fate=fates,
)
events = _steps(
    "befall",
    what=st.sampled_from(["look", "wake", "teams", "kill", "wake", "set the clock", "teams"]),
    which=likely,
    do=st.sampled_from(["rename", "create", "delete", "rename"]),
    names=st.permutations(TEAMS),
    seconds=st.sampled_from([5.0, 40.0, -40.0, 3_600.0, -3_600.0]),
    fate=fates,
)


class Machine(RuleBasedStateMachine):
    """Processes that act on two teams, and are killed, stopped and continued meanwhile."""

    happened: ClassVar[Counter[str]] = Counter()
    options: ClassVar[dict[str, Any]] = {}
    calm: ClassVar[bool] = False
    found: ClassVar[list[Violation]] = []

    def __init__(self) -> None:
        super().__init__()
        self.play = Play(self.happened, **self.options)
        self.failed = False

    def teardown(self) -> None:
        try:
            if not self.failed:
                self.play.end()
        except Violation as violation:
            self.found.append(violation)
            raise
        finally:
            self.happened["examples"] += 1
            self.play.close()

    def step(self, action: Callable[[], Any]) -> None:
        """Do it; what fails here is not taken to its end.

        What is open is kept small: what two of the dead left is looked at before more of them die.
        """
        self.happened["steps"] += 1
        try:
            if len(self.play.possible.dead) >= OPEN:
                for name in TEAMS:
                    self.play.look(name)
            action()
        except Violation as violation:
            self.failed = True
            self.found.append(violation)
            raise

    def bearable(self, fate: Fate | None) -> Fate | None:
        """That fate, unless it would stop one too many, or nothing is to happen to anybody."""
        one_too_many = fate is not None and fate.how == "stop" and len(self.play.asleep()) >= OPEN
        return None if one_too_many or self.calm else fate

    # --- who and what

    def player(self, index: int) -> Player:
        """A process that runs."""
        while len(self.play.able()) < AWAKE:
            self.play.enter()
        return self.play.able()[index % AWAKE]

    def seat(self, index: int) -> Seat | None:
        """A membership of a process that runs, those that hold first."""
        able = self.play.able()
        seats = [seat for seat in self.play.seats if seat.player in able]
        seats.sort(key=self.play.is_current, reverse=True)
        lost = [seat for seat in seats if not self.play.is_current(seat)]
        if index == LOST and lost:
            return lost[-1]
        return seats[index % len(seats)] if seats else None

    def team(self, name: str) -> Team | None:
        """A team as it was found last."""
        return self.play.records.teams.get(name)

    def alias(self, team: str, index: int) -> str:
        """An alias, those of members first."""
        found = self.team(team)
        members = [member.alias for member in found.members] if found is not None else []
        return [*members, *(alias for alias in ALIASES if alias not in members)][index % len(ALIASES)]

    def message(self, team: str, index: int, first: Callable[[Message], int]) -> str | None:
        """A message of a team by its key, those that fit first."""
        found = self.team(team)
        messages = sorted(found.messages, key=first, reverse=True) if found is not None else []
        return messages[index % len(messages)].key if messages else None

    # --- the steps; one rule, because every example would go without some of several

    @initialize()
    def two_are_there(self) -> None:
        """A team with two members, one of which works for the other."""
        self.step(self._begin)

    def _begin(self) -> None:
        first, second = self.play.enter(), self.play.enter()
        self.play.create(first, "crew")
        ana = self.play.join(first, "crew", "ana")
        ben = self.play.join(second, "crew", "ben")
        assert ana is not None
        assert ben is not None
        self.play.send(ana, "ben", "request")
        self.play.claim(ben)

    @rule(step=works | works | services | roster_changes | events)
    def act(self, step: tuple[str, dict[str, Any]]) -> None:
        """A step of whatever kind."""
        name, drawn = step
        getattr(self, name)(**drawn)

    def work(self, *, do: str, who: int, which: int, outcome: str, fate: Fate | None) -> None:
        """A member does something with a message."""
        seat, fate = self.seat(who), self.bearable(fate)
        if seat is None:
            self.step(lambda: self._join(self.player(who), "crew", self.alias("crew", which), fate))
            return
        alias, play, team = seat.owner.alias, self.play, seat.team
        others = [one for one in (*ALIASES, alias) if one != alias] + [alias]
        to = others[which % len(others)]
        if do in {"ask", "tell", "notes", "claim", "sweep"}:
            actions: dict[str, Callable[[], Any]] = {
                "ask": lambda: play.send(seat, to, "request", fate=fate),
                "tell": lambda: play.send(seat, to, "note", fate=fate),
                "notes": lambda: play.notes(seat, fate=fate),
                "claim": lambda: play.claim(seat, fate=fate),
                "sweep": lambda: play.sweep(seat, fate),
            }
            self.step(actions[do])
            return

        def claimed(one: Message) -> int:
            """What it works on itself before what others do."""
            return (one.state == "processing") + (one.claim == seat.owner.session)

        mine: dict[str, Callable[[Message], int]] = {
            "reply": lambda one: one.to == alias and one.kind != "note",
            "claim that": lambda one: one.to == alias and one.state == "pending",
        }
        key = self.message(team, which, mine.get(do, claimed))
        if key is None:
            return
        with_message: dict[str, Callable[[], Any]] = {
            "reply": lambda: play.send(seat, to, "request" if outcome == "completed" else "note", key, fate),
            "claim that": lambda: play.claim(seat, key, fate),
            "release": lambda: play.release(seat, key, fate),
            "settle": lambda: play.settle(seat, key, outcome, fate),
        }
        self.step(with_message[do])

    def serve(self, *, who: int, outcome: str, fate: Fate | None) -> None:
        """A member works on what is next: what mostly happens, and too rare by chance."""
        seat, fate = self.seat(who), self.bearable(fate)
        if seat is not None:
            self.step(lambda: self._serve(seat, outcome, fate))

    def _serve(self, seat: Seat, outcome: str, fate: Fate | None) -> None:
        key = self.play.claim(seat)
        if isinstance(key, str) and outcome:
            self.play.settle(seat, key, outcome, fate)
        elif isinstance(key, str):
            self.play.release(seat, key, fate)

    def change_roster(
        self, *, do: str, who: int, whom: int, new: str, person: bool, fate: Fate | None
    ) -> None:
        """A member, or a person, does something with a membership."""
        seat, play, fate = self.seat(who), self.play, self.bearable(fate)
        team = seat.team if seat is not None else "crew"
        actor = None if person else seat
        player = actor.player if actor is not None else self.player(who)
        alias = self.alias(team, whom)
        if do in {"rename", "remove"}:
            actions: dict[str, Callable[[], Any]] = {
                "rename": lambda: play.rename_member(player, actor, team, alias, new, fate=fate),
                "remove": lambda: play.remove_member(player, actor, team, alias, fate),
            }
            self.step(actions[do])
        elif do == "join" or seat is None:
            self.step(lambda: self._join(self.player(who), team, alias, fate))
        else:
            owned: dict[str, Callable[[], Any]] = {
                "leave": lambda: play.leave(seat, fate),
                "rename myself": lambda: play.rename_member(
                    seat.player, seat, team, seat.owner.alias, new, fate=fate
                ),
                "live": lambda: play.heartbeat(seat),
            }
            self.step(owned[do])

    def _join(self, player: Player, team: str, alias: str, fate: Fate | None) -> None:
        if self.team(team) is None:
            self.play.create(player, team, fate)
        else:
            self.play.join(player, team, alias, fate)

    def befall(
        self, *, what: str, which: int, do: str, names: list[str], seconds: float, fate: Fate | None
    ) -> None:
        """Something befalls a process, the machine, or a whole team; or somebody outside looks."""
        asleep = self.play.asleep()
        if what == "kill" or (what == "wake" and asleep and which == LOST):
            player = asleep[0] if what == "wake" else self.player(which)
            self.step(lambda: self.play.kill(player))
        elif what == "wake" and asleep:
            self.step(lambda: self.play.wake(asleep[which % len(asleep)]))
        elif what == "set the clock":
            self.step(lambda: self.play.set_clock(seconds))
        elif what == "teams":
            (name, other), player, blow = names, self.player(which), self.bearable(fate)
            self.step(lambda: self._change_team(do, player, name, other, blow, leave=which != LOST))
        else:
            self.step(lambda: self.play.look(names[0]))

    def _change_team(
        self, do: str, player: Player, name: str, other: str, fate: Fate | None, *, leave: bool
    ) -> None:
        """A person does something with a whole team, which everybody leaves first, so that this may be."""
        play = self.play
        if do == "create":
            play.create(player, name, fate)
            return
        if self.team(name) is None:
            name, other = other, name
        for seat in list(play.seats) if leave else ():
            if seat.team == name and play.is_current(seat) and seat.player in play.able():
                play.leave(seat)
        if do == "rename":
            play.rename_team(player, name, other, fate)
        else:
            play.delete_team(player, name, fate)


def chosen(happened: Counter[str], *, calm: bool = False, **options: Any) -> type[Machine]:
    """A machine.

    Args:
        happened: counts what happens.
        calm: whether nothing befalls a process midway.
        options: of each :class:`Cast`.
    """
    return type("Chosen", (Machine,), {"happened": happened, "options": options, "calm": calm, "found": []})


def run(machine: type[Machine], profile: settings) -> None:
    """Run it. Raises what it finds, told as the shortest story that there is."""
    run_state_machine_as_test(machine, settings=profile)

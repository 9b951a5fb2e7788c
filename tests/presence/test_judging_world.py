"""A whole team of observers under any schedule of pauses, clock steps and deaths.

Two properties, over schedules that Hypothesis makes up: *nobody living is judged dead* (safety), and
*whoever has ended is judged dead by everybody who is there* (liveness). Controls: an observer with one
rule removed must break safety, so that the schedules are known to reach what each rule is for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from length import LONG
from pi_team.presence.heartbeat import Presence, Sighting
from pi_team.presence.judging import Observer

if TYPE_CHECKING:
    from pi_team.domain.model import Verdict
    from pi_team.presence.heartbeat import PresenceDirectory
    from pi_team.presence.process import Process

INTERVAL: Final = 2.0
SESSIONS: Final = 3
Step: TypeAlias = tuple[str, float]

# The names of steps, and what their number means.
RUN = "run"  # seconds that pass with everybody running
SUSPEND = "suspend"  # seconds in which the machine sleeps, and timers stand still
FREEZE = "freeze"  # seconds in which every session is stopped, and timers go on
STEP_CLOCK = "step clock"  # seconds by which the wall clock is set
STOP = "stop"  # a session (SIGSTOP)
CONTINUE = "continue"  # a session, which beats only when its turn comes
OVERWRITE = "overwrite"  # a session whose presence somebody else's join overwrites for a moment
REMOVE = "remove"  # a session whose presence is lost
ORDER = "order"  # who runs first from now on


class World:
    """One machine: its clocks, its sessions, their presence, and what each knows of the others."""

    def __init__(self, kind: type[Observer] = Observer) -> None:
        self.wall_time, self.run_time = 1_800_000_000.0, 500.0
        self.presence: dict[str, Sighting] = {}
        self.sessions = [Session(self, number, kind) for number in range(SESSIONS)]
        self.order = 0

    # the clocks that the observers are handed
    def wall(self) -> float:
        return self.wall_time

    def running(self) -> float:
        return self.run_time

    def monotonic(self) -> float:
        return self.run_time

    def sleep(self, seconds: float) -> None:
        raise AssertionError(f"a session slept for {seconds} s in a judgement")

    def read(self, alias: str, _known: Sighting | None) -> Sighting:
        return self.presence.get(alias, Sighting(None, "missing"))

    # what happens
    def take(self, step: Step) -> None:
        kind, number = step
        session = self.sessions[int(number) % SESSIONS]
        if kind == RUN:
            self._run(number)
        elif kind in {SUSPEND, FREEZE}:
            self.wall_time += number
            self.run_time += number
            for each in self.sessions:
                each.due -= number if kind == FREEZE else 0
        elif kind == STEP_CLOCK:
            self.wall_time += number
        elif kind == STOP:
            session.state = "stopped"
        elif kind == CONTINUE and session.state == "stopped":
            session.state = "waking"
        elif kind == OVERWRITE:
            self.presence[session.alias] = Sighting(Presence("newcomer", "idle", self.wall_time * 1_000))
        elif kind == REMOVE:
            self.presence.pop(session.alias, None)
        elif kind == ORDER:
            self.order = int(number)
        self.everybody_judges()

    def _run(self, seconds: float) -> None:
        left = seconds
        while left > 0:
            part = min(0.5, left)
            left -= part
            self.wall_time += part
            self.run_time += part
            for offset in range(SESSIONS):
                self.sessions[(self.order + offset) % SESSIONS].run(part)
                self.everybody_judges()

    def everybody_judges(self) -> None:
        for observer in self.sessions:
            for other in self.sessions:
                if observer is not other and observer.state in {"running", "waking"}:
                    verdict = observer.judge(other)
                    if verdict == "dead" and other.state == "running":
                        raise LivingJudgedDead(observer.alias, other.alias)


class LivingJudgedDead(Exception):
    """A session that is running, and has been heard since it last was stopped, was judged dead."""


class Session:
    """A joined session: beats every interval of the time in which it and the machine run."""

    def __init__(self, world: World, number: int, kind: type[Observer]) -> None:
        self.world = world
        self.alias, self.token, self.pid = f"m{number}", f"t{number}", 100 + number
        self.elsewhere = number == SESSIONS - 1
        """Nobody can look at the process of the last one: it is in another pid namespace."""
        self.state = "running"
        self.due = 0.0
        self.observer = kind(world, has_exited=self._has_exited, exists=lambda _pid: True)
        self.beat()

    def _has_exited(self, process: Process) -> bool | None:
        other = self.world.sessions[process.pid - 100]
        return None if other.elsewhere or self.elsewhere else other.state == "dead"

    def run(self, seconds: float) -> None:
        if self.state in {"running", "waking"}:
            self.due -= seconds
            if self.due <= 0 or self.state == "waking":
                self.beat()

    def beat(self) -> None:
        seen = self.world.wall_time * 1_000
        self.world.presence[self.alias] = Sighting(Presence(self.token, "idle", seen, 1, "h", "b", "n"))
        self.observer.attended()
        self.due = INTERVAL
        self.state = "running"

    def judge(self, other: Session) -> Verdict:
        directory = cast("PresenceDirectory", self.world)
        return self.observer.judge(directory, other.alias, other.token, other.pid)


def take(world: World, steps: list[Step]) -> None:
    for step in steps:
        world.take(step)


def seconds(most: float) -> st.SearchStrategy[float]:
    return st.integers(1, int(most * 10)).map(lambda tenths: tenths / 10)


WHO = st.integers(0, SESSIONS - 1).map(float)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just(RUN), seconds(6)),
        st.tuples(
            st.sampled_from([SUSPEND, FREEZE]), st.one_of(seconds(5), st.sampled_from([29.9, 60.0, 3_600.0]))
        ),
        st.tuples(st.just(STEP_CLOCK), st.sampled_from([-3_600.0, -60.0, -1.0, 1.0, 60.0, 3_600.0])),
        st.tuples(st.sampled_from([STOP, CONTINUE, OVERWRITE, REMOVE, ORDER]), WHO),
        st.tuples(st.just(RUN), st.just(40.0)),
    ),
    max_size=40,
)

LID: Final[list[Step]] = [(RUN, 20), (SUSPEND, 60), (ORDER, 1), (RUN, 10)]
CLOCK_FORWARD: Final[list[Step]] = [(RUN, 21), (STEP_CLOCK, 3_600), (RUN, 10)]
SHORT_NAP: Final[list[Step]] = [(RUN, 20), (OVERWRITE, 2), (SUSPEND, 3.9), (RUN, 0.1)]
SHORT_FREEZE: Final[list[Step]] = [(RUN, 20), (OVERWRITE, 2), (FREEZE, 3.9), (RUN, 0.1)]
OVERWRITTEN: Final[list[Step]] = [
    (RUN, 20),
    (OVERWRITE, 0),
    (RUN, 3),
    (OVERWRITE, 0),
    (RUN, 3),
    (OVERWRITE, 0),
]
CLOCK_BACK: Final[list[Step]] = [(RUN, 21), (STEP_CLOCK, -3_600), (RUN, 10)]
EXAMPLES: Final = [LID, CLOCK_FORWARD, CLOCK_BACK, SHORT_NAP, SHORT_FREEZE, OVERWRITTEN]


@pytest.mark.parametrize("steps", EXAMPLES)
def test_nobody_living_is_judged_dead_in(steps: list[Step]) -> None:
    """The schedules that each rule is for."""
    take(World(), steps)


@given(steps=STEPS)
@settings(max_examples=60, deadline=None)
def test_nobody_living_is_judged_dead(steps: list[Step]) -> None:
    """Any order of pauses, clock steps, stops and lost files in which a session that beats loses its work."""
    take(World(), steps)


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@given(steps=STEPS)
@settings(max_examples=5_000 if LONG else 500, deadline=None)
def test_nobody_living_is_judged_dead_at_length(steps: list[Step]) -> None:
    """As before, for longer; with PI_TEAM_TESTS=long ten times as long."""
    take(World(), steps)


@given(steps=STEPS, victim=WHO)
@settings(max_examples=40, deadline=None)
def test_whoever_has_ended_is_judged_dead(steps: list[Step], victim: float) -> None:
    """Any history after which a killed session's claim is held for ever."""
    world = World()
    take(world, steps)
    for number in range(SESSIONS):
        world.take((CONTINUE, number))
    dead = world.sessions[int(victim)]
    dead.state = "dead"
    # Where the clock was set back, its last stamp is one from the future; once that time has come it is
    # fresh for an observer elsewhere, and then old.
    last = world.presence.get(dead.alias)
    if last is not None and last.presence is not None:
        world.take((SUSPEND, max(0.0, last.presence.seen / 1_000 - world.wall_time)))
    world.take((RUN, 45))
    for observer in world.sessions:
        if observer is not dead:
            assert observer.judge(dead) == "dead"


# --- controls -------------------------------------------------------------------------------------


class GoesByTimeAlways(Observer):
    """An observer that judges by age without having been there."""

    def _goes_by_time(self, _now: object) -> bool:
        return True


class NoGraceAfterAGap(Observer):
    """An observer that judges by age as soon as its own heartbeat is fresh again."""

    def attended(self) -> None:
        super().attended()
        self._on_time, self._since = 2, 0.0


class OneClock(Observer):
    """An observer that measures its own pauses by a clock that nobody sets."""

    def _in_time(self, before: object, now: object) -> bool:
        (_, ran_before), (_, ran) = cast("list[tuple[float, float]]", [before, now])
        return ran - ran_before <= 2 * INTERVAL


class AbsentIsDead(Observer):
    """An observer that does not watch whether an absent presence stays so."""

    def _watched(self, _pair: object, _stamp: object, now: Any) -> Verdict:
        return "dead" if self._goes_by_time(now) else "unknown"


class EveryPauseCounts(Observer):
    """An observer that has watched for as long as its clock ran, its own pauses included."""

    def _attendance(self, now: Any) -> float:
        return cast("float", now.running)


CONTROLS: Final[list[tuple[type[Observer], list[Step]]]] = [
    (GoesByTimeAlways, LID),
    (GoesByTimeAlways, CLOCK_FORWARD),
    (NoGraceAfterAGap, LID),
    (NoGraceAfterAGap, CLOCK_FORWARD),
    (OneClock, CLOCK_FORWARD),
    (AbsentIsDead, OVERWRITTEN),
    (EveryPauseCounts, SHORT_NAP),
    (EveryPauseCounts, SHORT_FREEZE),
]


@pytest.mark.parametrize(("kind", "steps"), CONTROLS)
def test_a_rule_that_is_dropped_is_missed(kind: type[Observer], steps: list[Step]) -> None:
    """A rule without which nothing fails is not checked by any of the above."""
    world = World(kind)
    with pytest.raises(LivingJudgedDead):
        take(world, steps)

"""All schedules of a few processes over one disk, with crashes, faults and power cuts.

A state is the disk and, for each process, the node that its code stands at: the whole history of the answers
of its present operation, which is all that the code can know. States are visited once, in the order of the
preemptions that lead there, so that each is first reached with the least, and a violation is found with the
fewest switches that it needs.

In each state that is visited all processes stop for ever, or the power fails, every disk that this may
leave is taken, and a fresh process recovers there; what it finds is judged.
"""

from __future__ import annotations

import contextlib
import gc
import time
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from behaviour import still
from invariants import Violation
from system import CRASH, Action, Scenario, System, World

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@attrs.define
class Found:
    """A violation, and how it comes about.

    Attributes:
        invariant: its name.
        text: what was seen.
        schedule: the steps from the beginning.
        stopped: whether everybody stopped after the last of them, and it was seen in the recovery.
        lost: what a power cut took then; None where there was none.
        again: how a fresh process died after that, in words; "" where it did not.
    """

    invariant: str
    text: str
    schedule: list[Action]
    stopped: bool = False
    lost: tuple[str, ...] | None = None
    again: str = ""


@attrs.define
class Report:
    """What an exploration did.

    Attributes:
        name: of the scenario.
        states: different ones that were visited.
        steps: calls that were made to get there.
        pruned: steps that led to a state that was visited already.
        schedules: complete schedules up to the bound that the visited states stand for.
        begun: schedules that were gone along, up to their end, a state that was visited, or a violation.
        ends: different states in which every process has ended or crashed.
        crash_points: states in which all processes stopped for ever, and a fresh one recovered.
        cut_states: pairs of a state and a disk that a power cut may leave there.
        recoveries: different disks that were recovered.
        runs: times that the code under test was run.
        seconds: of the processor that it took.
        found: the first violation, if any.
    """

    name: str
    states: int = 0
    steps: int = 0
    pruned: int = 0
    schedules: int = 0
    begun: int = 0
    ends: set[Any] = attrs.field(factory=set)
    crash_points: int = 0
    cut_states: int = 0
    recoveries: int = 0
    runs: int = 0
    seconds: float = 0.0
    found: Found | None = None


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Without the collector, which would go through all the states again and again, and find nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Visit(NamedTuple):
    world: World
    last: int
    number: int
    origin: int
    action: Action | None


class _States:
    """What is remembered of each state, by a number of its own; small, since there are millions.

    Attributes:
        levels: the fewest preemptions after which it was met.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self.levels = bytearray()
        self._origins = array("q")
        self._actions: list[Action | None] = []
        self._bounds = array("Q")  # of its edges: begin and end
        self._edges = array("Q")

    def __len__(self) -> int:
        return len(self.levels)

    def meet(self, key: int | None, level: int) -> tuple[int, bool]:
        """The number of a state, and whether it need be visited from here; None stands for no other."""
        number = len(self) if key is None else self._numbers.setdefault(key, len(self))
        if number == len(self):
            self.levels.append(level)
            self._origins.append(-2)
            self._actions.append(None)
            self._bounds.extend((0, 0))
            return number, True
        better = level < self.levels[number]
        if better:
            self.levels[number] = level
        return number, better

    def visit(self, visit: _Visit) -> bool:
        """Begin with the edges of a state; False where it was visited."""
        if self._origins[visit.number] != -2:
            return False
        self._origins[visit.number] = visit.origin
        self._actions[visit.number] = visit.action
        self._bounds[2 * visit.number] = self._bounds[2 * visit.number + 1] = len(self._edges)
        return True

    def lead(self, number: int, after: int, cost: int) -> None:
        """An edge of the state that was visited last."""
        self._edges.append(after << 1 | cost)
        self._bounds[2 * number + 1] += 1

    def edges(self, number: int) -> list[tuple[int, int]]:
        """Where the edges of a state lead, and what they cost."""
        begin, end = self._bounds[2 * number : 2 * number + 2]
        return [(edge >> 1, edge & 1) for edge in self._edges[begin:end]]

    def schedule(self, number: int) -> list[Action]:
        """How a state was reached."""
        actions = []
        while number >= 0:
            action = self._actions[number]
            if action is not None:
                actions.append(action)
            number = self._origins[number]
        return actions[::-1]


class Explorer:
    """Explores one scenario.

    Args:
        scenario: what.
        prune: whether states are visited once; without, every schedule is run to its end.
    """

    def __init__(self, scenario: Scenario, *, prune: bool = True) -> None:
        self.scenario = scenario
        self.prune = prune
        self.system = System(scenario)
        self.report = Report(scenario.name)
        self._states = _States()
        self._waiting: list[list[_Visit]] = []

    def run(self) -> Report:
        """Explore, up to the first violation."""
        begun = time.process_time()
        with still(), _uncollected():
            self._search()
        self.report.seconds = time.process_time() - begun
        if self.prune and not self.report.found:
            self.report.schedules = self._count_schedules()
        self.report.runs = self.system.runs
        self.report.recoveries = self.system.recoveries.recovered
        self.report.cut_states = self.system.recoveries.cut_states
        return self.report

    def _search(self) -> None:
        self._meet(self.system.start(), -1, 0, -1, None)
        level = 0
        while level < len(self._waiting):
            while self._waiting[level]:
                self._visit(self._waiting[level].pop(), level)
                if self.report.found:
                    return
            level += 1

    def _meet(self, world: World, last: int, level: int, origin: int, action: Action | None) -> int:
        """A step led to a state, whose number this is."""
        number, new = self._states.meet(self._key(world, last) if self.prune else None, level)
        if new:
            while len(self._waiting) <= level:
                self._waiting.append([])
            self._waiting[level].append(_Visit(world, last, number, origin, action))
        else:
            self._prune()
        return number

    def _prune(self) -> None:
        self.report.pruned += 1
        self.report.begun += 1

    def _visit(self, visit: _Visit, level: int) -> None:
        world, last, number = visit.world, visit.last, visit.number
        if not self._states.visit(visit):
            self._prune()
            return
        self.report.states += 1
        self._judge(world, number)
        if self.report.found:
            return
        ended = True
        for actor in self._movable(world, last):
            for action in self.system.actions(world, actor):
                if action.how == CRASH and last not in (actor, -1):
                    continue  # it would have crashed when it was stopped
                ended = False
                self.report.steps += 1
                try:
                    after = self.system.step(world, action)
                except Violation as violation:
                    self._found(violation, number, action)
                    return
                cost = int(last not in (actor, -1))
                if self.scenario.bound is None or level + cost <= self.scenario.bound:
                    met = self._meet(after, self._last(after, actor), level + cost, number, action)
                    self._states.lead(number, met, cost)
        if ended:
            self._end(world)

    def _last(self, world: World, actor: int) -> int:
        """Whose going on would be no preemption; -1 where nobody's would be one."""
        return -1 if world.actors[actor].node is None or self.scenario.bound is None else actor

    def _key(self, world: World, last: int) -> int:
        return self.system.key(world) << 4 | last + 1

    def _movable(self, world: World, last: int) -> Sequence[int]:
        """The processes to go on with; only one where what it does next commutes with all others."""
        everybody = range(len(world.actors))
        if self.scenario.reduce:
            for actor in (last,) if last >= 0 else everybody:
                if self.system.is_local(world, actor):
                    return (actor,)
        return everybody

    def _end(self, world: World) -> None:
        self.report.begun += 1
        self.report.schedules += 1
        self.report.ends.add(world.disk.lasting())

    def _judge(self, world: World, number: int) -> None:
        try:
            facts = self.system.facts(world)
        except Violation as violation:
            self._found(violation, number)
            return
        self.report.crash_points += 1
        broken = self.system.stop_everybody(world, facts)
        if broken:
            self._found(broken.violation, number, stopped=True, lost=broken.lost, again=broken.again)

    def _found(
        self,
        violation: Violation,
        number: int,
        action: Action | None = None,
        *,
        stopped: bool = False,
        lost: tuple[str, ...] | None = None,
        again: str = "",
    ) -> None:
        self.report.begun += 1
        schedule = [*self._states.schedule(number), *([action] if action else [])]
        self.report.found = Found(violation.invariant, str(violation), schedule, stopped, lost, again)

    def _count_schedules(self) -> int:
        """How many complete schedules within the bound the visited states stand for."""
        bound = self.scenario.bound or 0
        counts: list[list[int] | None] = [None] * len(self._states)
        stack = [0]
        while stack:
            number = stack[-1]
            if counts[number] is not None:
                stack.pop()
                continue
            edges = self._states.edges(number)
            waiting = [after for after, _ in edges if counts[after] is None]
            if waiting:
                stack.extend(waiting)
                continue
            counts[number] = [
                sum(_count(counts[after])[left - cost] for after, cost in edges if left >= cost)
                if edges
                else 1
                for left in range(bound + 1)
            ]
        return _count(counts[0])[bound]


def _count(known: list[int] | None) -> list[int]:
    assert known is not None
    return known

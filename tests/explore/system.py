"""A scenario as a system of steps: what each process may do next, and what holds in each state."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import attrs

from behaviour import Behaviour, Node, Outcome
from calls import FAIL, FAIL_AFTER, RUN, is_local, is_silent, perform, variants
from invariants import Facts, Violation
from powercut import persisted
from recoveries import Broken, Recoveries
from simulation import SimulatedFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from disk import Descriptor, Disk
    from programs import Operation

CRASH = "crash"
_WIDTH: Final = 24
"""Bits of a number that stands for the state of a process."""


class Judge(Protocol):
    """The invariants of a scenario; each method raises :class:`Violation`."""

    def after_step(self, before: Disk, after: Disk) -> None:
        """A step changed the disk."""

    def after_outcome(self, disk: Disk, outcome: Outcome) -> None:
        """An operation ended."""

    def shown(self, disk: Disk) -> Any:
        """What plain readers have seen."""

    def agree(self, shown: list[Any]) -> Any:
        """What all that was shown comes to."""

    def after_recovery(self, outcome: Outcome, facts: Facts) -> None:
        """A fresh process has recovered."""


@attrs.frozen
class Scenario:
    """What is explored.

    Attributes:
        name: of the configuration.
        disk: where it begins.
        programs: the operations of each process, by its name.
        judge: makes the invariants anew.
        recovery: what a fresh process does after a crash.
        again: what another does where that one dies too, before each of its calls; None where it does not.
        bound: preemptions, at most; None for all schedules.
        crashes: processes that crash while others go on.
        faults: calls that fail with EIO.
        cuts: whether the power is cut in every state.
        loses: the disks that a power cut may leave.
        directories_stay: whether no process moves or removes a directory.
        reduce: whether nobody is interrupted just before a call that commutes with all others.
    """

    name: str
    disk: Disk
    programs: Mapping[str, Sequence[Operation]]
    judge: Callable[[], Judge]
    recovery: Operation
    bound: int | None = 3
    crashes: int = 1
    faults: int = 0
    cuts: bool = True
    loses: Callable[[Disk], Iterator[tuple[Disk, tuple[str, ...]]]] = persisted
    directories_stay: bool = True
    reduce: bool = True
    again: Operation | None = None


class Actor(NamedTuple):
    """A process. `node` is None once it has ended or crashed."""

    operation: int
    attempt: int
    node: Node | None
    descriptors: Mapping[int, Descriptor]
    outcomes: tuple[Outcome, ...]
    dead: bool = False


class World(NamedTuple):
    """A state of the search. `disk_id` stands for all equal disks."""

    disk: Disk
    disk_id: int
    actors: tuple[Actor, ...]
    crashes: int
    faults: int


class Action(NamedTuple):
    """A step: which process, and how its call goes."""

    actor: int
    how: str


class System:
    """The steps of a scenario, and the judgement of its states."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.names = tuple(scenario.programs)
        self.judge = scenario.judge()
        self._behaviours: dict[tuple[int, int, int], Behaviour] = {}
        self.recoveries = Recoveries(scenario, self.judge, self._identify)
        self._disks: dict[bytes, int] = {}
        self._things: dict[object, int] = {}
        self._actors: dict[object, int] = {}
        self._lasting: dict[object, int] = {}
        self._lasting_ids: dict[int, int] = {}
        self.silent = 0

    # --- steps

    def start(self) -> World:
        """The first state."""
        world = World(self.scenario.disk, 0, (), crashes=self.scenario.crashes, faults=self.scenario.faults)
        world = world._replace(disk_id=self._identify(world.disk))
        for index in range(len(self.names)):
            actor = self._ready(index, 0, 0, (), world.disk)
            if self.scenario.reduce and not world.faults:
                fs = SimulatedFileSystem(world.disk)
                actor = self._go_on(index, actor, fs)
                world = world._replace(disk=fs.disk, disk_id=self._identify(fs.disk))
            world = world._replace(actors=(*world.actors, actor))
        return world

    def _ready(
        self, index: int, operation: int, attempt: int, outcomes: tuple[Outcome, ...], disk: Disk
    ) -> Actor:
        program = self.scenario.programs[self.names[index]]
        if operation == len(program):
            return Actor(operation, 0, None, {}, outcomes)
        key = (index, operation, attempt)
        if key not in self._behaviours:
            name, run = self.names[index], program[operation].run
            self._behaviours[key] = Behaviour(
                lambda fs: run(name, fs), f"{name}{operation + 1}" + f"-again{attempt}" * bool(attempt)
            )
        node = self._behaviours[key].begin(SimulatedFileSystem(disk))
        return Actor(operation, attempt, node, {}, outcomes)

    def _identify(self, disk: Disk) -> int:
        things = (*disk.things.items(), disk.spare)
        parts = array("Q", sorted(self._things.setdefault(part, len(self._things)) for part in things))
        return self._disks.setdefault(parts.tobytes(), len(self._disks))

    def actions(self, world: World, index: int) -> list[Action]:
        """What a process may do next."""
        actor = world.actors[index]
        if actor.node is None:
            return []
        assert actor.node.call is not None
        fs = SimulatedFileSystem(world.disk, actor.descriptors)
        hows = [*variants(actor.node.call, fs=fs, faults=world.faults > 0)]
        return [Action(index, how) for how in ([*hows, CRASH] if world.crashes else hows)]

    def is_local(self, world: World, index: int) -> bool:
        """Whether what a process does next commutes with what any other does."""
        actor = world.actors[index]
        if actor.node is None or actor.node.call is None:
            return False
        fs = SimulatedFileSystem(world.disk, actor.descriptors)
        return is_local(actor.node.call, fs, directories_stay=self.scenario.directories_stay)

    def step(self, world: World, action: Action) -> World:
        """The state after a step. Raises Violation."""
        actor = world.actors[action.actor]
        assert actor.node is not None
        fs = SimulatedFileSystem(world.disk, actor.descriptors)
        if action.how == CRASH:
            fs.die()
            outcomes = (*actor.outcomes, Outcome("unknown", "", "crashed"))
            return self._with(
                world, action, fs.disk, Actor(actor.operation, actor.attempt, None, {}, outcomes, dead=True)
            )
        moved = self._call(action.actor, actor, fs, action.how)
        if fs.disk is not world.disk:
            self.judge.after_step(world.disk, fs.disk)
        if self.scenario.reduce and not world.faults:
            moved = self._go_on(action.actor, moved, fs)
        return self._with(world, action, fs.disk, moved)

    def _call(self, index: int, actor: Actor, fs: SimulatedFileSystem, how: str = RUN) -> Actor:
        """The process after its next call."""
        assert actor.node is not None
        call = actor.node.call
        assert call is not None
        answer = perform(fs, call, how)
        behaviour = self._behaviours[index, actor.operation, actor.attempt]
        node = behaviour.after(actor.node, answer, SimulatedFileSystem(fs.disk, fs.descriptors))
        outcomes = actor.outcomes
        if call[0] == "show":
            outcomes = (*outcomes, Outcome("shown", "", call[1][0]))
        moved = Actor(actor.operation, actor.attempt, node, fs.descriptors, outcomes)
        return self._ended(index, moved, node.outcome, fs) if node.outcome is not None else moved

    def _go_on(self, index: int, actor: Actor, fs: SimulatedFileSystem) -> Actor:
        """The process before its next call that others or a crash could tell from its absence."""
        while actor.node is not None and actor.node.call is not None:
            fs.descriptors = actor.descriptors
            if not is_silent(actor.node.call, fs, directories_stay=self.scenario.directories_stay):
                break
            self.silent += 1
            actor = self._call(index, actor, fs)
        return actor

    def _ended(self, index: int, actor: Actor, outcome: Outcome, fs: SimulatedFileSystem) -> Actor:
        self.judge.after_outcome(fs.disk, outcome)
        if fs.descriptors:
            raise Violation("Closed", f"{outcome.item} left {[*fs.descriptors.values()]} open")
        if outcome.kind == "again":
            return self._ready(index, actor.operation, actor.attempt + 1, actor.outcomes, fs.disk)
        return self._ready(index, actor.operation + 1, 0, (*actor.outcomes, outcome), fs.disk)

    def _with(self, world: World, action: Action, disk: Disk, actor: Actor) -> World:
        actors = (*world.actors[: action.actor], actor, *world.actors[action.actor + 1 :])
        return World(
            disk,
            world.disk_id if disk is world.disk else self._identify(disk),
            actors,
            world.crashes - (action.how == CRASH),
            world.faults - (action.how in (FAIL, FAIL_AFTER)),
        )

    def key(self, world: World) -> int:
        """What two equal states have in common, and no others."""
        key = world.disk_id << 8 | world.crashes << 4 | world.faults
        for actor in world.actors:
            state = (actor.operation, actor.attempt, actor.node and actor.node.number, actor.outcomes)
            key = key << _WIDTH | self._actors.setdefault(state, len(self._actors))
        assert len(self._actors) < 1 << _WIDTH
        return key

    # --- what is found after a crash or a power cut

    def facts(self, world: World) -> Facts:
        """What everybody knows in a state."""
        acknowledged, refused, shown = set(), set(), [self.judge.shown(world.disk)]
        for actor in world.actors:
            for outcome in actor.outcomes:
                if outcome.kind == "shown":
                    shown.append(outcome.detail)
                elif outcome.kind == "acknowledged":
                    acknowledged.add(outcome.item)
                elif outcome.kind == "refused":
                    refused.add(outcome.item)
        begun = frozenset(
            operation.label
            for program, actor in zip(self.scenario.programs.values(), world.actors, strict=True)
            for operation in program[: actor.operation + 1]
        )
        return Facts(frozenset(acknowledged - {""}), frozenset(refused), begun, self.judge.agree(shown))

    def _lasting_id(self, world: World) -> int:
        """Stands for all disks that leave the same when everybody has stopped."""
        if world.disk_id not in self._lasting_ids:
            self._lasting_ids[world.disk_id] = self._lasting.setdefault(
                world.disk.lasting(), len(self._lasting)
            )
        return self._lasting_ids[world.disk_id]

    def stop_everybody(self, world: World, facts: Facts) -> Broken | None:
        """All processes stop for ever in this state, and then the power is cut besides; what breaks first."""
        return self.recoveries.judge(world.disk, self._lasting_id(world), facts)

    @property
    def runs(self) -> int:
        """How often the code under test was run."""
        return self.recoveries.runs + sum(behaviour.runs for behaviour in self._behaviours.values())

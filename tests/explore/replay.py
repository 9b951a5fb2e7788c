"""A schedule in words: printed when it fails, made as short as it gets, and replayed from its print."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final

from behaviour import still
from calls import FAIL, FAIL_AFTER, MISS, RUN, describe
from explorer import Found
from invariants import Violation
from system import CRASH, Action, Scenario, System, World

if TYPE_CHECKING:
    from collections.abc import Sequence

STOPPED: Final = "everybody stops"
_CUT: Final = "the power fails"
_UNTIL: Final = "until"
_HOWS: Final = {
    FAIL: "gets EIO instead of",
    FAIL_AFTER: "gets EIO after",
    MISS: "misses what came or went before",
    CRASH: "crashes before",
    RUN: _UNTIL,
}
_LINE: Final = re.compile(rf"(\w+) ({'|'.join(_HOWS.values())}) (.+?)(?: for the (\d+)th time)?")


class DriftError(AssertionError):
    """The code does not make the calls of this schedule any longer."""


def replay(scenario: Scenario, lines: Sequence[str]) -> Violation | None:
    """Run a schedule that was printed; what it breaks. Raises DriftError."""
    with still():
        system = System(scenario)
        world = system.start()
        try:
            for nth, line in enumerate(lines):
                if line == STOPPED or line.startswith(_CUT):
                    return _stop(system, world, line, "".join(lines[nth + 1 :]))
                world = _play(system, world, line)
        except Violation as violation:
            return violation
    return None


def _play(system: System, world: World, line: str) -> World:
    match = _LINE.fullmatch(line)
    if not match:
        raise DriftError(f"not a step of a schedule: {line!r}")
    name, words, call, times = match.groups()
    actor = system.names.index(name)
    how = next(how for how, text in _HOWS.items() if text == words)
    left = int(times or 1)
    while True:
        if world.actors[actor].node is None:
            raise DriftError(f"{name} never came to {call!r}")
        if _call(world, actor) == call:
            left -= 1
            if not left:
                return system.step(world, Action(actor, how))
        world = system.step(world, Action(actor, RUN))


def _stop(system: System, world: World, line: str, again: str) -> Violation | None:
    lost = None
    if line != STOPPED:
        lost = tuple(filter(None, line.removeprefix(_CUT).removeprefix(": ").split("; ")))
    return system.recoveries.replay(world.disk, system.facts(world), lost, again)


def _call(world: World, actor: int) -> str:
    state = world.actors[actor]
    assert state.node is not None
    assert state.node.call is not None
    return describe(
        state.node.call, lambda fd: state.descriptors[fd].name if fd in state.descriptors else "?"
    )


def story(scenario: Scenario, found: Found) -> list[str]:
    """The lines that :func:`replay` takes; each is a run of one process up to and with a call."""
    lines: list[str] = []
    with still():
        system = System(scenario)
        world = system.start()
        for (actor, _), steps in itertools.groupby(
            found.schedule, lambda step: (step.actor, step.how != RUN)
        ):
            calls: list[str] = []
            for action in steps:
                call = _call(world, actor)
                calls.append(call)
                if action.how != RUN:
                    lines.append(f"{system.names[actor]} {_HOWS[action.how]} {call}")
                try:
                    world = system.step(world, action)
                except Violation:
                    break  # it is the last
            if action.how == RUN:
                times = calls.count(calls[-1])
                again = f" for the {times}th time" if times > 1 else ""
                lines.append(f"{system.names[actor]} {_UNTIL} {calls[-1]}{again}")
    if found.stopped:
        lines.append(STOPPED if found.lost is None else f"{_CUT}: {'; '.join(found.lost)}")
    if found.again:
        lines.append(found.again)
    return lines


def shrunk(scenario: Scenario, found: Found) -> Found:
    """The same violation with no step, and no switch, that it can do without."""
    with still():
        system = System(scenario)
        best = found
        while True:
            for schedule in (*_shorter(best.schedule), *_smoother(best.schedule)):
                again = _try(system, best, schedule)
                if again is not None:
                    best = again
                    break
            else:
                return best


def _shorter(schedule: list[Action]) -> list[list[Action]]:
    return [schedule[:at] + schedule[at + 1 :] for at in reversed(range(len(schedule)))]


def _smoother(schedule: list[Action]) -> list[list[Action]]:
    """With two neighbouring runs swapped where that makes the runs fewer."""
    runs = [list(steps) for _, steps in itertools.groupby(schedule, lambda step: step.actor)]
    swapped = ([*runs[:at], runs[at + 1], runs[at], *runs[at + 2 :]] for at in range(len(runs) - 1))
    flat = [list(itertools.chain.from_iterable(order)) for order in swapped]
    return [
        steps
        for steps in flat
        if sum(1 for _ in itertools.groupby(steps, lambda step: step.actor)) < len(runs)
    ]


def _try(system: System, found: Found, schedule: list[Action]) -> Found | None:
    world = system.start()
    for at, action in enumerate(schedule):
        if action not in system.actions(world, action.actor):
            return None
        try:
            world = system.step(world, action)
        except Violation as violation:
            if violation.invariant != found.invariant:
                return None
            return Found(violation.invariant, str(violation), schedule[: at + 1])
    if not found.stopped:
        return None
    broken = system.stop_everybody(world, system.facts(world))
    if (
        broken is None
        or broken.violation.invariant != found.invariant
        or (broken.lost is None, not broken.again) != (found.lost is None, not found.again)
    ):
        return None
    text = str(broken.violation)
    return Found(found.invariant, text, schedule, stopped=True, lost=broken.lost, again=broken.again)

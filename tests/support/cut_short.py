"""An operation cut short at each of its calls in turn, on teams that are planted anew for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from interposition import Killed
from pi_team.errors import PiTeamError
from processes import Child, die_here
from worlds import World, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from interposition import Call


def outcome(run: Callable[[], object]) -> PiTeamError | None:
    """The refusal of an operation; None where it was carried out."""
    try:
        run()
    except PiTeamError as error:
        return error
    return None


def each_call(
    world: World, plant: Callable[[World], None], act: Callable[[Writer], object], *, locked: bool = False
) -> Iterator[tuple[int, Call, str]]:
    """Each call that `act` makes, the world planted anew: its index, itself, and its name for a report."""
    world.clear()
    plant(world)
    model = Writer(world, "w", locked=locked)
    act(model)
    assert model.fs.calls
    for index, call in enumerate(model.fs.calls):
        world.clear()
        plant(world)
        yield index, call, f"call {index}: {call}"


def killed_before_each_call(
    world: World, plant: Callable[[World], None], act: Callable[[Writer], object]
) -> Iterator[str]:
    """The world after a process was killed before each call that `act` makes, and where that was."""
    for index, _, where in each_call(world, plant, act):
        writer = world.writer()
        writer.fs.at_call(index).kill()
        with pytest.raises(Killed):
            act(writer)
        yield where


def die_before(world: World, act: Callable[[Writer], object], method: str, name: str) -> None:
    """Let a real process die before that call, its locks in place."""

    def run() -> None:
        writer = Writer(world, "dying", locked=True)
        writer.fs.at(method, name).before(die_here)
        act(writer)

    with Child(run) as child:
        child.wait_killed()

"""A writer that sleeps over the deletion and re-creation, or the renaming, of its team (rule `dir_fd`)."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import pytest

from cut_short import outcome
from pi_team.errors import TeamMoved, TeamUnknown
from pi_team.record.filesystem import OsFileSystem
from worlds import World, appending, unchanged

if TYPE_CHECKING:
    from interposition import Call

GOES_ON = "fstat alpha"
"""What an attempt still calls once it has looked where the team's path leads: it took effect before."""

STAGES = {
    "only moved": ("state.json", "revisions"),
    "record removed": ("revisions",),
    "history removed": ("state.json",),
    "all removed": (),
}


def calls_of_an_attempt(world: World) -> list[tuple[int, Call]]:
    """The calls of one publication from step 1 on, each with its index."""
    writer = world.writer()
    writer.append("x")
    calls = list(enumerate(writer.fs.calls))
    first = [call.name for call in writer.fs.calls].index("revisions")
    last = max(index for index, call in calls if call.method != "close")
    return calls[first : last + 1]


def renew(world: World, *, pending: bool = False) -> None:
    world.clear()
    world.plant(1)
    if pending:
        world.plant_pending(2, ("r1", "pending"), "pending", private=True)


@pytest.mark.parametrize("stage", STAGES)
def test_team_deleted_and_created_anew_at_any_call(world: World, stage: str) -> None:
    """However far the deletion got, nothing is written into the new team, and the writer is told."""
    world.plant(1)
    calls = calls_of_an_attempt(world)
    assert len(calls) > 15
    for index, call in calls:
        renew(world)
        writer = world.writer()
        point = writer.fs.at_call(index)
        point.before(lambda: world.replace_team(leave=STAGES[stage]))
        told = outcome(lambda: writer.publish(appending("stale")))  # noqa: B023 - called at once
        assert isinstance(told, TeamMoved) or str(call) == GOES_ON, f"{index}: {call}"
        assert point.reached, f"call {index}: {call}"
        state = world.state()
        assert (state.items, state.privates, list(state.slots)) == (("new",), (), [1]), f"{index}: {call}"


@pytest.mark.parametrize("pending", [False, True], ids=["nothing pending", "helping"])
def test_team_renamed_at_any_call(world: World, pending: bool) -> None:
    """A team that moved away and got its new name meanwhile is never called corrupt, nor the disk faulty."""
    renew(world, pending=pending)
    for index, call in calls_of_an_attempt(world):
        renew(world, pending=pending)
        writer, other = world.writer(), world.writer("other")
        point = writer.fs.at_call(index)
        point.before(lambda: other.rename("alpha", "beta"))  # noqa: B023 - called in this round
        told = outcome(lambda: writer.publish(appending("stale")))  # noqa: B023 - called at once
        assert isinstance(told, TeamMoved | TeamUnknown) or str(call) == GOES_ON, f"{index}: {call}"
        assert point.reached, f"call {index}: {call}"
        assert not os.path.exists(world.team())
        items = world.items("beta")
        assert items[0] == "r1", f"{index}: {call}"
        assert items.count("pending") == pending, f"{index}: {call}"
        assert items.count("renamed:beta") == 1, f"{index}: {call}"
        if isinstance(told, TeamUnknown):
            assert "stale" not in items, f"{index}: {call}"


class ByPath(OsFileSystem):
    """A control: every name is resolved anew from the path of the team."""

    def __init__(self, world: World) -> None:
        self._world = world

    def create(self, name: str, dir_fd: int | None = None) -> int:
        del dir_fd
        return super().create(os.path.join(self._world.team(), "revisions", name))

    def link(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        del source_dir_fd, target_dir_fd
        history = os.path.join(self._world.team(), "revisions")
        os.link(os.path.join(history, source), os.path.join(history, target))


def test_by_path_a_stale_writer_writes_into_the_new_team(world: World) -> None:
    """Control: without descriptors the stale slot turns up in the team that took the path."""
    world.plant(1)
    writer = world.writer("stale", ByPath(world))
    writer.fs.at("create", ".*.tmp").before(world.replace_team)
    with contextlib.suppress(Exception):
        writer.attempt(appending("stale"))
    assert 2 in world.state().slots


def test_no_operation_notices_a_move_that_changes_nothing(world: World) -> None:
    """An operation without a write answers from what it read, whatever became of the team since."""
    world.plant(1)
    writer = world.writer()
    with writer.open() as team:
        writer.fs.at("open_read", "2.json").before(world.replace_team)
        assert writer.publisher.attempt(team, writer.codec, unchanged).value == ("r1",)


def test_writer_waiting_for_the_lock_finds_the_team_that_is_there_then(world: World) -> None:
    """A team replaced before the attempt began: the operation takes place in the one that is there."""
    world.plant(1)
    writer = world.writer()
    point = writer.fs.at("stat", world.team())
    point.before(world.replace_team)
    writer.append("x")
    assert point.reached
    assert world.items() == ("new", "x")

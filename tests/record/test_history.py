"""The bounded history: when it is pruned, to what, and that a failure there changes nothing (step 9)."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from interposition import Killed
from pi_team.limits import REVISIONS_KEPT
from worlds import World, envelope_text, payload_text, planted_items, put, unchanged

if TYPE_CHECKING:
    from pathlib import Path


def slots(world: World) -> list[int]:
    names = os.listdir(os.path.join(world.team(), "revisions"))
    return sorted(int(name.removesuffix(".json")) for name in names if name.endswith(".json"))


def test_bounds_of_the_history(world: World) -> None:
    """Never more than twice the bound and one; after pruning exactly the bound; always the newest."""
    assert REVISIONS_KEPT == 32
    world.plant(1)
    writer = world.writer()
    counts = []
    for number in range(2, 200):
        assert writer.append(f"r{number}").revision == number
        there = slots(world)
        assert there == list(range(number - len(there) + 1, number + 1)), "no gap, up to the newest"
        counts.append(len(there))
    assert max(counts) == 2 * REVISIONS_KEPT
    assert min(counts[2 * REVISIONS_KEPT :]) == REVISIONS_KEPT
    assert [number for number, count in enumerate(counts, 2) if count == REVISIONS_KEPT][1:] == [
        65,
        98,
        131,
        164,
        197,
    ]


def test_slots_while_a_write_prunes(world: World) -> None:
    """Counted inside the write that prunes: 65 slots for a moment, and all of the 33 oldest go."""
    world.plant(64)
    writer = world.writer()
    seen: list[int] = []
    writer.fs.at("fsync", "alpha").before(lambda: seen.append(len(slots(world))))
    writer.append("r65")
    assert seen == [2 * REVISIONS_KEPT + 1]
    assert slots(world) == list(range(34, 66))
    assert writer.fs.names("unlink") != []


def test_pruning_syncs_the_record_first(world: World) -> None:
    """A power cut must not put the record back below the history that is left."""
    world.plant(64)
    writer = world.writer()
    writer.append("r65")
    calls = [call.method for call in writer.fs.calls if call.name != "revisions" or call.method != "fsync"]
    synced = [index for index, call in enumerate(writer.fs.calls) if str(call) == "fsync alpha"]
    removed = [index for index, call in enumerate(writer.fs.calls) if call.method == "unlink"]
    assert "rename" in calls
    assert len(synced) == 1
    assert synced[0] < min(removed)


@pytest.mark.parametrize(
    ("method", "name"), [("fsync", "alpha"), ("listdir", "revisions"), ("stat", "1.json")]
)
def test_pruning_that_fails_as_a_whole(world: World, method: str, name: str) -> None:
    """The write succeeded; nothing is removed, and the next write prunes."""
    world.plant(64)
    writer = world.writer()
    point = writer.fs.at(method, name).fail(errno.EIO)
    assert writer.append("r65").revision == 65
    assert point.reached
    assert slots(world) == list(range(1, 66))
    assert world.items() == planted_items(65)


def test_pruning_that_fails_here_and_there(world: World) -> None:
    """Slots that could not be removed go with the next pruning; the bound holds again from then on."""
    world.plant(64)
    writer = world.writer()
    for nth in (1, 3, 7):
        writer.fs.at("unlink", "*.json", nth).fail(errno.EACCES)
    writer.append("r65")
    assert len(slots(world)) == REVISIONS_KEPT + 3
    left = [number for number in slots(world) if number <= 33]
    for number in range(66, 99):
        writer.append(f"r{number}")
        assert len(slots(world)) <= 2 * REVISIONS_KEPT + 1
    assert len(left) == 3
    assert not set(left) & set(slots(world))


@pytest.mark.parametrize("stop", [1, 2, 20, 33])
def test_pruning_that_was_killed(world: World, stop: int) -> None:
    """A killed pruning leaves a bounded rest, whichever slots went first, and the next ones finish it."""
    world.plant(64)
    writer = world.writer()
    writer.fs.at("unlink", "*.json", stop).kill()
    with pytest.raises(Killed):
        writer.append("r65")
    assert world.items() == planted_items(65)
    after = world.writer("after")
    for number in range(66, 99):
        after.append(f"r{number}")
        assert len(slots(world)) <= 2 * REVISIONS_KEPT + 1
    assert slots(world)[-REVISIONS_KEPT:] == list(range(67, 99))


def test_pruning_leaves_what_is_no_slot(world: World) -> None:
    """Names that only look like slots, and private files, are not the pruning's business."""
    world.plant(64)
    others = ["01.json", "1.json.bak", "x.json", "-1.json", "1_0.json", "2.JSON", ".a.b.tmp"]
    for name in others:
        put(os.path.join(world.team(), "revisions", name), b"?")
    world.writer().append("r65")
    left = set(os.listdir(os.path.join(world.team(), "revisions")))
    assert set(others) <= left
    assert "1.json" not in left


def test_history_that_an_older_peer_pruned(world: World) -> None:
    """It keeps 32 and no more; a gap below is no reason to prune, nor to keep for ever."""
    world.make_directories()
    for revision in range(10, 42):
        put(world.slot(revision), envelope_text(revision, payload_text(planted_items(revision))))
    os.link(world.slot(41), world.record())
    writer = world.writer()
    for revision in range(42, 120):
        writer.append(f"r{revision}")
        assert len(slots(world)) <= 2 * REVISIONS_KEPT + 1
    assert world.items() == planted_items(119)


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_small_bounds(root: Path, kept: int) -> None:
    """The rule is the same for a history of one."""
    world = World(str(root), kept=kept)
    world.plant(1)
    writer = world.writer()
    for number in range(2, 30):
        writer.append(f"r{number}")
        assert kept <= len(slots(world)) <= 2 * kept or number < 2 * kept
    assert world.items() == planted_items(29)


def test_operation_without_a_write_does_not_prune(world: World) -> None:
    """A look or a refused operation never removes anything."""
    world.plant(90)
    world.writer().attempt(unchanged)
    assert len(slots(world)) == 90

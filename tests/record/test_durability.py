"""What is synced before what, so that a power cut takes nothing back that was acknowledged or shown."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from interposition import Killed
from pi_team.errors import StorageError
from worlds import TEAM, World, Writer, envelope_text, payload_text, planted_items, put, unchanged

if TYPE_CHECKING:
    from collections.abc import Callable


def legacy(world: World) -> None:
    """A record without an envelope, and no history."""
    os.mkdir(world.team(), 0o700)
    put(world.record(), payload_text(("old",)))


def older_peers(world: World) -> None:
    """A team in which only older peers wrote so far."""
    world.make_directories()
    text = envelope_text(3, payload_text(("old",)))
    put(world.slot(3), text)
    put(world.record(), text)


def positions(writer: Writer, *wanted: str) -> list[int]:
    """Where in the calls each of these is first; -1 where it is not."""
    calls = [f"{call.method} {call.name}" for call in writer.fs.calls]
    return [next((at for at, call in enumerate(calls) if call.startswith(what)), -1) for what in wanted]


def link_of(writer: Writer) -> int:
    calls = writer.fs.calls
    return next(at for at, call in enumerate(calls) if call.method == "link" and call.name.endswith(".json"))


@pytest.mark.parametrize("beginning", [legacy, older_peers], ids=["legacy", "older peers"])
def test_history_that_nobody_of_ours_has_synced(world: World, beginning: Callable[[World], None]) -> None:
    """The slot is durable only if `revisions/` itself is: the team's directory is synced before the link."""
    beginning(world)
    writer = world.writer()
    writer.append("new")
    (synced,) = positions(writer, "fsync alpha")
    assert 0 <= synced < link_of(writer)
    again = world.writer()
    again.append("newer")
    assert positions(again, "fsync alpha") == [-1], "once is enough"


def test_history_whose_maker_was_killed_before_it_was_synced(world: World) -> None:
    """The next writer finds `revisions/` there, and syncs it all the same."""
    legacy(world)
    first = world.writer()
    first.fs.at("fsync", TEAM).kill()
    with pytest.raises(Killed):
        first.append("never")
    assert os.path.isdir(os.path.join(world.team(), "revisions"))
    writer = world.writer()
    writer.append("new")
    (synced,) = positions(writer, "fsync alpha")
    assert 0 <= synced < link_of(writer)
    assert world.items() == ("old", "new")


def test_history_that_could_not_be_synced(world: World) -> None:
    """The operation is refused before its link; the next one tries again."""
    legacy(world)
    first = world.writer()
    first.fs.at("fsync", TEAM).fail(errno.EIO)
    with pytest.raises(StorageError):
        first.append("refused")
    writer = world.writer()
    writer.append("new")
    (synced,) = positions(writer, "fsync alpha")
    assert 0 <= synced < link_of(writer)
    assert world.items() == ("old", "new")


@pytest.mark.parametrize("orphans", [1, 5, 40])
def test_record_put_back_by_a_power_cut(world: World, orphans: int) -> None:
    """The record's own name is synced only before a pruning: it comes back old, its successors as slots."""
    world.plant(1 + orphans)
    os.unlink(world.record())
    os.link(world.slot(1), world.record())
    version = world.writer().append("next")
    assert version.revision == 2 + orphans
    assert world.items() == (*planted_items(1 + orphans), "next")


@pytest.mark.parametrize("lost", [2, 3, 4])
def test_unsynced_slot_lost_by_a_power_cut(world: World, lost: int) -> None:
    """Nothing above a slot that was lost was acknowledged: it is skipped, and what is below it counts."""
    world.plant(4)
    os.unlink(world.record())
    os.link(world.slot(1), world.record())
    os.unlink(world.slot(lost))
    writer = world.writer()
    writer.append("next")
    assert world.items() == (*planted_items(lost - 1), "next")
    writer.append("later")
    assert world.items() == (*planted_items(lost - 1), "next", "later")


def test_private_files_survived_and_the_record_did_not(world: World) -> None:
    """The renames were lost and nothing else: they are done again, in order."""
    world.plant(1)
    for revision in range(2, 8):
        world.plant_pending(revision, planted_items(revision), f"p{revision}x", private=True)
    writer = world.writer()
    assert writer.attempt(unchanged).revision == 7
    assert world.items() == planted_items(7)
    assert world.state().privates == ()
    assert len(writer.fs.names("rename", "*-> state.json")) == 6


def test_rename_survived_and_the_removal_of_the_private_file_did_not(world: World) -> None:
    """Both names of one file after a power cut: the record has it, and nobody installs it again."""
    world.plant(1)
    world.plant_pending(2, ("r1", "x"), "both", private=True)
    os.unlink(world.record())
    os.link(world.private("both"), world.record())
    assert world.writer().append("next").revision == 3
    assert world.items() == ("r1", "x", "next")
    assert world.state().privates == (".both.dead.tmp",), "the sweep takes it"

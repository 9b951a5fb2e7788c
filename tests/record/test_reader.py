"""Lock-free reads: what they cost, what they complete, and that what was shown never goes back."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from typing import TYPE_CHECKING

import pytest

from cut_short import each_call
from interposition import ReusingFileSystem
from pi_team.errors import (
    PiTeamError,
    RecordCorrupt,
    RecordMissing,
    RecordUnsafe,
    StorageError,
    TeamMoved,
    TeamUnknown,
)
from worlds import (
    TEAM,
    StillClock,
    World,
    Writer,
    envelope_text,
    payload_text,
    planted_items,
    put,
    unchanged,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INSTALL = ".*.tmp -> state.json"
SLOT = ".*.tmp -> *.json"


def calls_of(writer: Writer, run: Callable[[], object]) -> list[str]:
    before = len(writer.fs.calls)
    run()
    return [f"{call.method} {os.path.basename(call.name)}" for call in writer.fs.calls[before:]]


def make_read_only(writer: Writer, code: int = errno.EROFS) -> None:
    """Every call that would change something fails from here on."""
    for method in ("create", "mkdir", "write", "link", "rename", "unlink", "rmdir", "touch"):
        writer.fs.at(method).fail(code).always()


def each_call_of_a_read(world: World) -> Iterator[tuple[int, str]]:
    """Each call of a first read of a team with two revisions, planted anew: its index and its name."""
    calls = each_call(world, lambda anew: anew.plant(2), lambda writer: writer.reader().read())
    return ((index, where) for index, _, where in calls)


# --- cost -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("messages", [1, 5_000])
def test_unchanged_record_costs_two_calls(world: World, messages: int) -> None:
    """However large it is: the record's status and the next slot's absence, and no byte is read."""
    world.plant(3, items=[f"item {number}" for number in range(messages)])
    writer = world.writer()
    reader = writer.reader()
    first = reader.read()
    for _ in range(3):
        assert calls_of(writer, reader.read) == ["stat state.json", "stat 4.json"]
        assert reader.read() is first


def test_changed_record_is_read_once(world: World) -> None:
    """A new revision costs one read of the record, whatever the number of revisions in between."""
    world.plant(1)
    writer = world.writer("reader")
    reader = writer.reader()
    reader.read()
    world.writer().append_many(5)
    calls = calls_of(writer, reader.read)
    assert calls.count("open_read state.json") == 1
    assert len(calls) < 16
    assert calls_of(writer, reader.read) == ["stat state.json", "stat 7.json"]


def test_descriptors_do_not_pile_up(world: World) -> None:
    """A reader holds the record and the team's directory open, and nothing once it is closed."""
    world.plant(1)
    writer = world.writer("reader")
    reader = writer.reader()
    for number in range(10):
        world.writer().append(f"x{number}")
        reader.read()
        assert len(writer.fs.open_names) <= 2
    reader.close()
    assert writer.fs.open_names == {}
    reader.close()


# --- noticing -------------------------------------------------------------------------------------


def test_record_of_the_same_size_is_noticed(world: World) -> None:
    """Another revision with as many bytes, dated alike: it is another file."""
    world.plant(1)
    reader = world.writer().reader()
    reader.read()
    status = os.stat(world.record())
    put(world.record() + ".new", envelope_text(1, payload_text(("r2",)), by="p1"))
    os.utime(world.record() + ".new", ns=(status.st_atime_ns, status.st_mtime_ns))
    os.rename(world.record() + ".new", world.record())
    assert reader.read().value == ("r2",)


def test_record_changed_in_place_is_noticed(world: World) -> None:
    """Nobody of ours does that; a person with an editor may."""
    world.plant(1)
    reader = world.writer().reader()
    reader.read()
    text = envelope_text(1, payload_text(("r2",)), by="p1")
    with open(world.record(), "r+", encoding="utf-8") as file:
        file.write(text)
    assert reader.read().value == ("r2",)


def test_record_made_unsafe_is_noticed(world: World) -> None:
    """Its mode is looked at each time."""
    world.plant(1)
    reader = world.writer().reader()
    reader.read()
    os.chmod(world.record(), 0o644)
    with pytest.raises(RecordUnsafe):
        reader.read()
    os.chmod(world.record(), 0o600)
    assert reader.read().value == ("r1",)


def test_reader_survives_errors(world: World) -> None:
    """Damaged, missing, gone, and back: each read says what is there now."""
    world.plant(2)
    writer = world.writer()
    reader = writer.reader()
    good = reader.read()
    put(world.record(), b"{")
    with pytest.raises(RecordCorrupt):
        reader.read()
    os.unlink(world.record())
    with pytest.raises(RecordMissing):
        reader.read()
    os.rename(world.team(), world.team() + "-away")
    with pytest.raises(TeamUnknown):
        reader.read()
    os.rename(world.team() + "-away", world.team())
    os.link(world.slot(2), world.record())
    assert reader.read() == good
    reader.close()
    assert writer.fs.open_names == {}


@pytest.mark.parametrize("code", [errno.EIO, errno.EMFILE, errno.EACCES])
def test_each_call_of_a_read_refused(world: World, code: int) -> None:
    """A failing system says so with its code, no descriptor is left, and the next read is right."""
    for index, where in each_call_of_a_read(world):
        writer = world.writer()
        reader = writer.reader()
        writer.fs.at_call(index).fail(code)
        with contextlib.suppress(StorageError):
            assert reader.read().revision == 2, where
        assert reader.read().value == ("r1", "r2"), where
        reader.close()
        assert writer.fs.open_names == {}, where


# --- a team that is created anew ------------------------------------------------------------------


def test_team_created_anew_carries_nothing_over(world: World) -> None:
    """Revision 1 of the new team is shown, though revision 9 of the old one was."""
    world.plant(9)
    reader = world.writer().reader()
    assert reader.read().revision == 9
    world.replace_team(leave=())
    assert reader.read().value == ("new",)


def test_team_created_anew_with_the_same_inode_numbers(world: World) -> None:
    """The new directory and record get the numbers of the old ones, unless the reader pins those."""
    world.plant(9)
    kernel = ReusingFileSystem()
    reader = world.writer("reader", kernel).reader()
    assert reader.read().revision == 9
    world.replace_team(leave=())
    assert reader.read().value == ("new",)
    reader.close()
    kernel.close_pins()


def test_team_created_anew_while_the_reader_was_closed(world: World) -> None:
    """Nothing pins the old directory, and the new one has its number: the history tells them apart."""
    world.plant(9)
    kernel = ReusingFileSystem()
    reader = world.writer("reader", kernel).reader()
    assert reader.read().revision == 9
    reader.close()
    world.replace_team(leave=())
    assert reader.read().value == ("new",)
    kernel.close_pins()


@pytest.mark.parametrize("spoil", ["", "revisions", "revisions/3.json"])
def test_what_was_shown_stays_while_the_reader_was_closed(world: World, spoil: str) -> None:
    """An older record was put back meanwhile, as a peer that slept does; nobody can bring it forward.

    Where the history does not say that it is the same team, the record speaks for itself.
    """
    world.plant(3)
    writer = world.writer()
    reader = writer.reader()
    assert reader.read().revision == 3
    reader.close()
    os.unlink(world.record())
    os.link(world.slot(2), world.record())
    make_read_only(writer)
    writer.fs.at("fsync").fail(errno.EIO).always()
    if spoil:
        os.chmod(os.path.join(world.team(), spoil), 0o755)
    for _ in range(2):
        assert reader.read().revision == (2 if spoil else 3)
    reader.close()
    assert writer.fs.open_names == {}


def test_number_of_a_closed_directory_is_reused(world: World) -> None:
    """Control of the file system above: once nobody holds the old team open, the new one has its number."""
    world.plant(1)
    kernel = ReusingFileSystem()
    old = kernel.stat(world.team()).st_ino
    world.replace_team(leave=())
    assert kernel.stat(world.team()).st_ino == old
    kernel.close_pins()


@pytest.mark.parametrize("leave", [("state.json", "revisions"), ("revisions",), ("state.json",), ()])
def test_team_created_anew_at_any_call_of_a_read(world: World, leave: tuple[str, ...]) -> None:
    """The old team or the new one is shown, or the team is gone for this moment; the next read is right."""
    for index, where in each_call_of_a_read(world):
        reader = (writer := world.writer()).reader()
        writer.fs.at_call(index).before(functools.partial(world.replace_team, leave=leave))
        with contextlib.suppress(TeamMoved, TeamUnknown):
            assert reader.read().value in (("r1", "r2"), ("new",)), where
        assert reader.read().value == ("new",), where


def test_team_renamed_at_any_call_of_a_read(world: World) -> None:
    """It is gone or it is still there; never RECORD_CORRUPT because it bears its new name already."""
    for index, where in each_call_of_a_read(world):
        reader = (writer := world.writer()).reader()
        other = world.writer("other")
        writer.fs.at_call(index).before(functools.partial(other.rename, TEAM, "beta"))
        with contextlib.suppress(TeamMoved, TeamUnknown):
            assert reader.read().value == ("r1", "r2"), where
        with pytest.raises(TeamUnknown):
            reader.read()


# --- completing -----------------------------------------------------------------------------------


def test_pending_publication_is_completed_by_a_read(world: World) -> None:
    """A writer was killed between link and rename: a look installs it, and nobody needs to write."""
    world.plant_stuck("dead", private=True)
    assert world.writer().reader().read().value == ("r1", "dead")
    assert world.items() == ("r1", "dead")
    assert world.state().privates == ()


def test_orphaned_slot_is_completed_by_a_read(world: World) -> None:
    """Only the slot is left: the read publishes what it holds, as the next revision."""
    world.plant_stuck("orphan", private=False)
    version = world.writer().reader().read()
    assert (version.revision, version.value) == (3, ("r1", "orphan"))
    assert world.items() == ("r1", "orphan")


def test_damaged_slot_is_passed_by_a_read_once(world: World) -> None:
    """A read gets everybody past it; the reads after that are cheap again."""
    world.plant(1)
    put(world.slot(2), b"")
    writer = world.writer()
    reader = writer.reader()
    assert reader.read().revision == 3
    assert calls_of(writer, reader.read) == ["stat state.json", "stat 4.json"]


def test_living_writer_is_given_a_moment(world: World) -> None:
    """Its slot is linked and its rename a moment away: the reader looks again before it takes any lock."""
    world.plant_stuck("living", private=True)
    writer = Writer(world, "reader", locked=True)

    class Moment(StillClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if self.sleeps == 2:
                os.rename(world.private("living"), world.record())

    writer.clock = Moment()
    assert writer.reader().read().value == ("r1", "living")
    assert writer.fs.names("rename") == []
    assert not os.path.exists(os.path.join(world.path, ".locks"))
    assert writer.clock.slept < 0.01


def test_reader_without_a_publisher_changes_nothing(world: World) -> None:
    """The doctor's look: it neither helps nor follows, and shows the record as it is."""
    world.plant_stuck("dead", private=True)
    before = world.photograph()
    assert world.writer().reader(helping=False).read().revision == 1
    assert world.photograph() == before


def test_read_at_any_moment_of_a_living_writer(world: World) -> None:
    """At each call of a publication a new reader and an old one look: before or after, and never back."""
    world.plant(1)
    model = world.writer()
    model.append("x")
    old = world.writer("old").reader()
    for index, call in enumerate(model.fs.calls):
        writer, item = world.writer(), f"item{index}"
        revisions: list[int] = []

        def look(revisions: list[int] = revisions) -> None:
            revisions.append(world.writer("new").reader().read().revision)
            revisions.append(old.read().revision)

        before = world.state().revision
        writer.fs.at_call(index).before(look)
        writer.append(item)
        look()
        assert revisions == sorted(revisions), f"call {index}: {call}"
        assert set(revisions) <= {before, before + 1}, f"call {index}: {call}"
        assert world.items().count(item) == 1


# --- a look never fails because helping failed ------------------------------------------------------


def test_read_only_directory_is_followed_in_memory(world: World) -> None:
    """The chain above the record is shown, after the helper's check and sync, and nothing is written."""
    world.plant_stuck("a", private=True)
    world.plant_pending(3, ("r1", "a", "b"), "b", private=False)
    before = world.photograph()
    writer = world.writer()
    make_read_only(writer)
    reader = writer.reader()
    for _ in range(3):
        version = reader.read()
        assert (version.revision, version.value) == (3, ("r1", "a", "b"))
    assert world.photograph() == before
    assert "fsync revisions" in [str(call) for call in writer.fs.calls]


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EDQUOT])
def test_read_only_directory_with_its_locks(world: World, code: int) -> None:
    """The locks cannot be made either: a look is still no failure."""
    world.plant_stuck("a", private=True)
    before = world.photograph()
    writer = Writer(world, "reader", locked=True)
    make_read_only(writer, code)
    assert writer.reader().read().value == ("r1", "a")
    assert world.photograph() == before


def test_what_was_shown_never_goes_back(world: World) -> None:
    """Revision 3 was shown from memory; while others install one after the other, it stays shown."""
    world.plant(1)
    for revision in (2, 3):
        world.plant_pending(revision, ("r1", *"ab"[: revision - 1]), f"p{revision}x", private=True)
    writer = world.writer()
    make_read_only(writer)
    reader = writer.reader()
    shown = [reader.read().revision]
    os.rename(world.private("p2x"), world.record())
    shown.append(reader.read().revision)
    os.rename(world.private("p3x"), world.record())
    shown.append(reader.read().revision)
    world.writer("other").append("later")
    shown.append(reader.read().revision)
    assert shown == [3, 3, 3, 4]


def test_what_was_shown_stays_when_it_cannot_be_followed_any_more(world: World) -> None:
    """The history becomes unreadable after it was followed: the record is behind what was shown."""
    world.plant_stuck("a", private=False)
    writer = world.writer()
    make_read_only(writer)
    reader = writer.reader()
    assert reader.read().revision == 2
    writer.fs.at("open_read", "2.json").fail(errno.EIO).always()
    assert reader.read().value == ("r1", "a")


def test_chain_that_cannot_be_synced_is_not_shown(world: World) -> None:
    """What a power cut could take back is not shown: the record as it is."""
    world.plant_stuck("a", private=True)
    writer = world.writer()
    make_read_only(writer)
    writer.fs.at("fsync").fail(errno.EIO).always()
    assert writer.reader().read().value == ("r1",)


def test_older_peers_slot_that_cannot_be_synced_is_not_shown(world: World) -> None:
    """It is part of the chain, and shown under the same condition as ours."""
    world.plant(1)
    put(world.slot(2), envelope_text(2, payload_text(("r1", "peer"))))
    writer = world.writer()
    make_read_only(writer)
    assert writer.reader().read().value == ("r1", "peer")
    assert "fsync revisions" in [str(call) for call in writer.fs.calls]
    unsynced = world.writer()
    make_read_only(unsynced)
    unsynced.fs.at("fsync").fail(errno.EIO).always()
    assert unsynced.reader().read().value == ("r1",)


def test_chain_is_checked_before_it_is_shown(world: World) -> None:
    """The record moved while the chain was followed: it is followed anew from where the record is."""
    world.plant_stuck("a", private=True)
    writer, other = world.writer(), world.writer("other")
    make_read_only(writer)
    writer.fs.at("fsync", "revisions", nth=2).before(lambda: other.append("b"))
    assert writer.reader().read().value == ("r1", "a", "b")


def test_busy_locks_delay_a_look_for_half_a_second(world: World) -> None:
    """Somebody holds the locks: the look waits 0.5 s at most, then follows in memory."""
    world.plant_stuck("a", private=True)
    holder, writer = Writer(world, "holder", locked=True), Writer(world, "reader", locked=True)
    with holder.locks.stable(TEAM, patience=holder.patience()):
        before = world.photograph()
        assert writer.reader().read().value == ("r1", "a")
        assert world.photograph() == before
    assert isinstance(writer.clock, StillClock)
    assert 0.5 <= writer.clock.slept < 0.52


@pytest.mark.parametrize(
    "spoil",
    [
        lambda world: put(world.slot(2), envelope_text(2, payload_text(("x",)), by="x", schema=2)),
        lambda world: put(world.slot(2), envelope_text(2, '{"team":"alpha"}', by="x")),
        lambda world: os.chmod(world.slot(2), 0o640),
        lambda world: os.chmod(os.path.dirname(world.slot(2)), 0o750),
    ],
    ids=["unknown schema", "broken payload", "unsafe slot", "unsafe history"],
)
def test_slot_that_stops_writers_does_not_stop_a_look(world: World, spoil: Callable[[World], None]) -> None:
    """A writer refuses; a reader shows the record."""
    world.plant_stuck("a", private=True)
    spoil(world)
    before = world.photograph()
    with pytest.raises(PiTeamError):
        world.writer().attempt(unchanged)
    assert world.writer().reader().read().value == ("r1",)
    assert world.photograph() == before


def test_legacy_team_without_a_history(world: World) -> None:
    """Nothing is above revision 0 where there is no `revisions/`; reading makes none."""
    os.mkdir(world.team(), 0o700)
    put(world.record(), payload_text(("old",)))
    writer = world.writer()
    reader = writer.reader()
    assert reader.read().value == ("old",)
    assert calls_of(writer, reader.read) == ["stat state.json", "stat 1.json"]
    assert os.listdir(world.team()) == ["state.json"]


def test_long_chain_in_memory(world: World) -> None:
    """Many publications are pending at once: all are followed."""
    world.plant(1)
    for revision in range(2, 40):
        world.plant_pending(revision, planted_items(revision), f"p{revision}x", private=False)
    writer = world.writer()
    make_read_only(writer)
    assert writer.reader().read().value == planted_items(39)

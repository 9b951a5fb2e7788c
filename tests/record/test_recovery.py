"""Recovery: an old revision published anew, the damaged record kept, and nobody undoes it."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from typing import TYPE_CHECKING

import pytest

from cut_short import each_call
from interposition import CHANGING, REFUSALS, Killed, Sleeper, UnsyncedFileSystem
from pi_team.errors import (
    OutcomeUnknown,
    PiTeamError,
    RecordCorrupt,
    RecordMissing,
    RecordUnsafe,
    StorageError,
    UnsupportedSchema,
    UsageError,
)
from pi_team.limits import REVISION_MAX
from pi_team.record import recovery
from pi_team.record.attempt import Conflict
from pi_team.record.filesystem import OsFileSystem
from worlds import (
    Items,
    ListCodec,
    World,
    Writer,
    envelope_text,
    payload_text,
    planted_items,
    put,
    read,
    unchanged,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_team.record.reading import Version

SLOT = ".*.tmp -> *.json"
INSTALL = ".*.tmp -> state.json"


def dangling(world: World) -> None:
    os.unlink(world.record())
    os.symlink("nowhere", world.record())


DAMAGE: dict[str, Callable[[World], None]] = {
    "zero length": lambda world: put(world.record(), b""),
    "NUL bytes": lambda world: put(world.record(), b"\0" * 500),
    "cut short": lambda world: put(world.record(), read(world.record())[:-9]),
    "another team's": lambda world: put(world.record(), envelope_text(9, payload_text(("x",), "beta"))),
    "missing": lambda world: os.unlink(world.record()),
    "group-readable": lambda world: put(world.record(), b"{", 0o640),
    "a link": dangling,
}


def recover(writer: Writer, revision: int | None = None) -> Version[Items]:
    """A recovery, again after each conflict, without locks."""
    codec = ListCodec()
    return writer.publisher.exclusively(
        writer.open,
        lambda team: recovery.recover(writer.publisher, team, codec, codec, revision),
        writer.patience(),
    )


def evidence(world: World) -> dict[str, bytes]:
    names = [name for name in os.listdir(world.team()) if name.startswith(recovery.EVIDENCE_PREFIX)]
    return {name: read(os.path.join(world.team(), name)) for name in names}


def damaged(world: World, content: bytes = b"{") -> None:
    """Three revisions, and a record that cannot be read."""
    world.plant(3)
    put(world.record(), content)


# --- an unreadable record -------------------------------------------------------------------------


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_newest_intact_revision_is_restored(world: World, damage: Callable[[World], None]) -> None:
    """It is published above the highest slot, and the next writer goes on from it."""
    world.plant(3)
    damage(world)
    with pytest.raises(PiTeamError):
        world.writer().append("refused")
    version = recover(world.writer())
    assert (version.revision, version.value) == (4, planted_items(3))
    assert world.items() == planted_items(3)
    assert world.state().slots[4]["previous"]["publication"] == "p3"
    assert world.writer().append("next").revision == 5
    assert world.items() == (*planted_items(3), "next")


def test_damaged_record_is_kept_beside(world: World) -> None:
    """Every byte of it, under a name that tells it from the record."""
    damaged(world, b'{"half of a rec')
    recover(world.writer())
    assert evidence(world) == {"state.json.damaged-4": b'{"half of a rec'}
    world.writer().append("next")
    assert evidence(world) == {"state.json.damaged-4": b'{"half of a rec'}


def test_each_damaged_record_is_kept(world: World) -> None:
    """A first recovery was refused after it kept the evidence; the record is another one by the second."""
    damaged(world, b"first")
    refused = world.writer()
    refused.fs.at("create").fail(errno.ENOSPC)
    with pytest.raises(StorageError):
        recover(refused)
    put(world.record(), b"second")
    recover(world.writer())
    assert sorted(evidence(world).values()) == [b"first", b"second"]


def test_evidence_is_not_kept_twice(world: World) -> None:
    """A recovery that is repeated after a refusal finds its own evidence."""
    damaged(world, b"damaged")
    refused = world.writer()
    refused.fs.at("create").fail(errno.ENOSPC)
    with pytest.raises(StorageError):
        recover(refused)
    recover(world.writer())
    assert list(evidence(world).values()) == [b"damaged"]


def test_recovery_that_cannot_keep_the_evidence(world: World) -> None:
    """Then nothing is replaced."""
    damaged(world)
    before = world.photograph()
    writer = world.writer()
    writer.fs.at("link", "state.json -> *").fail(errno.ENOSPC)
    with pytest.raises(StorageError):
        recover(writer)
    assert world.photograph() == before


def test_damaged_slots_are_passed_over(world: World) -> None:
    """The newest slots are no better than the record: the newest intact one counts, above all of them."""
    world.plant(5)
    for path in (world.slot(4), world.slot(5), world.record()):
        put(path, b"\0\0\0")
    version = recover(world.writer())
    assert (version.revision, version.value) == (6, planted_items(3))
    assert read(world.slot(5)) == b"\0\0\0"
    assert world.writer().append("next").revision == 7


def test_slot_that_was_linked_and_never_installed_is_the_newest(world: World) -> None:
    """A killed writer's publication above the damaged record is part of what is restored."""
    world.plant(2)
    world.plant_pending(3, ("r1", "r2", "dead"), "dead", private=True)
    put(world.record(), b"")
    assert recover(world.writer()).value == ("r1", "r2", "dead")


def test_chosen_revision(world: World) -> None:
    """Any intact revision can be named; the newest is the parent all the same."""
    damaged(world)
    version = recover(world.writer(), 2)
    assert (version.revision, version.value) == (4, planted_items(2))
    assert world.state().slots[4]["previous"]["publication"] == "p3"
    assert world.writer().append("next").revision == 5
    assert world.items() == (*planted_items(2), "next")


@pytest.mark.parametrize("revision", [0, 4, 99])
def test_revision_that_is_not_there(world: World, revision: int) -> None:
    """It says which ones are, and changes nothing."""
    damaged(world)
    before = world.photograph()
    with pytest.raises(UsageError) as refused:
        recover(world.writer(), revision)
    assert "1, 2, 3" in refused.value.hint
    assert world.photograph() == before


@pytest.mark.parametrize("history", ["damaged", "empty", "none"])
def test_nothing_is_intact(world: World, history: str) -> None:
    """Then there is nothing to restore; the record is left as it is, and the way to give up is said."""
    damaged(world)
    for revision in (1, 2, 3):
        if history == "damaged":
            put(world.slot(revision), b"{")
        else:
            os.unlink(world.slot(revision))
    if history == "none":
        os.rmdir(os.path.dirname(world.slot(1)))
    before = world.photograph()
    with pytest.raises(RecordCorrupt) as refused:
        recover(world.writer())
    assert "--damaged" in refused.value.hint
    assert world.photograph() == before


def test_newer_schema_is_nothing_to_recover_from(world: World) -> None:
    """A newer release's record is good; replacing it would lose it."""
    world.plant(3)
    put(world.record(), envelope_text(9, payload_text(("new",)), schema=2))
    before = world.photograph()
    with pytest.raises(UnsupportedSchema):
        recover(world.writer())
    assert world.photograph() == before


@pytest.mark.parametrize("name", [REVISION_MAX + 1, 9_999_999_999_999_999])
def test_file_that_is_named_like_a_revision_beyond_all(world: World, name: int) -> None:
    """No revision has that number: it is no slot, and nothing is published above it."""
    damaged(world)
    put(world.slot(name), b"?")
    assert recover(world.writer()).revision == 4
    assert world.writer().append("next").revision == 5


@pytest.mark.parametrize("name", [REVISION_MAX, REVISION_MAX - 1, 3 + 65])
def test_file_whose_number_no_history_could_have_reached(world: World, name: int) -> None:
    """A stray file far above the others is no end of the numbers, and nothing is published above it."""
    damaged(world)
    put(world.slot(name), b"")
    assert recover(world.writer()).revision == 4
    assert world.writer().append("next").revision == 5


def test_damaged_slot_above_a_gap(world: World) -> None:
    """A power cut took a slot and spared the next, which a stopped writer may have linked: it goes above."""
    damaged(world)
    put(world.slot(5), b"?")
    assert recover(world.writer()).revision == 6
    assert world.writer().append("next").revision == 7


def test_history_whose_numbers_are_used_up(world: World) -> None:
    """Above the last revision nothing can be published: refused, and the record stays."""
    damaged(world)
    put(world.slot(REVISION_MAX), envelope_text(REVISION_MAX, payload_text(("last",))))
    before = world.photograph()
    with pytest.raises(RecordCorrupt, match="used up"):
        recover(world.writer())
    assert world.photograph() == before


# --- what could not be read -----------------------------------------------------------------------


def opened(path: str) -> None:
    os.chmod(path, 0o640)


def directory(path: str) -> None:
    os.unlink(path)
    os.mkdir(path, 0o700)


def later(path: str) -> None:
    put(path, envelope_text(3, payload_text(("new",)), schema=2))


UNREAD: dict[str, tuple[Callable[[str], None], type[PiTeamError]]] = {
    "open to others": (opened, RecordUnsafe),
    "a directory": (directory, RecordUnsafe),
    "a later schema": (later, UnsupportedSchema),
}


@pytest.mark.parametrize("what", UNREAD)
def test_slot_that_nobody_has_read_is_not_passed_over(world: World, what: str) -> None:
    """The newest slot may hold what was acknowledged last: to give it up has to be asked for."""
    damaged(world)
    plant, refusal = UNREAD[what]
    plant(world.slot(3))
    before = world.photograph()
    with pytest.raises(refusal) as refused:
        recover(world.writer())
    assert "Revision 3" in refused.value.hint
    assert "--revision 2" in refused.value.hint
    with pytest.raises(refusal):
        recover(world.writer(), 3)
    assert world.photograph() == before
    assert recover(world.writer(), 2).value == planted_items(2)


@pytest.mark.parametrize("code", REFUSALS)
def test_slot_whose_read_fails_is_not_passed_over(world: World, code: int) -> None:
    """No descriptor was left, or the device failed for a moment: nothing is restored, and a repetition works.

    Otherwise acknowledged changes would be gone for a fault that has passed.
    """
    damaged(world)
    before = world.photograph()
    writer = world.writer()
    writer.fs.at("open_read" if code == errno.EMFILE else "read", "3.json").fail(code)
    with pytest.raises(StorageError, match="revision 3") as refused:
        recover(writer)
    assert "--revision 2" in refused.value.hint
    assert refused.value.retryable
    assert world.photograph() == before
    assert recover(writer).value == planted_items(3)


def test_older_slot_whose_read_fails_is_no_obstacle(world: World) -> None:
    """A bad sector under an old revision: the newest one is as good as ever."""
    damaged(world)
    writer = world.writer()
    writer.fs.at("read", "2.json").fail(errno.EIO).always()
    with writer.open() as team:
        reports = recovery.history(team, ListCodec())
    assert [report.version is not None for report in reports] == [True, False, True]
    assert reports[1].fault
    assert recover(writer).value == planted_items(3)
    assert writer.fs.open_names == {}


@pytest.mark.parametrize("code", [errno.EIO, errno.EBADMSG])
def test_record_whose_content_is_lost_is_replaced_by_a_named_revision(world: World, code: int) -> None:
    """A bad sector under the record, which is its newest slot too: an older revision can be restored.

    Without a name it is refused, since the fault may pass.
    """
    world.plant(3)
    os.unlink(world.slot(3))
    os.link(world.record(), world.slot(3))
    before = world.photograph()
    writer = world.writer()
    for name in ("3.json", "state.json"):
        writer.fs.at("read", name).fail(code).always()
    with pytest.raises(StorageError) as refused:
        recover(writer)
    assert "--revision" in refused.value.hint
    assert world.photograph() == before
    version = recover(writer, 2)
    assert (version.revision, version.value) == (4, planted_items(2))
    assert world.items() == planted_items(2)
    assert list(evidence(world)) == ["state.json.damaged-4"]


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EACCES])
def test_record_whose_read_fails_for_now_is_not_replaced(world: World, code: int) -> None:
    """Descriptors come back and modes can be changed, so the record is as good as it was."""
    world.plant(3)
    before = world.photograph()
    writer = world.writer()
    writer.fs.at("open_read", "state.json").fail(code).always()
    with pytest.raises(StorageError):
        recover(writer, 2)
    assert world.photograph() == before


def test_record_whose_read_fails_once_is_not_replaced(world: World) -> None:
    """The device failed for a moment: a good record would be replaced, and taken for a damaged one."""
    world.plant(3)
    before = world.photograph()
    writer = world.writer()
    writer.fs.at("read", "state.json").fail(errno.EIO)
    with pytest.raises(StorageError) as refused:
        recover(writer, 2)
    assert refused.value.retryable
    assert world.photograph() == before
    assert recover(writer, 2).revision == 4
    assert evidence(world) == {}


# --- what has no second name ----------------------------------------------------------------------


def test_directory_in_place_of_the_record(world: World) -> None:
    """It has no second name, so it is moved aside with all that is in it."""
    world.plant(3)
    directory(world.record())
    put(os.path.join(world.record(), "kept"), b"kept")
    assert recover(world.writer()).revision == 4
    (kept,) = (name for name in os.listdir(world.team()) if name.startswith("state.json.damaged-4-"))
    assert read(os.path.join(world.team(), kept, "kept")) == b"kept"
    assert world.writer().append("next").revision == 5


def test_record_of_another_user(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Systems refuse a second name for somebody else's file, and let the owner of the directory move it."""
    damaged(world, b"theirs")
    theirs = os.stat(world.record()).st_ino

    def foreign(status: os.stat_result) -> os.stat_result:
        fields = list(status)
        fields[4] += status.st_ino == theirs
        return os.stat_result(fields)

    def link(_: object, source: str, source_fd: int, target: str, target_fd: int) -> None:
        if os.stat(source, dir_fd=source_fd).st_ino == theirs:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        os.link(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd)

    system = UnsyncedFileSystem()
    monkeypatch.setattr(UnsyncedFileSystem, "fstat", lambda _, fd: foreign(os.fstat(fd)))
    monkeypatch.setattr(UnsyncedFileSystem, "stat", lambda _, *at: foreign(OsFileSystem.stat(system, *at)))
    monkeypatch.setattr(UnsyncedFileSystem, "link", link)
    assert recover(world.writer()).value == planted_items(3)
    assert list(evidence(world).values()) == [b"theirs"]


@pytest.mark.parametrize("fault", ["fail", "kill", "kill_after"])
def test_each_call_of_a_recovery_from_a_directory(world: World, fault: str) -> None:
    """Refused or killed anywhere: what was there is there, and a repetition restores."""

    def plant(anew: World) -> None:
        anew.plant(3)
        directory(anew.record())

    for index, call, where in each_call(world, plant, recover):
        if fault == "kill_after" and call.method not in CHANGING:
            continue
        writer = world.writer()
        point = writer.fs.at_call(index)
        _ = point.fail(errno.EIO) if fault == "fail" else getattr(point, fault)()
        with contextlib.suppress(StorageError, OutcomeUnknown, Killed):
            recover(writer)
        assert fault != "fail" or writer.fs.open_names == {}, where
        again = world.writer("again")
        with contextlib.suppress(UsageError):
            recover(again)
        assert again.append("next").value == (*planted_items(3), "next"), where
        kept = [name for name in os.listdir(world.team()) if name.startswith(recovery.EVIDENCE_PREFIX)]
        assert [os.path.isdir(os.path.join(world.team(), name)) for name in kept] == [True], where


def test_recovery_from_a_directory_while_another_restores(world: World) -> None:
    """The other has put a good record there before the first moves the directory aside: it is put back."""
    world.plant(3)
    directory(world.record())
    first, second = world.writer("first"), world.writer("second")
    first.fs.at("rename", "state.json -> *").before(lambda: recover(second))
    with pytest.raises(UsageError, match="intact"):
        recover(first)
    assert (world.state().revision, world.items()) == (4, planted_items(3))
    assert world.writer().append("next").revision == 5
    assert len([name for name in os.listdir(world.team()) if "damaged" in name]) == 1


# --- a good record --------------------------------------------------------------------------------


def test_nothing_to_recover(world: World) -> None:
    """The record is good and no revision was named."""
    world.plant(3)
    before = world.photograph()
    with pytest.raises(UsageError, match="intact at revision 3"):
        recover(world.writer())
    assert world.photograph() == before


def test_older_revision_of_a_good_record(world: World) -> None:
    """Like any write: the next revision, with the record as its parent, and no evidence."""
    world.plant(3)
    version = recover(world.writer(), 1)
    assert (version.revision, version.value) == (4, ("r1",))
    assert world.state().slots[4]["previous"]["publication"] == "p3"
    assert evidence(world) == {}
    assert world.writer().append("next").revision == 5


def test_older_revision_with_a_publication_pending(world: World) -> None:
    """What is pending is installed first, so that its owner's success stands in the history."""
    world.plant(3)
    world.plant_pending(4, (*planted_items(3), "dead"), "dead", private=True)
    version = recover(world.writer(), 2)
    assert (version.revision, version.value) == (5, planted_items(2))
    assert world.state().privates == ()


# --- side by side ---------------------------------------------------------------------------------


@pytest.mark.parametrize("pause", ["link state.json*", "create *", f"link {SLOT}"])
def test_two_recoveries_at_once(world: World, pause: str) -> None:
    """The second one does it all while the first sleeps: the first finds the record intact."""
    damaged(world)
    method, _, name = pause.partition(" ")
    first, second = world.writer("first"), world.writer("second")
    first.fs.at(method, name).before(lambda: recover(second))
    with pytest.raises(UsageError, match="intact"):
        recover(first)
    assert world.items() == planted_items(3)
    assert world.writer().append("next").revision == 5


@pytest.mark.parametrize("pause", ["fsync revisions", "stat state.json", f"rename {INSTALL}"])
def test_two_recoveries_after_the_link_of_the_first(world: World, pause: str) -> None:
    """The second builds on the slot of the first, which must not put the record back when it wakes up."""
    damaged(world)
    method, _, name = pause.partition(" ")
    first, second, writer = world.writer("first"), world.writer("second"), world.writer()
    after: list[int] = []

    def go_on() -> None:
        recover(second)
        writer.append("later")
        after.append(world.state().revision)

    first.fs.at("link", SLOT).after(lambda: first.fs.at(method, name).before(go_on))
    assert recover(first).revision == 4
    assert world.state().revision >= after[0]
    assert "later" in world.items()


def test_writer_that_slept_over_a_recovery(world: World) -> None:
    """It is between link and rename when the record is damaged, recovered and pruned far beyond."""
    small = World(os.path.join(os.path.dirname(world.path), "small"), kept=2)
    small.plant(1)
    slow, other = small.writer("slow"), small.writer("other")

    def damage_and_go_on() -> None:
        put(small.record(), b"{")
        recover(other)
        other.append_many(9, "o")

    slow.fs.at("rename", INSTALL).before(damage_and_go_on)
    assert slow.append("slow").revision == 2
    assert small.items() == ("r1", "slow", *(f"o{number}" for number in range(9)))


def test_writer_that_slept_over_pruning_before_its_link_and_over_a_recovery_after_it(world: World) -> None:
    """Its slot was pruned when it was linked, so it is no part of what is restored: it starts again."""
    small = World(os.path.join(os.path.dirname(world.path), "small"), kept=2)
    small.plant(1)
    slow, other = small.writer("slow"), small.writer("other")

    def damage_and_recover() -> None:
        put(small.record(), b"{")
        recover(other)

    slow.fs.at("link", SLOT).before(lambda: other.append_many(9, "o"))
    slow.fs.at("fsync", "revisions").before(damage_and_recover)
    slow.append("slow")
    assert small.items() == ("r1", *(f"o{number}" for number in range(9)), "slow")
    assert small.state().privates == ()


def test_record_repaired_while_a_recovery_is_under_way(world: World) -> None:
    """Somebody puts a good record there before the rename: it is not replaced, and nothing is withdrawn.

    Writers may build on the slot or pass it from that moment on; the next one completes it.
    """
    damaged(world)
    writer = world.writer()

    def repair() -> None:
        os.unlink(world.record())
        os.link(world.slot(3), world.record())

    writer.fs.at("fsync", "revisions").before(repair)
    with pytest.raises(OutcomeUnknown, match="was replaced while it was restored"):
        recover(writer)
    assert (world.state().revision, world.items()) == (3, planted_items(3))
    assert sorted(world.state().slots) == [1, 2, 3, 4]
    assert world.writer("next").append("x").revision == 5
    assert world.items() == (*planted_items(3), "x")
    assert world.state().privates == ()


def test_history_pruned_between_its_listing_and_its_look(world: World) -> None:
    """All that was listed is gone when it is opened: there are newer ones, and the history is not empty."""
    small = World(os.path.join(os.path.dirname(world.path), "small"), kept=2)
    small.plant(1)
    slow, other = small.writer("slow"), small.writer("other")
    slow.fs.at("open_read", "1.json").before(lambda: other.append_many(9, "o"))
    with pytest.raises(UsageError, match=r"revision 1 of team .* is not intact") as refused:
        recover(slow, 1)
    assert "10" in refused.value.hint


def test_writers_stay_out_while_a_recovery_is_under_way(world: World) -> None:
    """Until the record can be read nobody publishes, whatever the recovery has linked."""
    damaged(world)
    recovering, writer = world.writer("r"), world.writer()
    sleeping = Sleeper(lambda: recover(recovering), recovering.fs.at("rename", INSTALL))
    with pytest.raises((RecordCorrupt, RecordMissing)):
        writer.append("x")
    assert sleeping.wake().revision == 4


# --- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["fail", "fail_after", "kill"])
def test_each_call_of_a_recovery(world: World, fault: str) -> None:
    """Refused, unknown or killed anywhere: the evidence or the record is there, and a repetition restores."""
    for index, call, where in each_call(world, lambda anew: damaged(anew, b"damaged"), recover):
        if fault == "fail_after" and call.method not in CHANGING:
            continue
        writer = world.writer()
        point = writer.fs.at_call(index)
        _ = point.kill() if fault == "kill" else getattr(point, fault)(errno.EIO)
        try:
            recover(writer)
        except (StorageError, OutcomeUnknown):
            assert writer.fs.open_names == {}, where
        except Killed:
            pass
        assert b"damaged" in [*evidence(world).values(), read(world.record())], where
        again = world.writer("again")
        try:
            recover(again)
        except UsageError:
            assert world.items() == planted_items(3), where
        assert again.append("next").value == (*planted_items(3), "next"), where
        assert list(evidence(world).values()) == [b"damaged"], where
        assert world.state().privates == () or fault == "kill", where


def test_evidence_and_recovered_record_survive_a_power_cut(world: World) -> None:
    """The evidence is synced before the record is replaced, and the record afterwards."""
    damaged(world)
    writer = world.writer()
    recover(writer)
    calls = [str(call) for call in writer.fs.calls]
    kept = next(index for index, call in enumerate(calls) if call.startswith("link state.json"))
    installed = next(index for index, call in enumerate(calls) if call.endswith("-> state.json"))
    synced = [index for index, call in enumerate(calls) if call == "fsync alpha"]
    assert any(kept < index < installed for index in synced)
    assert any(installed < index for index in synced)


def test_conflict_of_a_recovery_leaves_nothing(world: World) -> None:
    """Its slot is taken: one attempt alone is a conflict, and the damaged record stays."""
    damaged(world)
    writer = world.writer()
    writer.fs.at("link", SLOT).before(lambda: put(world.slot(4), b"?"))
    with writer.open() as team, pytest.raises(Conflict):
        recovery.recover(writer.publisher, team, writer.codec, writer.codec, None)
    assert read(world.record()) == b"{"
    assert [name for name in os.listdir(os.path.dirname(world.slot(1))) if name.endswith(".tmp")] == []


# --- history --------------------------------------------------------------------------------------


def test_history_reports_each_slot(world: World) -> None:
    """Oldest first, with what is wrong where something is; other files are none of it."""
    world.plant(4)
    put(world.slot(2), b"{")
    put(world.slot(3), read(world.slot(3)), 0o640)
    put(world.slot(4) + ".bak", b"?")
    with world.writer().open() as team:
        reports = recovery.history(team, ListCodec())
    assert [report.revision for report in reports] == [1, 2, 3, 4]
    assert [report.version is not None for report in reports] == [True, False, False, True]
    assert [bool(report.fault) for report in reports] == [False, True, True, False]
    assert reports[3].publication is not None
    assert reports[3].publication.id == "p4"


def test_history_that_is_pruned_while_it_is_read(world: World) -> None:
    """A slot that goes between listing and reading is no report."""
    world.plant(4)
    writer = world.writer()
    writer.fs.at("open_read", "2.json").before(functools.partial(os.unlink, world.slot(2)))
    with writer.open() as team:
        assert [report.revision for report in recovery.history(team, ListCodec())] == [1, 3, 4]


def test_history_of_a_team_without_one(world: World) -> None:
    """A legacy team has no revisions."""
    os.mkdir(world.team(), 0o700)
    put(world.record(), payload_text(("old",)))
    with world.writer().open() as team:
        assert recovery.history(team, ListCodec()) == []
    assert world.writer().attempt(unchanged).revision == 0

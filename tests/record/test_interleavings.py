"""What each rule of docs/protocol.md prevents, as an interleaving of two writers on the real code.

A writer is paused at one system call while others run; no lock holds them back, as if each lock had been
stolen from its paused holder. A control runs the same interleaving with the rule taken out and must
find the damage that the rule prevents.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from interposition import InterposedFileSystem, Killed, ReusingFileSystem, Sleeper
from pi_team.errors import OutcomeUnknown, StorageError
from pi_team.record import publication, reading
from pi_team.record.attempt import Attempt, Conflict
from pi_team.record.filesystem import OsFileSystem
from pi_team.record.publication import Publisher, Scan
from worlds import Items, World, appending, put, read, unchanged

if TYPE_CHECKING:
    from pathlib import Path

    from pi_team.record.directory import TeamDirectory
    from pi_team.record.envelope import Envelope
    from pi_team.record.reading import Codec, Pinned, Version

PRIVATE_TO_SLOT = ".*.tmp -> *.json"
INSTALL = ".*.tmp -> state.json"


def far_ahead(world: World) -> None:
    """Another writer goes on until everything that stood there has been pruned."""
    world.writer("other").append_many(2 * world.kept + 3, "o")


def others(world: World) -> Items:
    return tuple(f"o{number}" for number in range(2 * world.kept + 3))


@pytest.fixture
def small(root: Path) -> World:
    """A team whose history keeps two revisions, so that pruning is near."""
    world = World(str(root), kept=2)
    world.plant(1)
    return world


# --- exclusive link -------------------------------------------------------------------------------


def rename_copy(source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
    """Put a copy of a file where another bears the name, leaving the source."""
    fd = os.open(source, os.O_RDONLY, dir_fd=source_dir_fd)
    copy = os.open(".copy", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=target_dir_fd)
    os.write(copy, os.read(fd, 1 << 20))
    os.close(copy)
    os.close(fd)
    os.rename(".copy", target, src_dir_fd=target_dir_fd, dst_dir_fd=target_dir_fd)


class ReplacingLink(OsFileSystem):
    """A control: `link` replaces what bears the name, as an older peer's rename into the slot does."""

    def link(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        rename_copy(source, source_dir_fd, target, target_dir_fd)


@pytest.mark.parametrize("pause", ["create", "write", "fsync", "link"])
def test_thief_publishes_same_revision_before_the_paused_writer_links(world: World, pause: str) -> None:
    """Both build revision 2 on revision 1; the thief links first, and the paused one starts again."""
    world.plant(1)
    paused, thief = world.writer("paused"), world.writer("thief")
    name = PRIVATE_TO_SLOT if pause == "link" else ".*.tmp"
    paused.fs.at(pause, name).before(lambda: thief.append("thief"))
    assert paused.append("paused").revision == 3
    assert world.items() == ("r1", "thief", "paused")
    assert world.state().privates == ()


def test_thief_links_the_same_slot_while_the_first_is_between_link_and_rename(world: World) -> None:
    """The thief comes when the first has linked revision 2: it installs that and takes revision 3."""
    world.plant(1)
    paused, thief = world.writer("paused"), world.writer("thief")
    paused.fs.at("rename", INSTALL).before(lambda: thief.append("thief"))
    assert paused.append("paused").revision == 2
    assert world.items() == ("r1", "paused", "thief")


def test_without_an_exclusive_link_an_acknowledged_update_is_lost(world: World) -> None:
    """Control: where `link` replaces, writer and thief both publish revision 2 and one of them vanishes."""
    world.plant(1)
    paused, thief = world.writer("paused", ReplacingLink()), world.writer("thief", ReplacingLink())
    sleeping = Sleeper(lambda: paused.append("paused"), paused.fs.at("link", PRIVATE_TO_SLOT))
    thief.fs.at("rename", INSTALL).before(sleeping.wake)
    assert thief.append("thief").revision == 2
    assert world.items() == ("r1", "thief"), "the acknowledged item of the paused writer is gone"


def test_both_are_paused_around_their_links_of_the_same_slot(world: World) -> None:
    """As in the control, with an exclusive link: the second gets EEXIST, helps, and takes revision 3."""
    world.plant(1)
    paused, thief = world.writer("paused"), world.writer("thief")
    sleeping = Sleeper(lambda: paused.append("paused"), paused.fs.at("link", PRIVATE_TO_SLOT))
    thief.fs.at("rename", INSTALL).before(sleeping.wake)
    assert thief.append("thief").revision == 2
    assert world.items() == ("r1", "thief", "paused")


# --- step 7: a writer that slept while the history was pruned ----------------------------------------


def test_sleeping_over_pruning_before_the_link(small: World) -> None:
    """The slept writer takes a slot that was pruned and is free again: it withdraws and starts anew."""
    slow = small.writer("slow")
    slow.fs.at("link", PRIVATE_TO_SLOT).before(lambda: far_ahead(small))
    slow.append("slow")
    assert small.items() == ("r1", *others(small), "slow")
    assert 2 not in small.state().slots
    assert small.state().privates == ()


def test_an_attempt_that_slept_over_pruning_is_a_conflict(small: World) -> None:
    """One attempt alone: its slot and its private file are gone again, the record was not touched."""
    slow = small.writer("slow")
    slow.fs.at("link", PRIVATE_TO_SLOT).before(lambda: far_ahead(small))
    with pytest.raises(Conflict):
        slow.attempt(appending("slow"))
    assert small.items() == ("r1", *others(small))
    assert slow.fs.names("unlink") == ["unlink 2.json", next(iter(slow.fs.names("unlink", ".*.tmp")))]


def test_without_step_7_the_record_goes_back(small: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a writer that goes on without looking puts the record back by a whole history."""
    monkeypatch.setattr(Attempt, "verify", lambda _self: True)
    slow = small.writer("slow")
    slow.fs.at("link", PRIVATE_TO_SLOT).before(lambda: far_ahead(small))
    assert slow.append("slow").revision == 2
    assert small.items() == ("r1", "slow"), "every item of the other writer is gone"


@pytest.mark.parametrize("pause", ["fsync revisions", "stat state.json", f"rename {INSTALL}"])
def test_sleeping_over_pruning_after_the_link(small: World, pause: str) -> None:
    """Slept at step 6, at step 7 and between 7 and 8: the next writer has installed it, and all went on."""
    method, _, name = pause.partition(" ")
    slow = small.writer("slow")

    def sleep() -> None:
        slow.fs.at(method, name).before(lambda: far_ahead(small))

    slow.fs.at("link", PRIVATE_TO_SLOT).after(sleep)
    assert slow.append("slow").revision == 2
    assert small.items() == ("r1", "slow", *others(small))
    assert small.state().privates == ()


def test_slot_reused_by_another_while_the_writer_was_at_step_7(small: World) -> None:
    """The slot bears another's id when the slept writer withdraws: it removes only its private file."""
    slow, late = small.writer("slow"), small.writer("late")

    def reuse() -> None:
        # An older peer overwrites the slot of the writer that sleeps at step 7.
        text = read(small.slot(2)).decode()
        put(small.slot(2), text.replace('"publication":{"id":"', '"publication":{"id":"other-'))

    slow.fs.at("link", PRIVATE_TO_SLOT).before(lambda: far_ahead(small))
    slow.fs.at("stat", ".*.tmp").before(reuse)
    with pytest.raises(Conflict):
        slow.attempt(appending("slow"))
    assert 2 in small.state().slots, "another's slot entry stays"
    assert small.state().privates == ()
    late.append("late")
    assert small.items() == ("r1", *others(small), "late")


# --- consuming rename -----------------------------------------------------------------------------


class CopyingRename(OsFileSystem):
    """A control: installs a copy of the private file, so that it can be installed twice."""

    def rename(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        rename_copy(source, source_dir_fd, target, target_dir_fd)


def test_without_a_consuming_rename_an_installed_revision_is_put_back(world: World) -> None:
    """Control: the slept writer renames its copy over what was published after its own revision."""
    world.plant(1)
    slow, other = world.writer("slow", CopyingRename()), world.writer("other", CopyingRename())
    slow.fs.at("rename", INSTALL).before(lambda: [other.append("a"), other.append("b")])
    assert slow.append("slow").revision == 2
    assert world.items() == ("r1", "slow"), "two acknowledged items are gone"


def test_helper_and_owner_install_at_once(world: World) -> None:
    """A helper is about to rename when the owner does: the helper sees the record moved and starts again."""
    world.plant(1)
    owner, helper = world.writer("owner"), world.writer("helper")
    owner.fs.at("rename", INSTALL).kill()
    with pytest.raises(Killed):
        owner.append("owner")
    other = world.writer("other")
    helper.fs.at("rename", INSTALL).before(lambda: other.append("other"))
    assert helper.append("helper").revision == 4
    assert world.items() == ("r1", "owner", "other", "helper")


def test_private_file_vanishes_between_listing_and_rename_of_the_helper(world: World) -> None:
    """As above, paused right after the listing: the rename finds nothing, the record has moved."""
    world.plant(1)
    world.plant_pending(2, ("r1", "dead"), "pending", private=True)
    helper, other = world.writer("helper"), world.writer("other")
    helper.fs.at("listdir", "revisions").after(lambda: other.append("other"))
    helper.append("helper")
    assert world.items() == ("r1", "dead", "other", "helper")
    assert any(call.error == "ENOENT" for call in helper.fs.calls if call.method == "rename")


# --- helping --------------------------------------------------------------------------------------


def killed_between_link_and_rename(world: World, item: str = "dead") -> None:
    writer = world.writer("dead")
    writer.fs.at("rename", INSTALL).kill()
    with pytest.raises(Killed):
        writer.append(item)


def test_next_writer_helps_one_killed_between_link_and_rename(world: World) -> None:
    """Revision 2 is linked and its writer dead: the next writer installs it and publishes revision 3."""
    world.plant(1)
    killed_between_link_and_rename(world)
    assert world.state().revision == 1
    assert world.writer("next").append("next").revision == 3
    assert world.items() == ("r1", "dead", "next")


def test_without_helping_the_team_is_blocked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a writer that does not look above the record finds its slot taken for ever."""
    world.plant(1)
    killed_between_link_and_rename(world)

    def scan(
        _self: Publisher, _team: TeamDirectory, _codec: Codec[Items], pinned: Pinned[Items], **_: bool
    ) -> Scan[Items]:
        return Scan(pinned.version, pinned.version.revision + 1, detour=False)

    monkeypatch.setattr(Publisher, "scan", scan)
    for _ in range(5):
        with pytest.raises(Conflict):
            world.writer("next").attempt(appending("next"))


# --- previous -------------------------------------------------------------------------------------


def branch_above(world: World) -> None:
    """After a power cut: slot 3 survived and slot 2, its parent, did not; then another revision 2 came."""
    world.plant(1)
    killed_between_link_and_rename(world, "lost")
    world.plant_pending(3, ("r1", "lost", "child"), "child", private=True)
    os.unlink(world.slot(2))
    for name in world.state().privates:
        if "child" not in name:
            os.unlink(os.path.join(world.team(), "revisions", name))


def test_slot_of_a_lost_parent_is_skipped(world: World) -> None:
    """Slot 3 continues a revision 2 that the power cut took; it is no successor of the new revision 2."""
    branch_above(world)
    writer = world.writer()
    assert writer.append("new").revision == 2
    assert writer.append("newer").revision == 4
    assert world.items() == ("r1", "new", "newer")
    assert world.state().slots[3]["payload"]["items"] == ["r1", "lost", "child"], "kept as evidence"


def test_without_previous_an_acknowledged_write_is_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control: whatever stands in the next slot is taken for the successor of the new branch."""
    real = Publisher._successor

    def successor(
        self: Publisher,
        team: TeamDirectory,
        codec: Codec[Items],
        found: Envelope,
        base: Version[Items],
    ) -> Version[Items] | None:
        assert found.previous is not None
        as_if = reading.Version(base.revision, found.previous, base.value, base.extra)
        return real(self, team, codec, found, as_if)

    monkeypatch.setattr(Publisher, "_successor", successor)
    branch_above(world)
    writer = world.writer()
    writer.append("new")
    writer.append("newer")
    assert "new" not in world.items()


# --- adopting -------------------------------------------------------------------------------------


def test_slot_without_its_private_file_is_adopted(world: World) -> None:
    """A power cut took the private file and not the slot: its content is the base of the next revision."""
    world.plant(1)
    world.plant_pending(2, ("r1", "acknowledged"), "orphan", private=False)
    assert world.writer().append("next").revision == 3
    assert world.items() == ("r1", "acknowledged", "next")


def test_without_adopting_an_acknowledged_write_is_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control: a slot whose private file is gone is skipped, and with it what it holds."""
    monkeypatch.setattr(Publisher, "_successor", lambda *_: None)
    world.plant(1)
    world.plant_pending(2, ("r1", "acknowledged"), "orphan", private=False)
    world.writer().append("next")
    assert "acknowledged" not in world.items()


@pytest.mark.parametrize("orphans", [1, 2, 3])
def test_operation_that_changes_nothing_still_publishes_what_it_adopted(world: World, orphans: int) -> None:
    """Readers and older peers must get past adopted slots, so the unchanged payload is published."""
    world.plant(1)
    for number in range(orphans):
        items = ("r1", *(f"a{n}" for n in range(number + 1)))
        world.plant_pending(2 + number, items, f"orphan{number}", private=False)
    version = world.writer().attempt(unchanged)
    assert version.revision == world.state().revision == 2 + orphans
    assert world.items() == ("r1", *(f"a{n}" for n in range(orphans)))


def test_operation_that_changes_nothing_writes_nothing(world: World) -> None:
    """With nothing above the record, an unchanged payload is no publication."""
    world.plant(1)
    before = world.photograph()
    writer = world.writer()
    assert writer.attempt(unchanged).revision == 1
    assert world.photograph() == before
    assert not writer.fs.names("create")


def test_without_publishing_after_an_adoption_readers_stay_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control: what adopts and changes nothing leaves the record behind an acknowledged write."""
    monkeypatch.setattr(Publisher, "_apply", lambda *arguments: arguments[-1].base)
    world.plant(1)
    world.plant_pending(2, ("r1", "acknowledged"), "orphan", private=False)
    world.writer().attempt(unchanged)
    assert "acknowledged" not in world.items()


# --- nothing is withdrawn -------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["fsync revisions", f"rename {INSTALL}"])
def test_failure_after_the_link_is_an_unknown_outcome_and_completed_by_the_next(
    world: World, step: str
) -> None:
    """The files stay; the next writer installs the publication, once, exactly as after a crash."""
    method, _, name = step.partition(" ")
    world.plant(1)
    writer = world.writer()
    writer.fs.at(method, name).fail(errno.EIO)
    with pytest.raises(OutcomeUnknown):
        writer.append("unknown")
    assert len(world.state().privates) == 1
    world.writer("next").append("next")
    assert world.items() == ("r1", "unknown", "next")
    assert world.state().privates == ()


def test_withdrawing_with_a_helper_under_way_loses_an_acknowledged_write(world: World) -> None:
    """Control: the writer removes its files after a failure while a helper is between check and rename."""
    world.plant(1)
    writer, helper, third = world.writer("w"), world.writer("helper"), world.writer("third")

    def withdraw() -> None:
        # What the rule forbids: the failed writer takes its slot back; a third one reuses it.
        os.unlink(world.slot(2))
        third.append("acknowledged")

    writer.fs.at("rename", INSTALL).fail(errno.EIO)
    with pytest.raises(OutcomeUnknown):
        writer.append("withdrawn")
    helper.fs.at("rename", INSTALL).before(withdraw)
    helper.append("helper")
    assert "acknowledged" not in world.items()


# --- the order of syncs ---------------------------------------------------------------------------


def position(fs: InterposedFileSystem, method: str, name: str, nth: int = 1) -> int:
    """Where in the calls the n-th fitting one is."""
    wanted = fs.names(method, name)[nth - 1]
    at = [index for index, call in enumerate(fs.calls) if f"{call.method} {call.name}" == wanted]
    return at[nth - 1] if len(at) >= nth else at[0]


def test_private_file_is_synced_before_it_is_linked_and_the_slot_before_it_is_installed(world: World) -> None:
    """Steps 4 to 8: what a reader sees in the record survives a power cut as a slot already."""
    world.plant(1)
    writer = world.writer()
    fs = writer.fs
    writer.append("x")
    order = [
        position(fs, "create", ".*.tmp"),
        position(fs, "write", ".*.tmp"),
        position(fs, "fsync", ".*.tmp"),
        position(fs, "link", PRIVATE_TO_SLOT),
        position(fs, "fsync", "revisions"),
        position(fs, "rename", INSTALL),
    ]
    assert order == sorted(order)


def test_helper_checks_and_syncs_before_it_installs(world: World) -> None:
    """A helper's rename must not show what a power cut could still take back."""
    world.plant(1)
    world.plant_pending(2, ("r1", "dead"), "pending", private=True)
    helper = world.writer()
    helper.attempt(unchanged)
    check = position(helper.fs, "stat", "state.json")
    assert check < position(helper.fs, "fsync", "revisions") < position(helper.fs, "rename", INSTALL)


def test_helper_that_cannot_sync_installs_nothing(world: World) -> None:
    """Where the slot cannot be made durable the helper's own operation is refused, cleanly."""
    world.plant(1)
    world.plant_pending(2, ("r1", "dead"), "pending", private=True)
    before = world.photograph()
    helper = world.writer()
    helper.fs.at("fsync", "revisions").fail(errno.EIO)
    with pytest.raises(StorageError):
        helper.append("helper")
    assert world.photograph() == before


# --- pinning --------------------------------------------------------------------------------------


def test_reused_inode_number_does_not_pass_for_an_unchanged_record(small: World) -> None:
    """The record that was read is replaced and freed; its number cannot be reused while it is pinned."""
    kernel = ReusingFileSystem()
    slow, other = small.writer("slow", kernel), small.writer("other", kernel)
    slow.fs.at("link", PRIVATE_TO_SLOT).before(lambda: other.append_many(2 * small.kept + 3, "o"))
    slow.append("slow")
    assert small.items() == ("r1", *others(small), "slow")
    kernel.close_pins()


def test_without_pinning_a_reused_number_passes_for_an_unchanged_record(
    small: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control: the writer compares with the number that it noted, and lets go of the file."""
    kernel = ReusingFileSystem()
    slow, other = small.writer("slow", kernel), small.writer("other", kernel)
    real = reading.pin_record

    def unpinned(directory: TeamDirectory, codec: Codec[Items]) -> Pinned[Items]:
        pinned = real(directory, codec)
        if directory.fs is slow.fs:
            kernel.close(pinned.fd)  # lets go of it; the descriptor number is left dangling
            os.dup2(os.open(os.devnull, os.O_RDONLY), pinned.fd)
        return pinned

    monkeypatch.setattr(publication, "pin_record", unpinned)
    monkeypatch.setattr(
        publication,
        "is_unchanged",
        lambda team, pinned: team.fs.stat("state.json", team.fd).st_ino == pinned.status.st_ino,
    )

    def until_reused() -> None:
        wanted = slow.fs.inner.stat(small.record()).st_ino
        for number in range(50):
            other.append(f"o{number}")
            if number > 2 * small.kept and kernel.stat(small.record()).st_ino == wanted:
                return
        pytest.fail("the number was never reused")

    slow.fs.at("link", PRIVATE_TO_SLOT).before(until_reused)
    slow.append("slow")
    assert small.items() == ("r1", "slow"), "the record went back"

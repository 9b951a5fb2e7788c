"""Deleting a team: it is there or it is gone, with a tombstone at most, and nothing brings it back."""

from __future__ import annotations

import errno
import functools
import os
from typing import TYPE_CHECKING

import pytest

from cut_short import die_before, each_call, killed_before_each_call, outcome
from interposition import CHANGING, Sleeper
from pi_team.errors import (
    OutcomeUnknown,
    PiTeamError,
    RecordCorrupt,
    RecordMissing,
    RecordUnsafe,
    StorageError,
    TeamActive,
    TeamMoved,
    TeamUnknown,
    UnsupportedFilesystem,
    UnsupportedSchema,
)
from pi_team.tree import remove_tree
from worlds import TEAM, World, Writer, envelope_text, payload_text, put

if TYPE_CHECKING:
    from collections.abc import Callable

PUBLISHED = ".*.tmp -> state.json"
LINKED = ".*.tmp -> *.json"


def settled(world: World) -> None:
    world.plant(3)
    put(os.path.join(world.team(), "presence", "a.json"), b"{}")


def pending(world: World) -> None:
    world.plant(3)
    world.plant_pending(4, ("r1", "r2", "r3", "pending"), "pending", private=True)


BEGINNINGS = {"settled": settled, "one publication pending": pending}


# --- the whole of it ------------------------------------------------------------------------------


def test_deleted_team(world: World) -> None:
    """Nothing is left of it, not even a lock, and the name is free."""
    settled(world)
    writer = Writer(world, "w", locked=True)
    writer.delete()
    assert world.names() == []
    assert os.listdir(os.path.join(world.path, ".locks")) == []
    with pytest.raises(TeamUnknown):
        writer.delete()
    writer.create()
    assert world.items() == ()


def test_living_member_refuses(world: World) -> None:
    """What was swept for the decision is published, then it is refused."""
    world.plant(1, items=("r1", "dead:x", "alive:y"))
    with pytest.raises(TeamActive):
        world.writer().delete()
    assert world.names() == [TEAM]
    assert world.items() == ("r1", "alive:y")


def test_pending_publication_of_a_member_that_joins_refuses(world: World) -> None:
    """A writer was killed between link and rename, and what it published is a joining."""
    world.plant(1)
    world.plant_pending(2, ("r1", "alive:y"), "pending", private=True)
    with pytest.raises(TeamActive):
        world.writer().delete()
    assert world.items() == ("r1", "alive:y")


UNREADABLE: dict[str, tuple[Callable[[World], None], type[PiTeamError]]] = {
    "damaged": (lambda world: put(world.record(), b"{"), RecordCorrupt),
    "missing": (lambda world: os.unlink(world.record()), RecordMissing),
    "group-readable": (lambda world: os.chmod(world.record(), 0o640), RecordUnsafe),
    "of a newer release": (
        lambda world: put(world.record(), envelope_text(9, payload_text(()), schema=2)),
        UnsupportedSchema,
    ),
    "half renamed": (lambda world: put(world.record(), payload_text((), "gamma")), RecordCorrupt),
}


@pytest.mark.parametrize(("spoil", "expected"), UNREADABLE.values(), ids=UNREADABLE)
def test_team_whose_record_cannot_be_read(
    world: World, spoil: Callable[[World], None], expected: type[PiTeamError]
) -> None:
    """It goes only when that was asked for, since nobody can tell whether its members live."""
    world.plant(2)
    spoil(world)
    before = world.photograph()
    with pytest.raises(expected) as refused:
        world.writer().delete()
    assert "pi-team delete alpha --damaged" in refused.value.hint
    assert world.photograph() == before
    world.writer().delete(damaged=True)
    assert world.names() == []


def test_team_whose_record_is_on_a_bad_sector(world: World) -> None:
    """The device has lost it, so nobody can be asked for: it goes where damage is allowed."""
    world.plant(1, items=("alive:x",))
    writer = world.writer()
    writer.fs.at("read", "state.json").fail(errno.EIO).always()
    with pytest.raises(StorageError) as refused:
        writer.delete()
    assert "pi-team delete alpha --damaged" in refused.value.hint
    writer.delete(damaged=True)
    assert world.names() == []


@pytest.mark.parametrize(("method", "code"), [("open_read", errno.EMFILE), ("read", errno.EIO)])
def test_record_that_cannot_be_read_for_now_is_no_damage(world: World, method: str, code: int) -> None:
    """No descriptor is left, or the device fails once: a team with living members is no damaged one."""
    world.plant(1, items=("alive:x",))
    writer = world.writer()
    writer.fs.at(method, "state.json").fail(code)
    with pytest.raises(StorageError):
        writer.delete(damaged=True)
    assert world.names() == [TEAM]


def test_good_team_is_judged_also_when_damage_is_allowed(world: World) -> None:
    """`--damaged` is no way to delete a team with living members."""
    world.plant(1, items=("alive:x",))
    with pytest.raises(TeamActive):
        world.writer().delete(damaged=True)
    assert world.names() == [TEAM]


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EBUSY])
def test_directory_that_cannot_be_moved(world: World, code: int) -> None:
    """Nothing is removed."""
    settled(world)
    before = world.photograph()
    writer = world.writer()
    writer.fs.at("rename", "alpha -> .deleted-*").fail(code)
    with pytest.raises(UnsupportedFilesystem):
        writer.delete()
    assert world.photograph() == before


def test_unsafe_directories(world: World) -> None:
    """Nothing is moved or removed where others could write."""
    settled(world)
    os.chmod(world.path, 0o755)
    before = world.photograph()
    with pytest.raises(RecordUnsafe):
        Writer(world, "w", locked=True).delete()
    assert world.photograph() == before


def test_links_in_the_team_are_not_followed(world: World) -> None:
    """What a link in the tree leads to stays."""
    settled(world)
    keep = os.path.join(os.path.dirname(world.path), "keep")
    os.mkdir(keep)
    put(os.path.join(keep, "file"), b"x")
    os.symlink(keep, os.path.join(world.team(), "link"))
    os.symlink(os.path.join(keep, "file"), os.path.join(world.team(), "presence", "link"))
    os.mkdir(os.path.join(world.team(), "deep"))
    os.mkdir(os.path.join(world.team(), "deep", "er"))
    world.writer().delete()
    assert world.names() == []
    assert os.listdir(keep) == ["file"]


def test_tombstone_is_synced_before_anything_is_removed(world: World) -> None:
    """After a power cut readers see the whole team or none."""
    settled(world)
    writer = world.writer()
    writer.delete()
    calls = [f"{call.method} {call.name}" for call in writer.fs.calls]
    moved = next(index for index, call in enumerate(calls) if call.startswith("rename alpha"))
    removed = min(index for index, call in enumerate(calls) if call.startswith("unlink "))
    assert any(moved < index < removed for index, call in enumerate(calls) if call == f"fsync {world.path}")


# --- stopped anywhere -----------------------------------------------------------------------------


@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=BEGINNINGS)
def test_killed_before_each_call(world: World, beginning: Callable[[World], None]) -> None:
    """The whole team or a tombstone; a new team of that name can be created next to it."""
    seen = set()
    for where in killed_before_each_call(world, beginning, Writer.delete):
        if world.names() == [TEAM]:
            seen.add("there")
            assert world.items()[:3] == ("r1", "r2", "r3"), where
            world.writer().delete()
        else:
            seen.add("gone")
            assert all(name.startswith(".deleted-alpha-") for name in world.names()), where
            assert len(world.names()) <= 1, where
        for refused in (
            world.writer().delete,
            world.writer().reader().read,
            lambda: world.writer().append("x"),
        ):
            with pytest.raises(TeamUnknown):
                refused()
        assert world.writer().store.names() == [], where
        world.writer().create()
        assert world.writer().append("x").value == ("x",), where
    assert seen == {"there", "gone"}


@pytest.mark.parametrize(
    ("method", "name"),
    [("rename", "alpha -> *"), ("fsync", "*/teams"), ("unlink", "state.json"), ("rmdir", ".deleted-*")],
)
def test_really_killed(world: World, method: str, name: str) -> None:
    """As above with a process that dies, its locks in place: the next one does not wait."""
    settled(world)
    die_before(world, Writer.delete, method, name)
    writer = Writer(world, "next", locked=True)
    if method == "rename":
        writer.delete()
    writer.create()
    assert writer.clock.monotonic() < 0.2
    assert world.items() == ()


@pytest.mark.parametrize("fault", ["fail", "fail_after"])
@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=BEGINNINGS)
def test_each_call_refused(world: World, beginning: Callable[[World], None], fault: str) -> None:
    """Refused with the team whole, or gone; never a team of which a part is missing."""
    for index, call, where in each_call(world, beginning, Writer.delete):
        if fault == "fail_after" and call.method not in CHANGING:
            continue
        writer = world.writer()
        point = writer.fs.at_call(index)
        _ = getattr(point, fault)(errno.EIO)
        answer = outcome(writer.delete)
        said = f"{where}: {answer!r}"
        assert isinstance(answer, StorageError | OutcomeUnknown | TeamMoved | None), said
        assert point.reached, said
        assert writer.fs.open_names == {}, said
        if TEAM in world.names():
            assert answer is not None, said
            assert world.items()[:3] == ("r1", "r2", "r3"), said
            assert list(world.state().slots)[:3] == [1, 2, 3], said
            assert world.writer().append("goes on").value[-1] == "goes on", said
            world.writer().delete()
        elif answer is not None:
            assert "Nothing was changed" not in getattr(answer, "hint", ""), said
        assert TEAM not in world.names(), said


# --- others at work -------------------------------------------------------------------------------


def delete_around(world: World, index: int, sleeping: Sleeper) -> tuple[BaseException | None, ...]:
    """Delete, and wake the paused writer at one call of it, or at its end; the errors of both."""
    answers: list[BaseException | None] = []
    deleter = world.writer("deleter")
    deleter.fs.at_call(index).before(lambda: answers.append(outcome(sleeping.wake)))
    refusal = outcome(deleter.delete)
    if not answers:
        answers.append(outcome(sleeping.wake))
    return refusal, answers[0]


STAGES = {
    "before its private file": ("create", ".*.tmp"),
    "before its link": ("link", LINKED),
    "between its link and its rename": ("rename", PUBLISHED),
    "before its last look": ("stat", "*/alpha"),
}


@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)
def test_late_writer_cannot_bring_it_back(world: World, stage: tuple[str, str]) -> None:
    """It writes into the tombstone, if anywhere: it is told, and neither team nor tombstone stay."""
    for index, _, where in each_call(world, settled, Writer.delete):
        writer = world.writer("late")
        sleeping = Sleeper(
            functools.partial(writer.append, "late"), writer.fs.at(*stage, nth=2 if stage[0] == "stat" else 1)
        )
        refusal, answer = delete_around(world, index, sleeping)
        said = f"{where}: {refusal!r}, {answer!r}"
        assert refusal is None, said
        assert isinstance(answer, TeamUnknown | TeamMoved | None), said
        assert world.names() == [], said
        assert writer.fs.open_names == {}, said


@pytest.mark.parametrize("stage", ["before its link", "between its link and its rename"])
def test_member_that_joins_meanwhile_moves_the_team_back(world: World, stage: str) -> None:
    """The second look sees it: the team is back as it was, with its new member; or the joining is refused."""
    ends = set()
    for index, _, where in each_call(world, settled, Writer.delete):
        writer = world.writer("late")
        sleeping = Sleeper(functools.partial(writer.append, "alive:z"), writer.fs.at(*STAGES[stage]))
        refusal, answer = delete_around(world, index, sleeping)
        said = f"{where}: {refusal!r}, {answer!r}"
        if isinstance(refusal, TeamActive):
            ends.add("moved back")
            assert world.names() == [TEAM], said
            assert world.items() == ("r1", "r2", "r3", "alive:z"), said
            assert os.listdir(os.path.join(world.team(), "presence")) == ["a.json"], said
        else:
            ends.add("deleted")
            assert refusal is None, said
            assert isinstance(answer, TeamUnknown | TeamMoved), said
            assert world.names() == [], said
    assert ends == ({"moved back", "deleted"} if stage == "before its link" else {"moved back"})


def test_team_replaced_at_any_call_of_the_deletion(world: World) -> None:
    """What took the name meanwhile stays, unless it did so before the deletion opened the team."""
    for index, _, where in each_call(world, settled, Writer.delete):
        deleter = world.writer("deleter")
        replaced: list[bool] = []

        def replace(replaced: list[bool] = replaced) -> None:
            if os.path.exists(world.team()):
                world.replace_team()
                replaced.append(True)

        deleter.fs.at_call(index).before(replace)
        answer = outcome(deleter.delete)
        said = f"{where}: {answer!r}"
        if answer is None:
            assert TEAM not in world.names(), said
            assert not replaced or index < 5, said
        else:
            assert isinstance(answer, TeamMoved), said
            assert world.items() == ("new",), said


def test_two_processes_delete_at_once(world: World) -> None:
    """With the locks stolen the second does it all at any call of the first: the team is gone for both."""
    for index, _, where in each_call(world, settled, Writer.delete):
        first, second = world.writer("first"), world.writer("second")
        first.fs.at_call(index).before(functools.partial(outcome, second.delete))
        answer = outcome(first.delete)
        said = f"{where}: {answer!r}"
        assert isinstance(answer, TeamUnknown | TeamMoved | None), said
        assert world.names() == [], said


def test_deletion_that_waited_while_the_team_was_deleted(world: World) -> None:
    """It opened the team and waited for the lock until somebody else was done: TEAM_MOVED, not STORAGE."""
    settled(world)
    writer = Writer(world, "w", locked=True)
    writer.fs.at("create", "state.json.lock").before(lambda: world.writer("other").delete())
    with pytest.raises(TeamMoved):
        writer.delete()
    settled(world)
    writer = Writer(world, "w", locked=True)
    writer.fs.at("open_dir", "*/.locks").before(lambda: world.writer("other").delete())
    with pytest.raises(TeamMoved):
        writer.delete()


def test_observers_at_each_call(world: World) -> None:
    """A reader sees the whole team or none of it, and the list of teams agrees."""
    for index, _, where in each_call(world, settled, Writer.delete):
        deleter = world.writer("deleter")

        def look(where: str = where) -> None:
            answer = outcome(world.writer().reader(helping=False).read)
            there = TEAM in world.names()
            assert isinstance(answer, TeamUnknown | None), where
            assert (answer is None) == there, where
            assert world.writer().store.names() == ([TEAM] if there else []), where

        deleter.fs.at_call(index).before(look)
        deleter.delete()
        look()


# --- removing a tree ------------------------------------------------------------------------------


def test_late_file_in_a_tree_that_is_removed(world: World) -> None:
    """Something is put in between the last look and the removal of the directory: it goes as well."""
    os.mkdir(os.path.join(world.path, "tree"))
    writer = world.writer()
    late = iter(range(5))

    def put_in() -> None:
        for number in late:
            put(os.path.join(world.path, "tree", f"late{number}"), b"")
            return

    writer.fs.at("rmdir", "tree").before(put_in).always()
    fd = os.open(world.path, os.O_RDONLY)
    remove_tree(writer.fs, "tree", fd)
    remove_tree(writer.fs, "tree", fd)
    os.close(fd)
    assert world.names() == []
    assert writer.fs.open_names == {}


def deep(path: str, levels: int) -> None:
    """Make directories inside one another, in each of them a file."""
    fd = os.open(path, os.O_RDONLY)
    for _ in range(levels):
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd))
        os.mkdir("deeper", 0o700, dir_fd=fd)
        inner = os.open("deeper", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)


def test_tree_deeper_than_any_stack_or_table_of_descriptors(world: World) -> None:
    """Somebody put 1,200 directories inside one another into a team: it goes with few descriptors open."""
    world.plant(1)
    deep(os.path.join(world.team(), "presence"), 1_200)
    writer = world.writer()
    most = 0

    def count() -> None:
        nonlocal most
        most = max(most, len(writer.fs.open_names))

    writer.fs.at("listdir").before(count).always()
    writer.delete()
    assert world.names() == []
    assert writer.fs.open_names == {}
    assert 0 < most < 10


def test_link_and_sealed_directory_deep_in_a_tree(world: World) -> None:
    """What a link leads to stays; an empty directory that nobody may write into goes in place."""
    elsewhere = os.path.join(world.path, "elsewhere")
    os.makedirs(os.path.join(elsewhere, "kept"))
    tree = os.path.join(world.path, "tree")
    os.makedirs(os.path.join(tree, "a", "b", "c", "d"))
    os.symlink(elsewhere, os.path.join(tree, "a", "b", "link"))
    os.mkdir(os.path.join(tree, "a", "b", "sealed"), 0o500)
    writer = world.writer()
    fd = os.open(world.path, os.O_RDONLY)
    remove_tree(writer.fs, "tree", fd)
    os.close(fd)
    assert world.names() == ["elsewhere"]
    assert os.listdir(elsewhere) == ["kept"]
    assert [name.split(" -> ")[0] for name in writer.fs.names("rename")] == ["rename b", "rename c"]


def test_tree_that_somebody_goes_on_writing_into(world: World) -> None:
    """It is given up after a hundred rounds, and said so."""
    os.mkdir(os.path.join(world.path, "tree"))
    writer = world.writer()
    writer.fs.at("rmdir").before(lambda: put(os.path.join(world.path, "tree", "late"), b"")).always()
    fd = os.open(world.path, os.O_RDONLY)
    with pytest.raises(OSError, match="goes on writing"):
        remove_tree(writer.fs, "tree", fd)
    os.close(fd)
    assert len(writer.fs.names("rmdir")) == 100

"""Renaming a team: cut in half it waits for the same rename, and what is linked meanwhile is not lost."""

from __future__ import annotations

import errno
import functools
import os
from typing import TYPE_CHECKING

import pytest

from cut_short import die_before, each_call, killed_before_each_call, outcome
from interposition import CHANGING, Killed, Sleeper
from pi_team.errors import (
    NameInvalid,
    OutcomeUnknown,
    PiTeamError,
    RecordCorrupt,
    RecordUnsafe,
    StorageError,
    TeamActive,
    TeamExists,
    TeamMoved,
    TeamUnknown,
    UnsupportedFilesystem,
)
from worlds import World, Writer, envelope_text, payload_text, put

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OLD, NEW = "alpha", "beta"
RENAMED = "renamed:beta"
PUBLISHED = ".*.tmp -> state.json"


def rename(writer: Writer) -> None:
    writer.rename(OLD, NEW)


def settled(world: World) -> None:
    world.plant(3)


def with_dead_and_pending(world: World) -> None:
    world.plant(3, items=("r1", "dead:x"))
    world.plant_pending(4, ("r1", "dead:x", "pending"), "pending", private=True)


BEGINNINGS = {"settled": settled, "dead members, one publication pending": with_dead_and_pending}


def named(world: World, team: str) -> str:
    """Which team the record in a directory names."""
    with open(world.record(team), encoding="utf-8") as file:
        text = file.read()
    return OLD if f'"team":"{OLD}"' in text else NEW


def require_renamed(world: World, where: str) -> None:
    items = world.items(NEW)
    assert items.count(RENAMED) == 1, where
    assert items[0] == "r1", where
    assert "dead:x" not in items, where
    assert OLD not in world.names(), where


def require_useless(world: World, where: str) -> None:
    """A half-renamed team is accepted by nothing but the same rename."""
    before = world.photograph()
    attempts: list[tuple[type[PiTeamError], Callable[[], object]]] = [
        (RecordCorrupt, lambda: world.writer().append("x", NEW)),
        (RecordCorrupt, world.writer().reader(NEW).read),
        (RecordCorrupt, lambda: world.writer().rename(NEW, "gamma")),
        (RecordCorrupt, lambda: world.writer().delete(NEW)),
        (TeamExists, lambda: world.writer().create(NEW)),
        (TeamUnknown, lambda: world.writer().append("x")),
        (TeamUnknown, world.writer().reader().read),
        (TeamUnknown, lambda: world.writer().rename(OLD, "gamma")),
        (TeamUnknown, lambda: world.writer().rename("gamma", NEW)),
        (TeamUnknown, lambda: world.writer().delete(OLD)),
    ]
    for expected, attempt in attempts:
        with pytest.raises(expected):
            attempt()
    assert world.photograph() == before, where


# --- the whole of it ------------------------------------------------------------------------------


def test_renamed_team(world: World) -> None:
    """The directory moves with its history, and the next revision bears the new name."""
    world.plant(3)
    world.writer().rename(OLD, NEW)
    state = world.state(NEW)
    assert (state.revision, state.items) == (4, ("r1", "r2", "r3", RENAMED))
    assert list(state.slots) == [1, 2, 3, 4]
    assert state.slots[4]["previous"]["publication"] == "p3"
    assert world.names() == [NEW]
    assert world.writer().append("x", NEW).revision == 5
    with pytest.raises(TeamUnknown):
        world.writer().append("x")


def test_dead_members_are_swept_in_the_same_publication(world: World) -> None:
    """One revision, and what was pending is installed before it."""
    with_dead_and_pending(world)
    world.writer().rename(OLD, NEW)
    assert (world.state(NEW).revision, world.items(NEW)) == (5, ("r1", "pending", RENAMED))


def test_living_member_refuses(world: World) -> None:
    """Nothing moves; what was swept for the decision is published, then it is refused."""
    world.plant(1, items=("r1", "dead:x", "alive:y"))
    with pytest.raises(TeamActive):
        world.writer().rename(OLD, NEW)
    assert world.names() == [OLD]
    assert (world.state().revision, world.items()) == (2, ("r1", "alive:y"))
    before = world.photograph()
    with pytest.raises(TeamActive):
        world.writer().rename(OLD, NEW)
    assert world.photograph() == before


@pytest.mark.parametrize("what", ["team", "file", "dangling link", "empty directory"])
def test_target_that_is_taken(world: World, what: str) -> None:
    """Whatever bears the new name is left as it is."""
    world.plant(2)
    if what == "team":
        world.plant(1, NEW)
    elif what == "file":
        put(world.team(NEW), b"x")
    elif what == "dangling link":
        os.symlink("nowhere", world.team(NEW))
    else:
        os.mkdir(world.team(NEW), 0o700)
    before = world.photograph()
    with pytest.raises((TeamExists, RecordUnsafe)):
        world.writer().rename(OLD, NEW)
    assert world.photograph() == before


def test_what_cannot_be_renamed(world: World) -> None:
    """No such team, its own name, no name; and no teams directory at all."""
    world.plant(1)
    writer = Writer(world, "w", locked=True)
    for team, new, expected in (
        ("gamma", NEW, TeamUnknown),
        (OLD, OLD, TeamExists),
        (OLD, "Beta", NameInvalid),
        ("../x", NEW, NameInvalid),
    ):
        with pytest.raises(expected):
            writer.rename(team, new)
    world.path += "-none"
    with pytest.raises(TeamUnknown):
        Writer(world, "w", locked=True).rename(OLD, NEW)
    assert not os.path.exists(world.path)


def test_unsafe_teams_directory(world: World) -> None:
    """Nothing is moved in it, and no lock is put there."""
    world.plant(1)
    os.chmod(world.path, 0o755)
    before = world.photograph()
    with pytest.raises(RecordUnsafe):
        Writer(world, "w", locked=True).rename(OLD, NEW)
    assert world.photograph() == before


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EBUSY])
def test_directory_that_cannot_be_moved(world: World, code: int) -> None:
    """A mount point, say: it is named as the reason, and nothing moved."""
    world.plant(2)
    before = world.photograph()
    writer = world.writer()
    writer.fs.at("rename", "alpha -> beta").fail(code)
    with pytest.raises(UnsupportedFilesystem):
        writer.rename(OLD, NEW)
    assert world.photograph() == before


def test_order_of_syncs(world: World) -> None:
    """The move before the new name is published; the record itself before the rename is acknowledged.

    A power cut that put the record back under its old name would leave a team for the same rename to
    complete, after that rename was reported as done.
    """
    world.plant(2)
    writer = world.writer()
    writer.rename(OLD, NEW)
    calls = [f"{call.method} {call.name}" for call in writer.fs.calls]
    moved = calls.index("rename alpha -> beta")
    created = next(index for index, call in enumerate(calls) if call.startswith("create "))
    installed = next(index for index, call in enumerate(calls) if call.endswith("-> state.json"))
    assert any(moved < index < created for index, call in enumerate(calls) if call == f"fsync {world.path}")
    assert any(index > installed for index, call in enumerate(calls) if call == "fsync alpha")


def test_half_renamed_team_is_synced_before_its_new_name_is_published(world: World) -> None:
    """Its maker died before it synced the move, and a power cut follows the completed rename.

    The old name would come back with a record that names the new one, unreadable under both.
    """
    world.plant(2)
    first = world.writer()
    first.fs.at("fsync", world.path).kill()
    with pytest.raises(Killed):
        first.rename(OLD, NEW)
    second = world.writer()
    second.rename(OLD, NEW)
    calls = [f"{call.method} {call.name}" for call in second.fs.calls]
    linked = next(index for index, call in enumerate(calls) if call.startswith("link "))
    assert f"fsync {world.path}" in calls[:linked]


# --- stopped anywhere -----------------------------------------------------------------------------


@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=BEGINNINGS)
def test_killed_before_each_call(world: World, beginning: Callable[[World], None]) -> None:
    """Not begun, half, or done; a half one is useless to all, and the same rename completes it."""
    seen = set()
    for where in killed_before_each_call(world, beginning, rename):
        assert len(world.names()) == 1, where
        if world.names() == [OLD]:
            seen.add("not begun")
            assert world.items()[0] == "r1", where
        elif named(world, NEW) == OLD:
            seen.add("half")
            require_useless(world, where)
        else:
            seen.add("done")
        if "done" in seen:
            with pytest.raises(TeamUnknown):
                world.writer().rename(OLD, NEW)
        else:
            world.writer().rename(OLD, NEW)
        require_renamed(world, where)
        assert world.items(NEW).count("pending") == (beginning is with_dead_and_pending), where
        assert world.writer().append("x", NEW).value[-1] == "x", where
    assert seen == {"not begun", "half", "done"}


@pytest.mark.parametrize("there", ["a new team of that name", "another half-renamed one"])
def test_half_renamed_team_is_completed_whatever_stands_at_the_old_name(world: World, there: str) -> None:
    """The same rename completes the first half before it would look at what is called so by now."""
    for where in killed_before_each_call(world, settled, rename):
        if world.names() == [OLD] or named(world, NEW) == NEW:
            continue
        if there == "a new team of that name":
            world.plant(1, items=("alive:another",))
        else:
            # The directory of a team that was to become `alpha`, and still names `gamma`.
            world.plant(1, "gamma", items=("third",))
            os.rename(world.team("gamma"), world.team(OLD))
        before = world.photograph(OLD)
        world.writer().rename(OLD, NEW)
        assert world.items(NEW) == ("r1", "r2", "r3", RENAMED), where
        assert world.photograph(OLD) == before, where


@pytest.mark.parametrize(
    ("method", "name"),
    [("rename", "alpha -> beta"), ("fsync", "*/teams"), ("link", ".*.tmp -> *.json"), ("rename", PUBLISHED)],
)
def test_really_killed(world: World, method: str, name: str) -> None:
    """As above with a process that dies, its locks in place: the same rename completes it without a wait."""
    settled(world)
    die_before(world, rename, method, name)
    writer = Writer(world, "next", locked=True)
    writer.rename(OLD, NEW)
    assert writer.clock.monotonic() < 0.2
    require_renamed(world, method)


@pytest.mark.parametrize("fault", ["fail", "fail_after"])
@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=BEGINNINGS)
def test_each_call_refused(world: World, beginning: Callable[[World], None], fault: str) -> None:
    """A refusal leaves the team where it was, under its name; what is unknown is completed by repetition."""
    for index, call, where in each_call(world, beginning, rename):
        if fault == "fail_after" and call.method not in CHANGING:
            continue
        writer = world.writer()
        point = writer.fs.at_call(index)
        _ = getattr(point, fault)(errno.EIO)
        try:
            writer.rename(OLD, NEW)
        except (StorageError, TeamMoved):
            assert world.names() == [OLD], where
            assert RENAMED not in world.items(), where
            world.writer().append("goes on")
        except OutcomeUnknown:
            pass
        else:
            require_renamed(world, where)
        assert point.reached, where
        assert writer.fs.open_names == {}, where
        if world.names() == [OLD] or named(world, NEW) == OLD:
            world.writer().rename(OLD, NEW)
        require_renamed(world, where)
        assert world.items(NEW).count("pending") == (beginning is with_dead_and_pending), where


# --- others at work -------------------------------------------------------------------------------


def paused_writer(world: World, item: str, stage: str) -> Sleeper:
    """A writer with the team open that has linked its slot, or is about to."""
    writer = world.writer("paused")
    point = ("link", ".*.tmp -> *.json") if stage == "before its link" else ("rename", PUBLISHED)
    return Sleeper(lambda: writer.append(item), writer.fs.at(*point))


def rename_around(world: World, index: int, sleeping: Sleeper) -> tuple[BaseException | None, ...]:
    """Rename, and wake the paused writer at one call of it, or at its end; the errors of both."""
    answers: list[BaseException | None] = []
    renamer = world.writer("renamer")
    renamer.fs.at_call(index).before(lambda: answers.append(outcome(sleeping.wake)))
    refusal = outcome(lambda: renamer.rename(OLD, NEW))
    if not answers:
        answers.append(outcome(sleeping.wake))
    assert renamer.fs.open_names == {}
    return refusal, answers[0]


STAGES = ["before its link", "between its link and its rename"]


@pytest.mark.parametrize("stage", STAGES)
def test_publication_linked_during_the_rename_is_not_lost(world: World, stage: str) -> None:
    """A writer whose lock was stolen goes on at any call of the rename: it is in, once, or refused."""
    told = set()
    for index, _, where in each_call(world, settled, rename):
        refusal, answer = rename_around(world, index, paused_writer(world, "late", stage))
        said = f"{where}: {answer!r}"
        assert refusal is None, said
        told.add(type(answer))
        assert isinstance(answer, TeamUnknown | TeamMoved | None), said
        assert world.items(NEW).count("late") == (not isinstance(answer, TeamUnknown)), said
        require_renamed(world, where)
        assert world.state(NEW).privates == (), said
    expected = {type(None), TeamMoved} | ({TeamUnknown} if stage == "before its link" else set())
    assert told == expected


@pytest.mark.parametrize("stage", STAGES)
def test_member_that_joins_meanwhile_moves_the_team_back(world: World, stage: str) -> None:
    """Either the joining is refused and the team renamed, or the other way round; never both or neither."""
    ends = set()
    for index, _, where in each_call(world, settled, rename):
        refusal, answer = rename_around(world, index, paused_writer(world, "alive:z", stage))
        said = f"{where}: {refusal!r}, {answer!r}"
        if isinstance(refusal, TeamActive):
            ends.add("moved back")
            assert world.names() == [OLD], said
            assert world.items() == ("r1", "r2", "r3", "alive:z"), said
            assert world.writer().append("goes on").value[-1] == "goes on", said
        else:
            ends.add("renamed")
            assert refusal is None, said
            assert isinstance(answer, TeamUnknown), said
            assert world.items(NEW) == ("r1", "r2", "r3", RENAMED), said
    assert ends == ({"moved back", "renamed"} if stage == "before its link" else {"moved back"})


def test_two_processes_rename_at_once(world: World) -> None:
    """With the locks stolen the second does it all at any call of the first: the team is renamed once."""
    for index, _, where in each_call(world, settled, rename):
        first, second = world.writer("first"), world.writer("second")
        first.fs.at_call(index).before(functools.partial(outcome, functools.partial(second.rename, OLD, NEW)))
        answer = outcome(functools.partial(first.rename, OLD, NEW))
        said = f"{where}: {answer!r}"
        assert isinstance(answer, TeamUnknown | TeamMoved | TeamExists | None), said
        require_renamed(world, where)


def test_team_deleted_at_any_call_of_the_rename(world: World) -> None:
    """Nothing comes back: the team is deleted, or it was renamed before it could be."""
    for index, _, where in each_call(world, settled, rename):
        renamer, other = world.writer("renamer"), world.writer("other")
        deleted: list[BaseException | None] = []
        renamer.fs.at_call(index).before(
            lambda other=other, deleted=deleted: deleted.append(outcome(other.delete))  # type: ignore[misc] # bound
        )
        answer = outcome(functools.partial(renamer.rename, OLD, NEW))
        said = f"{where}: {answer!r}, {deleted}"
        if deleted[0] is None:
            assert world.names() == [], said
            assert isinstance(answer, TeamUnknown | TeamMoved), said
        else:
            assert isinstance(deleted[0], TeamUnknown), said
            assert answer is None, said
            require_renamed(world, where)


def test_another_team_under_the_old_name_at_any_call(world: World) -> None:
    """The team is replaced while the rename is under way: what took its name is neither moved nor renamed."""
    for index, _, where in each_call(world, settled, rename):
        renamer = world.writer("renamer")
        replaced: list[bool] = []

        def replace(replaced: list[bool] = replaced) -> None:
            if os.path.exists(world.team()):
                world.replace_team()
                replaced.append(True)

        renamer.fs.at_call(index).before(replace)
        answer = outcome(functools.partial(renamer.rename, OLD, NEW))
        said = f"{where}: {answer!r}"
        if not replaced:
            assert answer is None, said
        elif answer is None:
            assert world.items(NEW) == ("new", RENAMED), where  # it was there before the rename opened it
        else:
            assert isinstance(answer, TeamMoved), said
            assert world.items(OLD) == ("new",), said
            assert NEW not in world.names(), said


def test_move_that_caught_another_team_is_undone(world: World) -> None:
    """Between the last look and the move another team took the name: it gets its name back."""
    settled(world)
    renamer = world.writer()
    renamer.fs.at("rename", "alpha -> beta").before(world.replace_team)
    with pytest.raises(TeamMoved):
        renamer.rename(OLD, NEW)
    assert world.items(OLD) == ("new",)
    assert NEW not in world.names()


def test_old_name_is_taken_when_the_team_has_to_move_back(world: World) -> None:
    """Somebody created a team of the old name meanwhile: the half-renamed one stays for the same rename."""
    settled(world)
    renamer = world.writer()
    renamer.fs.at("create", ".*.tmp").before(lambda: world.plant(1, items=("another",)))
    renamer.fs.at("link", ".*.tmp -> *.json").fail(errno.ENOSPC)
    with pytest.raises(PiTeamError):
        renamer.rename(OLD, NEW)
    assert world.items(OLD) == ("another",)
    world.writer().rename(OLD, NEW)
    assert world.items(NEW) == ("r1", "r2", "r3", RENAMED)
    assert world.items(OLD) == ("another",)


def test_observers_at_each_call(world: World) -> None:
    """Under the old name it is there or gone; under the new one gone, waiting for its record, or there."""
    for index, _, where in each_call(world, settled, rename):
        renamer = world.writer("renamer")

        def look(where: str = where) -> None:
            answers = [outcome(world.writer().reader(team, helping=False).read) for team in (OLD, NEW)]
            there = [answer is None for answer in answers]
            assert there.count(True) <= 1, where
            assert isinstance(answers[0], TeamUnknown | None), where
            assert isinstance(answers[1], TeamUnknown | RecordCorrupt | None), where

        renamer.fs.at_call(index).before(look)
        renamer.rename(OLD, NEW)
        look()


def test_writer_that_slept_over_the_rename_and_the_pruning_after_it(root: Path) -> None:
    """It links a slot that was pruned, of a record that bears another name by now: nothing is left of it."""
    world = World(str(root / "small"), kept=2)
    world.plant(1)
    sleeping = paused_writer(world, "late", "before its link")
    world.writer().rename(OLD, NEW)
    world.writer().append_many(9, "n", NEW)
    assert isinstance(outcome(sleeping.wake), TeamUnknown | TeamMoved)
    assert "late" not in world.items(NEW)
    assert world.state(NEW).privates == ()
    assert 2 not in world.state(NEW).slots


def test_record_of_an_older_peer(world: World) -> None:
    """A team that only older peers wrote to is renamed like any other."""
    world.make_directories()
    text = envelope_text(7, payload_text(("r1",)))
    put(world.slot(7), text)
    put(world.record(), text)
    world.writer().rename(OLD, NEW)
    assert (world.state(NEW).revision, world.items(NEW)) == (8, ("r1", RENAMED))


def test_legacy_team(world: World) -> None:
    """A record without an envelope gets one with its new name."""
    os.mkdir(world.team(), 0o700)
    put(world.record(), payload_text(("r1",)))
    world.writer().rename(OLD, NEW)
    assert (world.state(NEW).revision, world.items(NEW)) == (1, ("r1", RENAMED))

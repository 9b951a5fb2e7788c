"""Creating a team: there is never a team without a record, and nothing is left of a refused creation."""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import stat
from typing import TYPE_CHECKING

import pytest

from cut_short import each_call, killed_before_each_call
from interposition import CHANGING, REFUSALS, UnsyncedFileSystem
from pi_team.errors import (
    NameInvalid,
    OutcomeUnknown,
    PiTeamError,
    RecordUnsafe,
    StorageError,
    TeamExists,
    TeamUnknown,
    UnsupportedFilesystem,
)
from pi_team.store import default_path
from processes import Child, die_here
from worlds import TEAM, World, Writer, digest, payload_text, put, read

if TYPE_CHECKING:
    from pathlib import Path


def nothing(_: World) -> None:
    """An empty teams directory."""


def require_whole_or_nothing(world: World, where: str) -> bool:
    """Whether the team is there; then it is complete and can be written."""
    if not os.path.lexists(world.team()):
        return False
    assert sorted(os.listdir(world.team())) == ["presence", "revisions", "state.json"], where
    state = world.state()
    assert (state.revision, state.items, list(state.slots), state.privates) == (1, (), [1], ()), where
    return True


# --- what is made ---------------------------------------------------------------------------------


def test_new_team(world: World) -> None:
    """Complete at revision 1, with nothing as its parent, and open to nobody else."""
    world.writer().create()
    assert require_whole_or_nothing(world, "")
    record = json.loads(read(world.record()))
    assert record["previous"] == {"revision": 0, "contentHash": digest(""), "publication": None}
    assert os.stat(world.record()).st_ino == os.stat(world.slot(1)).st_ino
    for directory in (world.team(), *(os.path.join(world.team(), d) for d in ("revisions", "presence"))):
        assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(world.record()).st_mode) == 0o600
    assert world.names() == [TEAM]
    assert world.writer().append("x").revision == 2


def test_missing_directories_above(root: Path) -> None:
    """They are created private and synced into their parents; those that were there are left alone."""
    world = World(str(root))
    os.rmdir(world.path)
    os.mkdir(root / "given", 0o755)
    os.chmod(root / "given", 0o755)
    world.path = str(root / "given" / "a" / "b" / "teams")
    writer = world.writer()
    writer.create()
    assert stat.S_IMODE(os.stat(root / "given").st_mode) == 0o755
    for path in ("a", "a/b", "a/b/teams"):
        assert stat.S_IMODE(os.stat(root / "given" / path).st_mode) == 0o700
    synced = writer.fs.names("fsync")
    assert [os.path.basename(name) for name in synced[:3]] == ["given", "a", "b"]
    assert require_whole_or_nothing(world, "")


@pytest.mark.parametrize(
    "name", ["", "A", "1a", "-a", "a_b", "a.b", "a/b", "..", "a\n", "ä", "a" * 49, ".locks", "a b"]
)
def test_invalid_names(world: World, name: str) -> None:
    """Refused before anything is looked at."""
    with pytest.raises(NameInvalid):
        world.writer().create(name)
    assert world.names() == []


def test_longest_name(world: World) -> None:
    """48 characters, also in the names of locks and hidden directories."""
    name = "a" + "-9" * 23 + "z"
    assert len(name) == 48
    Writer(world, "w", locked=True).create(name)
    assert world.writer().store.names() == [name]


@pytest.mark.parametrize("what", ["team", "empty directory", "file", "dangling link"])
def test_name_that_is_taken(world: World, what: str) -> None:
    """Whatever bears the name, it is left as it is."""
    if what == "team":
        world.plant(3)
    elif what == "empty directory":
        os.mkdir(world.team(), 0o700)
    elif what == "file":
        put(world.team(), b"x")
    else:
        os.symlink("nowhere", world.team())
    before = world.photograph()
    with pytest.raises(TeamExists):
        world.writer().create()
    assert world.photograph() == before


def test_teams_directory_open_to_others(world: World) -> None:
    """The checks begin there: nothing is created in it, no lock either."""
    os.chmod(world.path, 0o755)
    with pytest.raises(RecordUnsafe):
        Writer(world, "w", locked=True).create()
    assert os.listdir(world.path) == []


def test_default_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Below `$PI_CODING_AGENT_DIR`, else below the home directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PI_CODING_AGENT_DIR", raising=False)
    assert default_path() == str(tmp_path / ".pi" / "agent" / "teams")
    monkeypatch.setenv("PI_CODING_AGENT_DIR", "")
    assert default_path() == str(tmp_path / ".pi" / "agent" / "teams")
    monkeypatch.setenv("PI_CODING_AGENT_DIR", "~/elsewhere")
    assert default_path() == str(tmp_path / "elsewhere" / "teams")


def test_names(world: World) -> None:
    """Only directories with a team's name, sorted; none where nothing was ever created."""
    for name in ("beta", "alpha"):
        world.plant(1, name)
    for name in (".new-x", ".deleted-x", ".locks", "Upper"):
        os.mkdir(os.path.join(world.path, name), 0o700)
    put(os.path.join(world.path, "file"), b"")
    os.symlink("alpha", os.path.join(world.path, "link"))
    assert world.writer().store.names() == ["alpha", "beta"]
    world.path += "-none"
    assert world.writer().store.names() == []


# --- what the file system must do -------------------------------------------------------------------


class ReplacingLinks(UnsyncedFileSystem):
    def link(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        with contextlib.suppress(FileExistsError):
            super().link(source, source_dir_fd, target, target_dir_fd)


class CopyingLinks(UnsyncedFileSystem):
    def link(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=target_dir_fd)
        os.close(fd)
        del source, source_dir_fd


class UnsyncableDirectories(UnsyncedFileSystem):
    def fsync(self, fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


class NoLinks(UnsyncedFileSystem):
    def link(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        del source, source_dir_fd, target, target_dir_fd
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


@pytest.mark.parametrize("kind", [ReplacingLinks, CopyingLinks, UnsyncableDirectories, NoLinks])
def test_file_system_that_lacks_something(world: World, kind: type[UnsyncedFileSystem]) -> None:
    """It is found out before there is a team, with the directory that the probe was made in gone again."""
    with pytest.raises(UnsupportedFilesystem):
        world.writer("w", kind()).create()
    assert world.names() == []
    with pytest.raises(UnsupportedFilesystem):
        world.writer("w", kind()).store.probe()
    assert world.names() == []


def test_probe_leaves_nothing(world: World) -> None:
    """On a file system that has it all."""
    before = world.photograph()
    world.writer().store.probe()
    assert world.photograph() == before


def test_everything_is_synced_before_the_team_appears(world: World) -> None:
    """The record's bytes, then each directory, then the rename, then the names of the teams."""
    writer = world.writer()
    writer.create()
    calls = [f"{call.method} {call.name}" for call in writer.fs.calls]
    hidden = next(call.removeprefix("mkdir ") for call in calls if call.startswith("mkdir .new-"))
    private = next(call.removeprefix("create ") for call in calls if call.startswith("create "))
    order = [
        f"fsync {private}",
        f"link {private} -> 1.json",
        f"rename {private} -> state.json",
        "fsync revisions",
        "fsync presence",
        f"fsync {hidden}",
        f"rename {hidden} -> {TEAM}",
        f"fsync {world.path}",
    ]
    assert [calls.index(call) for call in order] == sorted(calls.index(call) for call in order)


# --- stopped, refused, raced ------------------------------------------------------------------------


def test_killed_before_each_call(world: World) -> None:
    """No team or a whole one, a hidden directory at most; the same creation then succeeds or finds it."""
    for where in killed_before_each_call(world, nothing, Writer.create):
        there = require_whole_or_nothing(world, where)
        assert len(world.names()) <= 1, where
        assert all(name == TEAM or name.startswith(".new-alpha-") for name in world.names()), where
        if there:
            with pytest.raises(TeamExists):
                world.writer().create()
        else:
            world.writer().create()
        assert require_whole_or_nothing(world, where)
        assert world.writer().append("x").revision == 2, where


@pytest.mark.parametrize("index", [3, 12, 25])
def test_really_killed(world: World, index: int) -> None:
    """As above with a process that dies, its lock in place: the next one does not wait."""

    def create() -> None:
        writer = Writer(world, "dying", locked=True)
        writer.fs.at_call(index).before(die_here)
        writer.create()

    with Child(create) as child:
        child.wait_killed()
    require_whole_or_nothing(world, f"call {index}")
    writer = Writer(world, "next", locked=True)
    writer.create()
    assert writer.clock.monotonic() < 0.1
    assert require_whole_or_nothing(world, f"call {index}")


@pytest.mark.parametrize("fault", ["fail", "fail_after"])
@pytest.mark.parametrize("code", REFUSALS, ids=errno.errorcode.get)
def test_each_call_refused(world: World, code: int, fault: str) -> None:
    """A refusal leaves nothing at all; a creation of unknown outcome leaves a whole team."""
    for index, call, where in each_call(world, nothing, Writer.create):
        if fault == "fail_after" and call.method not in CHANGING:
            continue
        writer = world.writer()
        point = writer.fs.at_call(index)
        _ = getattr(point, fault)(code)
        try:
            writer.create()
        except OutcomeUnknown:
            assert world.names() == [TEAM], where
        except (StorageError, UnsupportedFilesystem):
            assert world.names() == [], where
        else:
            assert world.names() == [TEAM], where
        assert point.reached, where
        assert writer.fs.open_names == {}, where
        require_whole_or_nothing(world, where)


def test_other_process_creates_it_at_any_call(world: World) -> None:
    """With the lock stolen: one of the two is told TEAM_EXISTS, and the other's team is not touched."""
    for index, _, where in each_call(world, nothing, Writer.create):
        first, second = world.writer("first"), world.writer("second")
        answers: list[str] = []

        def create(writer: Writer, answers: list[str] = answers) -> None:
            try:
                writer.create()
                writer.append(writer.name)
                answers.append(writer.name)
            except TeamExists:
                answers.append("exists")

        first.fs.at_call(index).before(functools.partial(create, second))
        create(first)
        assert "exists" in answers, where
        (winner,) = set(answers) - {"exists"}
        assert world.items() == (winner,), where
        assert world.names() == [TEAM], where


def test_observers_at_each_call(world: World) -> None:
    """At every moment the team is unknown or whole, for the list of teams, a reader and a writer."""
    for index, _, where in each_call(world, nothing, Writer.create):
        writer, observer = world.writer(), world.writer("observer")

        def look(observer: Writer = observer, where: str = where) -> None:
            there = require_whole_or_nothing(world, where)
            assert observer.store.names() == ([TEAM] if there else []), where
            if there:
                assert observer.reader().read().revision == 1, where
            else:
                with pytest.raises(TeamUnknown):
                    observer.reader().read()

        writer.fs.at_call(index).before(look)
        writer.create()
        look()


def test_team_is_created_where_another_was_deleted(world: World) -> None:
    """A tombstone and hidden left-overs of others do not matter."""
    world.plant(3)
    os.rename(world.team(), os.path.join(world.path, ".deleted-alpha-x"))
    os.mkdir(os.path.join(world.path, ".new-alpha-x"), 0o700)
    world.writer().create()
    assert world.items() == ()
    assert payload_text(()) in read(world.record()).decode()


def test_path_that_is_a_file(world: World) -> None:
    """Where a file stands in place of the teams directory it is refused with a code, and stays."""
    world.path = os.path.join(world.path, "file")
    put(world.path, b"x")
    with pytest.raises(PiTeamError):
        world.writer().create()
    assert read(world.path) == b"x"

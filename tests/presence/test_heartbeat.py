"""Presence files: what is written, by whom, into which directory, and what a look makes of hostile ones."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import threading
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from pi_team.errors import RecordUnsafe
from pi_team.limits import PRESENCE_BYTES
from pi_team.presence.heartbeat import Presence, PresenceDirectory, decode, encode
from pi_team.presence.process import owner_of, this_process
from pi_team.record.directory import TeamDirectory
from pi_team.record.filesystem import OsFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pi_team.record.filesystem import FileSystem

NOW = 1_796_090_232.5367
OLDER_PEER = b'{"token":"0ab750a6-6f1b-4e17-ae83-cbe9c744b984","status":"idle","seen":1796090232536}'
OURS: dict[str, Any] = {
    "token": "t1",
    "status": "busy",
    "seen": 1796090232537,
    "start": 7,
    "host": "vm",
    "boot": "0" * 32,
    "pidns": "4026531836",
}


def make_team(teams: Path, name: str = "crew") -> Path:
    team = teams / name
    (team / "presence").mkdir(parents=True)
    for path in (teams, team, team / "presence"):
        path.chmod(0o700)
    return team


@pytest.fixture
def team(tmp_path: Path) -> Path:
    return make_team(tmp_path / "teams")


def opened(team: Path, fs: FileSystem | None = None) -> PresenceDirectory:
    return PresenceDirectory(TeamDirectory(fs or OsFileSystem(), str(team.parent), team.name))


@pytest.fixture
def presence(team: Path) -> Iterator[PresenceDirectory]:
    with opened(team) as it:
        yield it


def write(presence: PresenceDirectory, alias: str = "lead", token: str = "t1") -> bool:
    return presence.write(alias, token, "idle", process=this_process(), now=NOW)


def put(team: Path, data: bytes, alias: str = "lead") -> Path:
    path = team / "presence" / f"{alias}.json"
    path.write_bytes(data)
    path.chmod(0o600)
    return path


# --- what is written ------------------------------------------------------------------------------


def test_a_heartbeat_says_who_and_when(presence: PresenceDirectory, team: Path) -> None:
    """A presence that does not name its process, or in other units, is no evidence."""
    assert write(presence)
    mine = this_process()
    assert json.loads((team / "presence" / "lead.json").read_bytes()) == {
        "token": "t1",
        "status": "idle",
        "seen": 1796090232537,
        "start": mine.start,
        "host": mine.host,
        "boot": mine.boot,
        "pidns": mine.pidns,
    }
    assert os.listdir(team / "presence") == ["lead.json"]
    found = presence.read("lead").presence
    assert found is not None
    assert found.process(mine.pid) == mine


@pytest.mark.parametrize("umask", [0o777, 0o000])
def test_the_mode_is_exact(presence: PresenceDirectory, team: Path, umask: int) -> None:
    """The user's umask makes a presence unreadable to its own user, or readable to others."""
    before = os.umask(umask)
    try:
        assert write(presence)
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert stat.S_IMODE((team / "presence" / "lead.json").stat().st_mode) == 0o600
    assert presence.read("lead").presence is not None


@pytest.mark.parametrize(
    ("character", "kept"), [("a", 255), ("\x01", 255), ("\u00e4", 255), ("\ud83d", 255), ("\U0001f600", 170)]
)
def test_a_presence_stays_within_its_limit(character: str, kept: int) -> None:
    """A presence that is written is too long to be read."""
    worst = Presence("\U0001f600" * 128, "offline", 1e15, 2**64, character * 9_000, "f" * 32, "9" * 20)
    assert len(encode(worst)) <= PRESENCE_BYTES
    assert decode(encode(worst)) == attrs.evolve(worst, host=worst.host[:kept])


def test_a_reader_never_sees_half_a_presence(presence: PresenceDirectory, team: Path) -> None:
    """A heartbeat writes in place, and a look in between finds a living member without presence."""

    class Slow(OsFileSystem):
        def write(self, fd: int, data: bytes | memoryview) -> int:
            assert presence.read("lead").presence is not None
            return super().write(fd, data[:1])

    assert write(presence)
    with opened(team, Slow()) as slow:
        assert write(slow, token="t2")
    found = presence.read("lead").presence
    assert found is not None
    assert found.token == "t2"


def test_two_threads_beat_for_one_alias(presence: PresenceDirectory, team: Path) -> None:
    """Two threads of a process use one temporary name, and one of them installs what the other half wrote."""
    inside, go = threading.Event(), threading.Event()

    class Waits(OsFileSystem):
        def write(self, fd: int, data: bytes | memoryview) -> int:
            inside.set()
            assert go.wait(30)
            return super().write(fd, data)

    with opened(team, Waits()) as waits:
        thread = threading.Thread(target=write, args=(waits,), kwargs={"token": "t2"})
        thread.start()
        assert inside.wait(30)
        assert write(presence)
        go.set()
        thread.join()
    found = presence.read("lead").presence
    assert found is not None
    assert found.token == "t2"
    assert os.listdir(team / "presence") == ["lead.json"]


def test_a_killed_heartbeat_leaves_a_temporary_with_its_owner(team: Path) -> None:
    """A sweep cannot tell whose a temporary is, and leaves it for ever or takes a living one's."""

    class Dies(OsFileSystem):
        def rename(self, *_arguments: object) -> None:
            os._exit(7)

    child = os.fork()
    if child == 0:
        write(opened(team, Dies()))
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    (left,) = os.listdir(team / "presence")
    assert left.startswith(".lead-")
    owner = owner_of(left)
    assert owner is not None
    assert owner.pid == child


def failing(call: str, error: int) -> FileSystem:
    def fail(*_arguments: object) -> None:
        raise OSError(error, os.strerror(error))

    fs = OsFileSystem()
    setattr(fs, call, fail)
    return fs


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("create", errno.ENOSPC),
        ("create", errno.EROFS),
        ("write", errno.ENOSPC),
        ("write", errno.EIO),
        ("rename", errno.EACCES),
    ],
)
def test_a_refused_heartbeat_changes_nothing(
    presence: PresenceDirectory, team: Path, call: str, error: int
) -> None:
    """A full disk empties the presence, or fills the directory with temporaries."""
    assert write(presence)
    with opened(team, failing(call, error)) as refused, pytest.raises(OSError, match=os.strerror(error)):
        write(refused, token="t2")
    assert os.listdir(team / "presence") == ["lead.json"]
    found = presence.read("lead").presence
    assert found is not None
    assert found.token == "t1"


# --- into which directory -------------------------------------------------------------------------


def tree(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() if p.is_file() else b"" for p in sorted(path.rglob("*"))}


def delete(team: Path) -> None:
    shutil.rmtree(team)


def move(team: Path) -> None:
    team.rename(team.parent / "other")


def create_anew(team: Path) -> None:
    team.rename(team.parent / ".deleted-crew-1")
    make_team(team.parent)


def delete_teams(team: Path) -> None:
    shutil.rmtree(team.parent)


def replace_by_a_link(team: Path) -> None:
    move(team)
    team.symlink_to(team.parent / "other")


@pytest.mark.parametrize("change", [delete, move, create_anew, delete_teams, replace_by_a_link])
def test_a_late_heartbeat_reaches_no_other_team(
    presence: PresenceDirectory, team: Path, change: Callable[[Path], None]
) -> None:
    """A session that slept resurrects a deleted team, or writes into a renamed or re-created one."""
    assert write(presence)
    change(team)
    before = tree(team.parent.parent)
    assert not write(presence, token="t2")
    assert tree(team.parent.parent) == before


@pytest.mark.parametrize("change", [delete, move, create_anew])
@pytest.mark.parametrize("call", ["create", "write", "close", "rename"])
def test_a_team_that_goes_during_a_heartbeat(team: Path, change: Callable[[Path], None], call: str) -> None:
    """A heartbeat that a deletion or a move overtakes between two of its calls says that it was written."""
    changed: list[str] = []

    class Overtaken(OsFileSystem):
        def __getattribute__(self, name: str) -> Any:
            if name == call and not changed:
                changed.append(name)
                change(team)
            return super().__getattribute__(name)

    with opened(team) as sure:
        assert write(sure)
    it = opened(team)
    it._fs = Overtaken()
    assert not write(it, token="t2")
    assert changed
    if team.exists():
        assert os.listdir(team / "presence") == []


def test_a_heartbeat_never_creates_its_directory(presence: PresenceDirectory, team: Path) -> None:
    """A heartbeat repairs, silently, what somebody removed."""
    assert write(presence)
    shutil.rmtree(team / "presence")
    assert not write(presence)
    assert os.listdir(team) == []


@pytest.mark.parametrize("umask", [0o777, 0o000])
def test_a_join_makes_the_directory(presence: PresenceDirectory, team: Path, umask: int) -> None:
    """Nobody can join a team of an older peer that has no `presence/` yet; or it is made open to others."""
    (team / "presence").rmdir()
    assert presence.read("lead").fault == "unreadable"
    before = os.umask(umask)
    try:
        presence.make()
        presence.make()
    finally:
        os.umask(before)
    assert stat.S_IMODE((team / "presence").stat().st_mode) == 0o700
    assert presence.read("lead").fault == "missing"
    assert write(presence)


def test_a_presence_directory_that_was_replaced(presence: PresenceDirectory, team: Path) -> None:
    """A session beats into a directory that nobody reads any more, and is swept."""
    assert write(presence)
    shutil.rmtree(team / "presence")
    (team / "presence").mkdir(mode=0o700)
    assert write(presence)
    assert os.listdir(team / "presence") == ["lead.json"]


def test_an_observer_of_a_replaced_directory_has_seen_nothing(
    presence: PresenceDirectory, team: Path
) -> None:
    """An observer looks into a removed directory, finds everybody missing, and sweeps the living."""
    assert write(presence)
    (team / "presence").rename(team / "old")
    with opened(team) as other:
        assert other.read("lead").fault == "unreadable"
        assert presence.read("lead").presence is not None
        (team / "old" / "lead.json").unlink()
        assert presence.read("lead").fault == "unreadable"
        (team / "presence").mkdir(mode=0o700)
        assert write(other)
    assert presence.read("lead").presence is not None


@pytest.mark.parametrize("mode", [0o750, 0o707])
def test_a_directory_open_to_others_is_not_used(presence: PresenceDirectory, team: Path, mode: int) -> None:
    """Presence is read from, or written to, a directory in which others may put files."""
    (team / "presence").chmod(mode)
    assert presence.read("lead").fault == "unreadable"
    with pytest.raises(RecordUnsafe, match="open to others"):
        write(presence)
    assert os.listdir(team / "presence") == []


def test_a_linked_directory_is_not_used(presence: PresenceDirectory, team: Path) -> None:
    """A link in the place of `presence/` carries heartbeats into another directory."""
    elsewhere = team.parent.parent / "elsewhere"
    (team / "presence").rename(elsewhere)
    (team / "presence").symlink_to(elsewhere)
    assert presence.read("lead").fault == "unreadable"
    with pytest.raises(RecordUnsafe, match="symbolic link"):
        write(presence)
    assert os.listdir(elsewhere) == []


# --- removal --------------------------------------------------------------------------------------


def test_only_its_own_token_removes_a_presence(presence: PresenceDirectory, team: Path) -> None:
    """A session that was replaced removes its successor's presence when it leaves."""
    assert write(presence, token="t2")
    assert not presence.remove("lead", "t1")
    assert os.listdir(team / "presence") == ["lead.json"]
    assert presence.remove("lead", "t2")
    assert os.listdir(team / "presence") == []
    assert not presence.remove("lead", "t2")


@pytest.mark.parametrize("data", [b"", b"{}", b"\x00" * 10])
def test_what_bears_no_token_is_not_removed(presence: PresenceDirectory, team: Path, data: bytes) -> None:
    """A leave removes what it cannot read."""
    path = put(team, data)
    assert not presence.remove("lead", "")
    assert path.read_bytes() == data


def test_a_presence_that_goes_before_its_removal(presence: PresenceDirectory, team: Path) -> None:
    """Two leaves at once, of which the second ends with an error."""

    class Overtaken(OsFileSystem):
        def unlink(self, name: str, dir_fd: int | None = None) -> None:
            super().unlink(name, dir_fd)
            super().unlink(name, dir_fd)

    assert write(presence)
    with opened(team, Overtaken()) as overtaken:
        assert not overtaken.remove("lead", "t1")


# --- looks ----------------------------------------------------------------------------------------


def test_an_older_peers_presence(presence: PresenceDirectory, team: Path) -> None:
    """A peer that says only token, status and seen counts as missing, or gets a process made up."""
    put(team, OLDER_PEER)
    found = presence.read("lead").presence
    assert found == Presence("0ab750a6-6f1b-4e17-ae83-cbe9c744b984", "idle", 1796090232536)
    assert found.process(7) is None


def test_a_newer_peers_presence(presence: PresenceDirectory, team: Path) -> None:
    """Keys that a newer peer adds, or whose types it changes, make it count as missing."""
    put(team, json.dumps({"mood": [1], **OURS, "pidns": 4026531836, "seen": 5.25}).encode())
    found = presence.read("lead").presence
    assert found == Presence("t1", "busy", 5.25, 7, "vm", "0" * 32, "")


def link_out(path: Path) -> None:
    path.with_name("target").write_text(json.dumps(OURS))
    path.symlink_to(path.with_name("target"))


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 30)


def readable_to_the_group(path: Path) -> None:
    path.write_text(json.dumps(OURS))
    path.chmod(0o640)


@pytest.mark.parametrize(
    "hostile",
    [link_out, lambda path: os.mkfifo(path, 0o600), os.mkdir, huge, readable_to_the_group],
    ids=["link", "fifo", "directory", "huge", "group"],
)
def test_an_unsafe_file_counts_as_missing(team: Path, hostile: Callable[[Path], None]) -> None:
    """A look at a link follows it, at a FIFO blocks, at a huge file reads it all, and so on."""
    read = []

    class Counts(OsFileSystem):
        def read(self, fd: int, size: int) -> bytes:
            read.append(size)
            return super().read(fd, size)

    with opened(team, Counts()) as presence:
        path = team / "presence" / "lead.json"
        before = os.umask(0o077)
        hostile(path)
        os.umask(before)
        sighting = presence.read("lead")
        assert (sighting.presence, sighting.fault) == (None, "unsafe")
        assert sighting.detail
        assert presence.read("lead", sighting) is sighting
        assert not presence.remove("lead", "t1")
        assert read == []
        if not path.is_dir():
            assert write(presence), "a living member's next heartbeat heals it"
            assert presence.read("lead", sighting).presence is not None


def without(key: str) -> bytes:
    return json.dumps({k: v for k, v in OURS.items() if k != key}).encode()


def changed(**values: object) -> bytes:
    return json.dumps({**OURS, **values}).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 100,
        b"not JSON",
        b"[]",
        b"null",
        b"[" * 4_000,
        b'{"a":' * 800,
        json.dumps(OURS).encode("utf-16"),
        b"\xef\xbb\xbf" + json.dumps(OURS).encode(),
        json.dumps(OURS).encode() + b"\x00",
        json.dumps(OURS).encode() + b"{}",
        b'{"token":"t1","token":"t1","status":"idle","seen":1}',
        b'{"token":"\xff","status":"idle","seen":1}',
        without("token"),
        without("status"),
        without("seen"),
        changed(token=7),
        changed(token=""),
        changed(token="t" * 129),
        changed(status="away"),
        changed(status=["idle"]),
        changed(seen="1"),
        changed(seen=True),
        changed(seen=-1),
        changed(seen=float("nan")),
        changed(seen=float("inf")),
        changed(seen=10**300),
        changed(seen=None),
        b'{"token":"t1","status":"idle","seen":1' + b"0" * 3_000 + b"}",
    ],
)
def test_a_malformed_file_counts_as_missing(presence: PresenceDirectory, team: Path, data: bytes) -> None:
    """A look at a broken presence raises, or makes something up."""
    put(team, data)
    sighting = presence.read("lead")
    assert (sighting.presence, sighting.fault) == (None, "malformed")
    assert "lead.json" in sighting.detail
    assert presence.read("lead", sighting) is sighting


@pytest.mark.parametrize("start", ["7", 7.5, True, None, [7]])
def test_a_start_that_is_no_integer_is_unknown(start: object) -> None:
    """A start of another type never equals the process's, which then seems to have exited."""
    assert decode(changed(start=start)).start is None


def test_an_unchanged_file_is_not_read_again(team: Path) -> None:
    """A snapshot of a hundred members opens a hundred files."""
    opens = []

    class Counts(OsFileSystem):
        def open_read(self, name: str, dir_fd: int | None = None) -> int:
            opens.append(name)
            return super().open_read(name, dir_fd)

    with opened(team, Counts()) as presence:
        assert write(presence)
        first = presence.read("lead")
        assert presence.read("lead", first) is first
        assert opens == ["lead.json"]
        assert write(presence, token="t2")
        second = presence.read("lead", first)
        assert second.presence is not None
        assert second.presence.token == "t2"


def test_a_mode_that_changes_is_noticed(presence: PresenceDirectory, team: Path) -> None:
    """A file that is opened to others later passes, because its content is unchanged."""
    assert write(presence)
    sighting = presence.read("lead")
    (team / "presence" / "lead.json").chmod(0o644)
    assert presence.read("lead", sighting).fault == "unsafe"


@pytest.mark.parametrize("call", ["stat", "open_read", "fstat", "read", "open_dir"])
@pytest.mark.parametrize("error", [errno.EMFILE, errno.EIO, errno.ENOMEM])
def test_a_failed_look_is_no_absence(presence: PresenceDirectory, team: Path, call: str, error: int) -> None:
    """An observer without descriptors finds everybody missing, and sweeps the living."""
    assert write(presence)
    with opened(team) as blind:
        blind._fs = failing(call, error)
        sighting = blind.read("lead")
    assert (sighting.presence, sighting.fault, sighting.version) == (None, "unreadable", None)


def test_a_file_that_goes_between_stat_and_open(presence: PresenceDirectory, team: Path) -> None:
    """A member that leaves while it is looked at ends the look with an error."""

    class Overtaken(OsFileSystem):
        def open_read(self, name: str, dir_fd: int | None = None) -> int:
            (team / "presence" / name).unlink()
            return super().open_read(name, dir_fd)

    assert write(presence)
    with opened(team, Overtaken()) as overtaken:
        assert overtaken.read("lead").fault == "missing"


def test_a_file_that_grows_while_it_is_read(presence: PresenceDirectory, team: Path) -> None:
    """A file that was small when it was looked at is read to an end that never comes."""

    class Grows(OsFileSystem):
        def read(self, fd: int, size: int) -> bytes:
            assert super().read(fd, 0) == b""
            return b" " * size

    assert write(presence)
    with opened(team, Grows()) as grows:
        assert grows.read("lead").fault == "malformed"


def test_a_file_that_may_not_be_opened_counts_as_missing(presence: PresenceDirectory, team: Path) -> None:
    """A presence without permissions, which the next heartbeat heals, is taken for a look that failed."""
    assert write(presence)
    with opened(team, failing("open_read", errno.EACCES)) as blind:
        assert blind.read("lead").fault == "unsafe"


def test_descriptors_are_closed(team: Path) -> None:
    """A session leaks a descriptor at each heartbeat or look, and after a day has none left."""
    open_files = "/proc/self/fd" if os.path.exists("/proc/self/fd") else "/dev/fd"
    before = len(os.listdir(open_files))
    directory = TeamDirectory(OsFileSystem(), str(team.parent), team.name)
    with directory, PresenceDirectory(directory) as presence:
        assert write(presence)
        put(team, b"{", "broken")
        os.mkfifo(team / "presence" / "fifo.json")
        during = len(os.listdir(open_files))
        for alias in ("lead", "broken", "fifo", "nobody"):
            presence.read(alias)
        assert write(presence)
        assert presence.remove("lead", "t1")
        assert len(os.listdir(open_files)) == during
    assert len(os.listdir(open_files)) == before

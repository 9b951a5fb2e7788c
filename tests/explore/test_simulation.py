"""The simulated file system against the real one, and what only it can show."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import tempfile
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calls import MISS, perform
from disk import blank
from pi_team.record.filesystem import OsFileSystem
from powercut import persisted, synced
from simulation import SimulatedFileSystem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_team.record.filesystem import FileSystem

NAMES = st.sampled_from(["f", "g", "d", "e", "l"])
PLACES = st.sampled_from(["top", "sub", "gone"])
ONE = st.tuples(
    st.sampled_from(["open_dir", "open_read", "create", "mkdir", "unlink", "rmdir", "stat"]), PLACES, NAMES
)
TWO = st.tuples(st.sampled_from(["link", "rename"]), PLACES, NAMES, PLACES, NAMES)
OPEN = st.tuples(st.sampled_from(["fstat", "read", "write", "fsync", "listdir", "close"]), st.integers(0, 3))


class Side:
    """One of two file systems on which the same calls are made."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        self.fs = fs
        self.path = path
        self.open: list[int] = []
        for name in ("sub", "gone"):
            fs.mkdir(f"{path}/{name}")
        self.places = {"top": fs.open_dir(path)}
        self.places |= {name: fs.open_dir(f"{path}/{name}") for name in ("sub", "gone")}
        fs.rmdir(f"{path}/gone")

    def do(self, step: tuple[Any, ...]) -> Any:
        """The answer of a step, with what must be the same on both sides."""
        method, *rest = step
        try:
            if method in ("link", "rename"):
                return getattr(self.fs, method)(rest[1], self.places[rest[0]], rest[3], self.places[rest[2]])
            if isinstance(rest[0], int):
                return self._on_descriptor(method, rest[0])
            answer = getattr(self.fs, method)(rest[1], self.places[rest[0]])
            if method == "stat":
                return self._seen(answer)
        except OSError as error:
            return errno.errorcode[error.errno or 0]
        if answer is not None:
            self.open.append(answer)
        return answer is not None

    def _on_descriptor(self, method: str, index: int) -> Any:
        if index >= len(self.open):
            return None
        fd = self.open[index]
        if method == "close":
            return self.fs.close(self.open.pop(index))
        if method == "read":
            return self.fs.read(fd, 3)
        if method == "write":
            return self.fs.write(fd, b"data")
        answer = getattr(self.fs, method)(fd)
        if method == "listdir":
            return sorted(answer)
        return self._seen(answer) if method == "fstat" else answer

    def _seen(self, status: os.stat_result) -> Any:
        same = [self.fs.fstat(fd).st_ino == status.st_ino for fd in (*self.places.values(), *self.open)]
        if status.st_mode & 0o170000 == 0o040000:
            return status.st_mode, same  # how many names a directory has, and its size, differ by file system
        return status.st_mode, status.st_nlink, status.st_size, status.st_uid, same


@contextlib.contextmanager
def sides() -> Iterator[tuple[Side, Side]]:
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as path:
        real, simulated = OsFileSystem(), SimulatedFileSystem(blank("/top"))
        both = Side(real, path), Side(simulated, "/top")
        os.symlink("f", f"{path}/l")
        simulated.symlink("f", "/top/l")
        try:
            yield both
        finally:
            for fd in (*both[0].open, *both[0].places.values()):
                os.close(fd)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(ONE, TWO, OPEN), max_size=40))
def test_every_call_answers_as_the_real_one(steps: list[tuple[Any, ...]]) -> None:
    """Any sequence of calls: the same answers, errors, link counts and identities as the kernel's."""
    with sides() as (real, simulated):
        for step in steps:
            assert simulated.do(step) == real.do(step), step


def test_sequences_reach_what_matters() -> None:
    """The cases that the protocol lives on, one by one, on both sides."""
    steps: list[tuple[Any, ...]] = [
        ("create", "top", "f"), ("write", 0), ("link", "top", "f", "sub", "g"),
        ("link", "top", "f", "sub", "g"),  # taken
        ("rename", "sub", "g", "top", "f"),  # of one inode: a no-op
        ("stat", "sub", "g"), ("rename", "top", "f", "top", "e"), ("stat", "top", "f"),
        ("open_read", "top", "l"), ("open_dir", "top", "l"), ("create", "gone", "f"),
        ("unlink", "sub", "g"), ("unlink", "top", "e"), ("fstat", 0),
    ]  # fmt: skip
    with sides() as (real, simulated):
        answers = [(simulated.do(step), real.do(step)) for step in steps]
    assert all(one == other for one, other in answers)
    words = [one for one, _ in answers if isinstance(one, str)]
    assert words == ["EEXIST", "ENOENT", "ELOOP", "ENOTDIR", "ENOENT"]


def simulated() -> tuple[SimulatedFileSystem, int]:
    fs = SimulatedFileSystem(blank("/top"))
    return fs, fs.open_dir("/top")


def put(fs: SimulatedFileSystem, top: int, name: str, data: bytes = b"data") -> int:
    """A synced file whose name is not; its number."""
    fd = fs.create(name, top)
    fs.write(fd, data)
    fs.fsync(fd)
    fs.close(fd)
    return fs.stat(name, top).st_ino


def test_number_is_reused_as_soon_as_nothing_pins_it() -> None:
    """A descriptor keeps the number of a file without a name; once it is closed the next file gets it."""
    fs, top = simulated()
    number = put(fs, top, "f")
    pin = fs.open_read("f", top)
    fs.unlink("f", top)
    assert put(fs, top, "g") != number
    fs.close(pin)
    assert put(fs, top, "h") == number


def left(fs: SimulatedFileSystem) -> set[tuple[tuple[str, bytes], ...]]:
    """The names and bytes of the directory in each disk that a power cut may leave."""
    found = set()
    for disk, _ in persisted(fs.disk):
        after = SimulatedFileSystem(disk)
        top = after.open_dir("/top")
        found.add(tuple((name, after.read(after.open_read(name, top), 99)) for name in after.listdir(top)))
    return found


def test_power_cut_keeps_any_subset_of_unsynced_names() -> None:
    """Two files made, one removed: eight disks; after the fsync of the directory one."""
    fs, top = simulated()
    put(fs, top, "old")
    fs.fsync(top)
    put(fs, top, "a")
    put(fs, top, "b")
    fs.unlink("old", top)
    names = {tuple(name for name, _ in disk) for disk in left(fs)}
    assert names == {
        tuple(sorted(chosen)) for n in range(4) for chosen in itertools.combinations(["a", "b", "old"], n)
    }
    fs.fsync(top)
    assert left(fs) == {(("a", b"data"), ("b", b"data"))}


def test_power_cut_leaves_an_old_file_under_a_replaced_name() -> None:
    """A rename over a name: the old bytes or the new, never none; the source is there still, or not."""
    fs, top = simulated()
    put(fs, top, "record", b"old")
    fs.fsync(top)
    put(fs, top, "new", b"new")
    fs.rename("new", top, "record", top)
    records = {dict(disk)["record"] for disk in left(fs)}
    assert records == {b"old", b"new"}
    assert {"new" in dict(disk) for disk in left(fs)} == {True, False}


def test_power_cut_tears_unsynced_data() -> None:
    """Bytes that were not synced are there, in part, or not."""
    fs, top = simulated()
    fd = fs.create("f", top)
    fs.write(fd, b"data")
    fs.fsync(top)
    assert left(fs) == {(("f", b""),), (("f", b"da"),), (("f", b"data"),)}
    fs.fsync(fd)
    assert left(fs) == {(("f", b"data"),)}


def test_power_cut_moves_a_directory_or_does_not() -> None:
    """A renamed directory has one of its names, never both, never none."""
    fs, top = simulated()
    fs.mkdir("t", top)
    fs.fsync(top)
    fs.rename("t", top, "u", top)
    found = set()
    for disk, _ in persisted(fs.disk):
        after = SimulatedFileSystem(disk)
        found.add(tuple(after.listdir(after.open_dir("/top"))))
    assert found == {("t",), ("u",)}


def test_listing_may_miss_what_comes_meanwhile() -> None:
    """Names that come or go between the begin and the end of a listing are in it, or not."""
    fs, top = simulated()
    put(fs, top, "goes")
    put(fs, top, "stays")
    begun = perform(fs, ("list_begin", (top,)))
    fs.unlink("goes", top)
    put(fs, top, "comes")
    assert perform(fs, ("list_end", (top, begun))) == ("comes", "goes", "stays")
    assert perform(fs, ("list_end", (top, begun)), MISS) == ("stays",)


def test_synced_disk_loses_nothing() -> None:
    """A power cut on a disk with everything durable leaves that disk."""
    fs, top = simulated()
    put(fs, top, "f")
    disk = synced(fs.disk)
    assert [after.key() for after, _ in persisted(disk)] == [disk.key()]


@pytest.mark.parametrize("method", ["open_read", "create"])
def test_dead_process_lets_go(method: str) -> None:
    """What a process had open is closed by its death, and its number is free."""
    fs, top = simulated()
    number = put(fs, top, "f")
    getattr(fs, method)("f" if method == "open_read" else "g", top)
    fs.unlink("f", top)
    fs.die()
    assert not fs.descriptors
    assert number in fs.disk.spare

"""The port on the operating system, and a file system that numbers two names of one file differently."""

from __future__ import annotations

import errno
import os
import signal
import stat
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from interposition import UnsyncedFileSystem
from pi_team.errors import RecordUnsafe, StorageError, UnsupportedFilesystem
from pi_team.record import filesystem
from pi_team.record.filesystem import (
    OsFileSystem,
    exists,
    link_error,
    open_private_dir,
    open_private_file,
    read_all,
    storage_error,
    write_all,
)
from worlds import World, put, read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def here(root: Path) -> Iterator[int]:
    fd = os.open(root, os.O_RDONLY)
    yield fd
    os.close(fd)


# --- syncing --------------------------------------------------------------------------------------


class Device:
    """What the kernel is asked for when a file is to be synced as macOS wants it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, full: int = 0, plain: int = 0) -> None:
        self.asked: list[str] = []
        self._answers = {"full": full, "plain": plain}
        monkeypatch.setattr(filesystem, "_FULL_SYNC", 51)
        monkeypatch.setattr(filesystem, "fcntl", SimpleNamespace(fcntl=lambda _fd, _what: self._ask("full")))
        monkeypatch.setattr(os, "fsync", lambda _fd: self._ask("plain"))

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if self._answers[what]:
            raise OSError(self._answers[what], os.strerror(self._answers[what]))


def test_full_sync_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """On macOS a plain fsync does not reach the medium: F_FULLFSYNC, and nothing else."""
    device = Device(monkeypatch)
    OsFileSystem().fsync(7)
    assert device.asked == ["full"]


@pytest.mark.parametrize("code", [errno.ENOTSUP, errno.EINVAL, errno.ENOTTY])
def test_plain_sync_where_the_full_one_is_not_supported(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Some file systems do not know it."""
    device = Device(monkeypatch, full=code)
    OsFileSystem().fsync(7)
    assert device.asked == ["full", "plain"]


def test_failed_full_sync_is_not_followed_by_a_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second sync on the same descriptor may report success for data that is gone."""
    device = Device(monkeypatch, full=errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        OsFileSystem().fsync(7)
    assert device.asked == ["full"]


# --- opening and creating -------------------------------------------------------------------------


def test_file_is_created_exclusively(root: Path, here: int) -> None:
    """Neither an existing file nor a link is written to, dangling or not."""
    fs = OsFileSystem()
    put(str(root / "file"), b"x")
    os.symlink("file", root / "link")
    os.symlink("nowhere", root / "dangling")
    for name in ("file", "link", "dangling"):
        with pytest.raises(FileExistsError):
            fs.create(name, here)
    assert read(str(root / "file")) == b"x"
    assert not (root / "nowhere").exists()


def test_descriptors_are_not_inherited(root: Path, here: int) -> None:
    """A program that a session starts must not keep a team's files open."""
    fs = OsFileSystem()
    put(str(root / "file"), b"x")
    for fd in (fs.open_dir(str(root)), fs.open_read("file", here), fs.create("new", here)):
        assert not os.get_inheritable(fd)
        fs.close(fd)


def test_descriptor_is_closed_when_the_mode_cannot_be_set(here: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A creation that fails half-way gives nobody a descriptor."""
    opened: list[int] = []

    def fchmod(fd: int, _mode: int) -> None:
        opened.append(fd)
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "fchmod", fchmod)
    with pytest.raises(PermissionError):
        OsFileSystem().create("file", here)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])


def test_opening_does_not_wait(root: Path, here: int) -> None:
    """A FIFO without a writer would block a plain open for ever."""
    os.mkfifo(root / "fifo", 0o600)
    signal.alarm(10)
    try:
        with pytest.raises(RecordUnsafe, match="not a regular file"):
            open_private_file(OsFileSystem(), "fifo", here, "fifo", 10)
    finally:
        signal.alarm(0)


@pytest.mark.parametrize("kind", ["link", "file", "socket"])
def test_what_is_no_directory(root: Path, here: int, kind: str) -> None:
    """It is refused and named for what it is; a link to a directory as well."""
    if kind == "link":
        os.symlink(".", root / "it")
    elif kind == "file":
        put(str(root / "it"), b"")
    else:
        os.mknod(root / "it", stat.S_IFSOCK | 0o600)
    with pytest.raises(RecordUnsafe, match="symbolic link" if kind == "link" else "not a directory"):
        open_private_dir(OsFileSystem(), "it", here, "it")


def test_socket_is_no_file(root: Path, here: int) -> None:
    """Opening one fails with ENXIO, which is no failure of the disk."""
    os.mknod(root / "socket", stat.S_IFSOCK | 0o600)
    with pytest.raises(RecordUnsafe, match="not a regular file"):
        open_private_file(OsFileSystem(), "socket", here, "socket", 10)


def test_existence(root: Path, here: int) -> None:
    """A dangling link is there; what cannot be told is an error."""
    fs = OsFileSystem()
    os.symlink("nowhere", root / "dangling")
    put(str(root / "file"), b"")
    assert exists(fs, "dangling", here)
    assert not exists(fs, "nothing", here)
    with pytest.raises(NotADirectoryError):
        exists(fs, "file/inside", here)


# --- reading and writing --------------------------------------------------------------------------


def test_reading_stops_one_byte_beyond_the_limit(root: Path, here: int) -> None:
    """So that the caller sees that there was more, and does not read all of it."""
    fs = OsFileSystem()
    put(str(root / "file"), b"x" * 100)
    for limit, expected in ((99, 100), (100, 100), (50, 51), (0, 1)):
        fd = fs.open_read("file", here)
        assert len(read_all(fs, fd, limit)) == expected
        fs.close(fd)


def test_short_reads(root: Path, here: int) -> None:
    """A file system may give less than was asked for."""

    class Short(UnsyncedFileSystem):
        def read(self, fd: int, size: int) -> bytes:
            return super().read(fd, min(size, 7))

    put(str(root / "file"), bytes(range(100)))
    fs = Short()
    fd = fs.open_read("file", here)
    assert read_all(fs, fd, 1_000) == bytes(range(100))
    fs.close(fd)


def test_writing_nothing(here: int) -> None:
    """No bytes need no call."""
    fs = OsFileSystem()
    fd = fs.create("file", here)
    write_all(fs, fd, b"")
    fs.close(fd)


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "your disk quota is used up"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EACCES, "permission denied"),
        (errno.EMFILE, "this process has too many files open"),
        (errno.EIO, "the device reports an input/output error"),
        (errno.EXDEV, os.strerror(errno.EXDEV)),
    ],
)
def test_cause_in_words(code: int, cause: str) -> None:
    """Every refusal of the system says what is wrong and what to do."""
    error = storage_error(OSError(code, os.strerror(code)), "cannot do it")
    assert isinstance(error, StorageError)
    assert str(error) == f"cannot do it: {cause}"
    assert error.hint


def test_error_without_a_number() -> None:
    """Some libraries raise an OSError with a text only."""
    assert str(storage_error(OSError("odd"), "cannot do it")) == "cannot do it: odd"


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.EMLINK])
def test_no_hard_links(code: int) -> None:
    """Not the disk is at fault but what it is formatted as."""
    error = link_error(OSError(code, os.strerror(code)), "cannot publish")
    assert isinstance(error, UnsupportedFilesystem)


# --- two numbers for one file -----------------------------------------------------------------------


class TwoNumbers(UnsyncedFileSystem):
    """Each name of a file has a number of its own, as on some network and user-space file systems."""

    def stat(self, name: str, dir_fd: int | None = None) -> os.stat_result:
        status = super().stat(name, dir_fd)
        if stat.S_ISDIR(status.st_mode):
            return status
        fields = list(status)
        fields[1] = hash(name) & 0xFFFFFF
        return os.stat_result(fields, {"st_mtime_ns": status.st_mtime_ns})


def test_identity_decides_where_numbers_differ(world: World) -> None:
    """The record's number is never that of the open file: its publication id says that it is unchanged."""
    world.plant(1)
    writer, other = world.writer("w", TwoNumbers()), world.writer("other", TwoNumbers())
    writer.append("a")
    world.plant_pending(3, ("r1", "a", "b"), "pending", private=True)
    writer.append("c")
    writer.fs.at("link", ".*.tmp -> *.json").before(lambda: other.append("d"))
    writer.append("e")
    assert world.items() == ("r1", "a", "b", "c", "d", "e")


def test_reader_where_numbers_differ(world: World) -> None:
    """It reads anew each time, and right."""
    world.plant(1)
    reader = world.writer("reader", TwoNumbers()).reader()
    assert reader.read().value == ("r1",)
    world.writer().append("x")
    assert reader.read().value == ("r1", "x")
    reader.close()

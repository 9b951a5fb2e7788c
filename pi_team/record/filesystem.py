"""The port: every system call that the protocol makes, and its operating-system implementation.

One seam under everything that touches the disk, where each call can be numbered, failed, killed,
stopped or traced. A method is one call of the kernel and nothing more; policy (which file is safe to
read, when to sync) lives above. Names are relative to a directory descriptor, so that a name never
resolves into another directory that later took the same path (docs/protocol.md, "Words").
All methods raise `OSError`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shlex
import stat
import sys
from typing import Final, Protocol

from pi_team.errors import RecordUnsafe, StorageError, UnsupportedFilesystem

PRIVATE_DIRECTORY: Final = 0o700
PRIVATE_FILE: Final = 0o600
_GROUP_OR_OTHER: Final = 0o077
_CHUNK: Final = 1 << 20
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None) if sys.platform == "darwin" else None


class FileSystem(Protocol):
    """The system calls of the protocol. `dir_fd` is an open directory descriptor, or None for a path."""

    def open_dir(self, name: str, dir_fd: int | None = None) -> int:
        """Open a directory for reading, not through a link; the descriptor is closed on exec."""

    def open_read(self, name: str, dir_fd: int | None = None) -> int:
        """Open a file for reading, not through a link and without waiting (a FIFO does not block)."""

    def create(self, name: str, dir_fd: int | None = None) -> int:
        """Create a file for writing, exclusively and with mode 0600 whatever the umask is."""

    def mkdir(self, name: str, dir_fd: int | None = None) -> None:
        """Create a directory with mode 0700 whatever the umask is."""

    def fstat(self, fd: int) -> os.stat_result:
        """Status of an open file."""

    def stat(self, name: str, dir_fd: int | None = None) -> os.stat_result:
        """Status of a name, not following a link."""

    def read(self, fd: int, size: int) -> bytes:
        """Read at most `size` bytes; empty at the end."""

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """Write some of `data`; the number of bytes taken."""

    def fsync(self, fd: int) -> None:
        """Make a file, or the names in a directory, survive a power cut. Never retried after a failure."""

    def close(self, fd: int) -> None:
        """Close a descriptor."""

    def link(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        """Give a file a second name; fails when the name exists."""

    def rename(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        """Give a file another name, replacing what bears it."""

    def unlink(self, name: str, dir_fd: int | None = None) -> None:
        """Remove a name of a file."""

    def rmdir(self, name: str, dir_fd: int | None = None) -> None:
        """Remove an empty directory."""

    def listdir(self, fd: int) -> list[str]:
        """The names in an open directory, in no order."""

    def touch(self, name: str, dir_fd: int | None = None) -> None:
        """Date a name now, by the clock of the file system."""


class OsFileSystem:
    """The port on the real operating system."""

    def open_dir(self, name: str, dir_fd: int | None = None) -> int:
        """See :class:`FileSystem`."""
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)

    def open_read(self, name: str, dir_fd: int | None = None) -> int:
        """See :class:`FileSystem`."""
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=dir_fd)

    def create(self, name: str, dir_fd: int | None = None) -> int:
        """See :class:`FileSystem`."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(name, flags, PRIVATE_FILE, dir_fd=dir_fd)
        try:
            os.fchmod(fd, PRIVATE_FILE)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def mkdir(self, name: str, dir_fd: int | None = None) -> None:
        """See :class:`FileSystem`."""
        os.mkdir(name, PRIVATE_DIRECTORY, dir_fd=dir_fd)
        os.chmod(name, PRIVATE_DIRECTORY, dir_fd=dir_fd)

    def fstat(self, fd: int) -> os.stat_result:
        """See :class:`FileSystem`."""
        return os.fstat(fd)

    def stat(self, name: str, dir_fd: int | None = None) -> os.stat_result:
        """See :class:`FileSystem`."""
        return os.stat(name, dir_fd=dir_fd, follow_symlinks=False)

    def read(self, fd: int, size: int) -> bytes:
        """See :class:`FileSystem`."""
        return os.read(fd, size)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """See :class:`FileSystem`."""
        return os.write(fd, data)

    def fsync(self, fd: int) -> None:
        """See :class:`FileSystem`; on macOS `F_FULLFSYNC`, plain where that is not supported."""
        if _FULL_SYNC is not None:
            try:
                fcntl.fcntl(fd, _FULL_SYNC)
            except OSError as error:
                if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                    raise
            else:
                return
        os.fsync(fd)

    def close(self, fd: int) -> None:
        """See :class:`FileSystem`."""
        os.close(fd)

    def link(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        """See :class:`FileSystem`."""
        os.link(source, target, src_dir_fd=source_dir_fd, dst_dir_fd=target_dir_fd, follow_symlinks=False)

    def rename(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        """See :class:`FileSystem`."""
        os.rename(source, target, src_dir_fd=source_dir_fd, dst_dir_fd=target_dir_fd)

    def unlink(self, name: str, dir_fd: int | None = None) -> None:
        """See :class:`FileSystem`."""
        os.unlink(name, dir_fd=dir_fd)

    def rmdir(self, name: str, dir_fd: int | None = None) -> None:
        """See :class:`FileSystem`."""
        os.rmdir(name, dir_fd=dir_fd)

    def listdir(self, fd: int) -> list[str]:
        """See :class:`FileSystem`."""
        return os.listdir(fd)

    def touch(self, name: str, dir_fd: int | None = None) -> None:
        """See :class:`FileSystem`."""
        os.utime(name, dir_fd=dir_fd, follow_symlinks=False)


# --- what every caller of the port needs ----------------------------------------------------------


def same_file(one: os.stat_result, other: os.stat_result) -> bool:
    """Whether two states are of one inode; only meaningful while a descriptor pins one of them."""
    return one.st_ino == other.st_ino and one.st_dev == other.st_dev


def exists(fs: FileSystem, name: str, dir_fd: int | None = None) -> bool:
    """Whether a name exists, a dangling link included. Raises OSError where that cannot be told."""
    try:
        fs.stat(name, dir_fd)
    except FileNotFoundError:
        return False
    return True


def write_all(fs: FileSystem, fd: int, data: bytes) -> None:
    """Write all of `data`, through short writes. Raises OSError; a write of nothing is ENOSPC."""
    view = memoryview(data)
    while view:
        taken = fs.write(fd, view)
        if taken <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        view = view[taken:]


def read_all(fs: FileSystem, fd: int, limit: int) -> bytes:
    """Read to the end, at most `limit` + 1 bytes, so that a caller sees that there was more."""
    chunks: list[bytes] = []
    left = limit + 1
    while left > 0:
        chunk = fs.read(fd, min(left, _CHUNK))
        if not chunk:
            break
        chunks.append(chunk)
        left -= len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def close_quietly(fs: FileSystem, fd: int) -> None:
    """Close a descriptor that was only read from: whatever the call says, nothing can be lost by it."""
    with contextlib.suppress(OSError):
        fs.close(fd)


def unlink_quietly(fs: FileSystem, name: str, dir_fd: int) -> bool:
    """Remove a name where that is possible; whether it was there and is gone. Never raises OSError."""
    try:
        fs.unlink(name, dir_fd)
    except OSError:
        return False
    return True


def _owner_fault(status: os.stat_result) -> str:
    if status.st_uid != os.geteuid():
        return f"belongs to user {status.st_uid} and not to you"
    if stat.S_IMODE(status.st_mode) & _GROUP_OR_OTHER:
        return f"is open to others (mode {stat.S_IMODE(status.st_mode):04o})"
    return ""


def directory_fault(status: os.stat_result) -> str:
    """Why a directory is not safe to use, or "" (docs/record-format.md, "Safe files")."""
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link"
    if not stat.S_ISDIR(status.st_mode):
        return "is not a directory"
    return _owner_fault(status)


def file_fault(status: os.stat_result, limit: int) -> str:
    """Why a file of at most `limit` bytes is unsafe to read, or "" (docs/record-format.md, "Safe files")."""
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link"
    if not stat.S_ISREG(status.st_mode):
        return "is not a regular file"
    fault = _owner_fault(status)
    if not fault and status.st_size > limit:
        return f"has {status.st_size:,} bytes, more than {limit:,}"
    return fault


def open_private_dir(fs: FileSystem, name: str, dir_fd: int | None, shown: str) -> int:
    """Open a directory that must be ours alone.

    Args:
        fs: the port.
        name: the name below `dir_fd`, or a path.
        dir_fd: an open directory, or None.
        shown: how an error names it.

    Raises:
        FileNotFoundError: it is not there.
        RecordUnsafe: it is a link, not a directory, another user's, or open to others.
        OSError: anything else that the system says.
    """
    try:
        fd = fs.open_dir(name, dir_fd)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
            status = fs.stat(name, dir_fd)
            raise RecordUnsafe(f"{shown} {directory_fault(status) or 'is not a directory'}") from error
        raise
    try:
        fault = directory_fault(fs.fstat(fd))
    except BaseException:
        fs.close(fd)
        raise
    if fault:
        fs.close(fd)
        raise RecordUnsafe(f"{shown} {fault}", hint=f"If it is yours: chmod 700 {shlex.quote(shown)}")
    return fd


def open_private_file(
    fs: FileSystem, name: str, dir_fd: int, shown: str, limit: int
) -> tuple[int, os.stat_result]:
    """Open a file that must be ours alone; its descriptor and status.

    Raises:
        FileNotFoundError: it is not there.
        RecordUnsafe: a link, not regular, another user's, open to others, or larger than `limit` bytes.
        OSError: anything else that the system says.
    """
    try:
        fd = fs.open_read(name, dir_fd)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise RecordUnsafe(f"{shown} is a symbolic link") from error
        if error.errno == errno.ENXIO:
            raise RecordUnsafe(f"{shown} is not a regular file") from error
        raise
    try:
        status = fs.fstat(fd)
    except BaseException:
        fs.close(fd)
        raise
    fault = file_fault(status, limit)
    if fault:
        fs.close(fd)
        raise RecordUnsafe(f"{shown} {fault}")
    return fd, status


_CAUSES: Final = {
    errno.ENOSPC: ("the disk is full", "Free some space and repeat; nothing was changed."),
    errno.EDQUOT: ("your disk quota is used up", "Free some space and repeat; nothing was changed."),
    errno.EROFS: ("the file system is read-only", "Looks work; changes need a writable file system."),
    errno.EACCES: ("permission denied", "Check the owner and mode of the directory; nothing was changed."),
    errno.EPERM: ("the system does not permit it", "Check the owner and mode of the directory."),
    errno.EMFILE: (
        "this process has too many files open",
        "Raise `ulimit -n` and repeat; nothing was changed.",
    ),
    errno.ENFILE: (
        "the machine has too many files open",
        "Close some programs and repeat; nothing was changed.",
    ),
    errno.EIO: ("the device reports an input/output error", "Check the disk; nothing was changed."),
}


def storage_error(error: OSError, doing: str) -> StorageError:
    """The error of an operation that the system refused, with its cause in words and what to do."""
    cause, hint = _CAUSES.get(error.errno or 0, (error.strerror or str(error), None))
    return StorageError(f"{doing}: {cause}", hint=hint)


def link_error(error: OSError, doing: str) -> StorageError | UnsupportedFilesystem:
    """As :func:`storage_error`, for a `link` that failed because the file system has no hard links."""
    if error.errno in _NO_LINKS:
        return UnsupportedFilesystem(f"{doing}: the file system refuses hard links ({error.strerror})")
    return storage_error(error, doing)

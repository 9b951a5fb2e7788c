"""Locks that are held while their file exists, which peers rely on too (docs/protocol.md, "Locks").

A file is created exclusively, and whoever releases the lock makes sure that it removes its own: the open
descriptor keeps the inode number from being given to another.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from pi_team.record.filesystem import FileSystem, close_quietly, same_file, unlink_quietly, write_all

if TYPE_CHECKING:
    from collections.abc import Callable

MARKER_BYTES: Final = 1_024
"""The most that is read of what a lock says of its holder."""


def stable_lock(team: str) -> str:
    """The name of a team's stable lock, in the directory of the locks."""
    return f"{team}.lock"


def take_marker(fs: FileSystem, name: str, dir_fd: int, text: bytes) -> Callable[[], None] | None:
    """Take a lock by creating its file; what releases it, or None where the file is there already.

    Args:
        fs: the port.
        name: the file's.
        dir_fd: its directory.
        text: what it says of its holder.

    Raises:
        OSError: the system refused; the file is gone again, as far as it could be removed.
    """
    try:
        fd = fs.create(name, dir_fd)
    except FileExistsError:
        return None

    def release() -> None:
        # What was published stays published whatever happens to the lock, which would expire anyway.
        try:
            with contextlib.suppress(OSError):
                remove_marker(fs, fd, name, dir_fd)
        finally:
            close_quietly(fs, fd)

    try:
        write_all(fs, fd, text)
    except BaseException:
        release()
        raise
    return release


def remove_marker(fs: FileSystem, fd: int, name: str, dir_fd: int) -> None:
    """Remove a lock's file where it still is the open one. Raises OSError where that cannot be told."""
    with contextlib.suppress(FileNotFoundError):
        if same_file(fs.fstat(fd), fs.stat(name, dir_fd)):
            unlink_quietly(fs, name, dir_fd)

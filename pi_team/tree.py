"""Removing a directory tree by descriptor, never through a link."""

from __future__ import annotations

import contextlib
import errno
import stat
import uuid
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_team.record.filesystem import FileSystem

_ROUNDS: Final = 100
"""A late writer may put something in while the rest is removed: this often it is looked at again."""


def remove_tree(fs: FileSystem, name: str, dir_fd: int) -> None:
    """Remove a directory and all that is in it; one that is not there is fine.

    However deep the tree is, two descriptors are open and the stack does not grow: a directory that is not
    empty is moved up to the top of the tree before its turn comes.

    Raises:
        OSError: something in it cannot be removed.
    """
    for _ in range(_ROUNDS):
        try:
            fd = fs.open_dir(name, dir_fd)
        except FileNotFoundError:
            return
        try:
            left = deque(fs.listdir(fd))
            while left:
                with contextlib.suppress(FileNotFoundError):
                    entry = left.popleft()
                    if stat.S_ISDIR(fs.stat(entry, fd).st_mode):
                        left.extend(_remove_directory(fs, entry, fd))
                    else:
                        fs.unlink(entry, fd)
        finally:
            fs.close(fd)
        if _is_removed(fs, name, dir_fd):
            return
    raise _still_written_into(name)


def _remove_directory(fs: FileSystem, name: str, top_fd: int) -> Iterator[str]:
    """Remove a directory; those in it that are not empty are moved beside it, under the names yielded."""
    for _ in range(_ROUNDS):
        fd = fs.open_dir(name, top_fd)
        try:
            for entry in fs.listdir(fd):
                with contextlib.suppress(FileNotFoundError):
                    if not stat.S_ISDIR(fs.stat(entry, fd).st_mode):
                        fs.unlink(entry, fd)
                    elif not _is_removed(fs, entry, fd):
                        moved = str(uuid.uuid4())
                        fs.rename(entry, fd, moved, top_fd)
                        yield moved
        finally:
            fs.close(fd)
        if _is_removed(fs, name, top_fd):
            return
    raise _still_written_into(name)


def _is_removed(fs: FileSystem, name: str, dir_fd: int) -> bool:
    """Remove an empty directory; False where it is not empty. Raises OSError."""
    try:
        fs.rmdir(name, dir_fd)
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def _still_written_into(name: str) -> OSError:
    return OSError(errno.ENOTEMPTY, f"something goes on writing into {name}")

"""Removing a directory tree by descriptor, never through a link."""

from __future__ import annotations

import errno
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pi_team.record.filesystem import FileSystem

_ROUNDS: Final = 100
"""A late writer may put something in while the rest is removed: this often it is looked at again."""


def remove_tree(fs: FileSystem, name: str, dir_fd: int) -> None:
    """Remove a directory and all that is in it; one that is not there is fine. Raises OSError."""
    for _ in range(_ROUNDS):
        try:
            fd = fs.open_dir(name, dir_fd)
        except FileNotFoundError:
            return
        try:
            for entry in fs.listdir(fd):
                try:
                    if stat.S_ISDIR(fs.stat(entry, fd).st_mode):
                        remove_tree(fs, entry, fd)
                    else:
                        fs.unlink(entry, fd)
                except FileNotFoundError:
                    continue
        finally:
            fs.close(fd)
        try:
            fs.rmdir(name, dir_fd)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            return
    raise OSError(errno.ENOTEMPTY, f"something goes on writing into {name}")

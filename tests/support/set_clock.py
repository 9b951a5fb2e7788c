"""A wall clock that can be set, for all processes that share its file at once, whatever they are doing."""

from __future__ import annotations

import mmap
import os
import struct
from typing import Final

from interposition import UnsyncedFileSystem
from pi_team.clocks import SystemClock

_OFFSET: Final = struct.Struct("d")


class SetClock(SystemClock):
    """The system's clocks, the wall clock off by what stands in a file.

    Args:
        path: the file; made where it is missing.
    """

    __slots__ = ("_shared",)

    def __init__(self, path: str) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.truncate(fd, _OFFSET.size)
        self._shared = mmap.mmap(fd, _OFFSET.size)
        os.close(fd)

    def wall(self) -> float:
        """Seconds since 1970, as the clock is set."""
        offset: float = _OFFSET.unpack_from(self._shared)[0]
        return super().wall() + offset

    def step(self, seconds: float) -> None:
        """Set the clock forward, or back."""
        _OFFSET.pack_into(self._shared, 0, self.wall() - super().wall() + seconds)


class SetFileSystem(UnsyncedFileSystem):
    """Files that are dated by such a clock where they are dated anew."""

    def __init__(self, clock: SetClock) -> None:
        self._clock = clock

    def touch(self, name: str, dir_fd: int | None = None) -> None:
        """Date a file as now."""
        now = self._clock.wall()
        os.utime(name, (now, now), dir_fd=dir_fd, follow_symlinks=False)

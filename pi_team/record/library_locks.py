"""What the library `filelock` does for the stable lock (docs/protocol.md, "Locks").

It makes the first lock of a process, and knows whether the holder of one that is there is dead or too old,
and how such a lock is taken over.
"""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from functools import partial
from typing import TYPE_CHECKING

from pi_team.errors import RecordUnsafe
from pi_team.record.filesystem import FileSystem, close_quietly, open_private_file, read_all, unlink_quietly
from pi_team.record.markers import MARKER_BYTES, stable_lock

if TYPE_CHECKING:
    from collections.abc import Callable

    from filelock import SoftFileLock

    from pi_team.clocks import Clock

_warning = threading.RLock()
"""Which warnings are told is of the whole process: two threads that change it by turns leave it changed."""


class LibraryLocks:
    """The library's locks in one directory, for one process.

    Args:
        fs: the port.
        clock: the clock by which a left marker is judged.
        directory: the path of the directory.
        lifetime: seconds after which an abandoned lock is reclaimed.
        is_old: whether the lock of a team is gone or that old.
    """

    def __init__(
        self,
        fs: FileSystem,
        clock: Clock,
        directory: str,
        *,
        lifetime: float,
        is_old: Callable[[str], bool],
    ) -> None:
        self._fs = fs
        self._clock = clock
        self._directory = directory
        self._lifetime = lifetime
        self._is_old = is_old
        self._local = threading.local()
        self._learned: tuple[int, bytes] | None = None

    @property
    def text(self) -> bytes | None:
        """What the library writes into a lock of this process; None before it has made one."""
        if self._learned is None or self._learned[0] != os.getpid():
            return None
        return self._learned[1]

    def attempt(self, team: str, locks_fd: int) -> Callable[[], None] | None:
        """Take the lock if it is free, or its holder dead or too old; what releases it, or None.

        Raises:
            OSError: the system refused.
        """
        from filelock import Timeout  # noqa: PLC0415 - as below

        lock = self._library_lock(team)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            self._remove_stranded(team, locks_fd)
            return None
        try:
            self._learn_text(team, locks_fd)
        except BaseException:
            _release(lock)  # an interrupt: the lock would be in everybody's way for its lifetime
            raise
        return partial(_release, lock)

    def _remove_stranded(self, team: str, locks_fd: int) -> None:
        """Let the library take an old lock from a process that was stopped while it took it over itself.

        Such a process has set the marker that it replaces aside under a name with its pid: while it lives,
        the library leaves the lock alone, however old that is.
        """
        if not self._is_old(team):
            return
        with contextlib.suppress(OSError):
            for name in self._fs.listdir(locks_fd):
                if name.startswith((f"{stable_lock(team)}.break.", f"{stable_lock(team)}.restore.")):
                    status = self._fs.stat(name, locks_fd)
                    # When it was set aside, not made; that is ahead where the clock was set back since.
                    if abs(self._clock.wall() - status.st_ctime) >= self._lifetime:
                        unlink_quietly(self._fs, name, locks_fd)

    def _learn_text(self, team: str, locks_fd: int) -> None:
        """Remember what the library writes for this process, which is the same each time."""
        with contextlib.suppress(OSError, RecordUnsafe):
            name, pid = stable_lock(team), os.getpid()
            fd, _ = open_private_file(self._fs, name, locks_fd, name, MARKER_BYTES)
            try:
                text = read_all(self._fs, fd, MARKER_BYTES)
            finally:
                close_quietly(self._fs, fd)
            if text.startswith(b"%d\n" % pid):  # else it has been stolen this moment
                self._learned = (pid, text)

    def _library_lock(self, team: str) -> SoftFileLock:
        # One a thread and process: the library's instances are bound to both.
        key = (os.getpid(), team)
        known: dict[tuple[int, str], SoftFileLock] = self._local.__dict__.setdefault("locks", {})
        if key not in known:
            from filelock import SoftFileLock, SoftFileLockLifetimeWarning  # noqa: PLC0415 - 60 ms, writers only

            with _warning, warnings.catch_warnings():
                # The library warns that an expired lock can overlap its holder; we build on that.
                warnings.simplefilter("ignore", SoftFileLockLifetimeWarning)
                path = f"{self._directory}/{stable_lock(team)}"
                known[key] = SoftFileLock(path, mode=0o600, lifetime=self._lifetime)
        return known[key]


def _release(lock: SoftFileLock) -> None:
    # What was published stays published whatever happens to the lock, which would expire anyway.
    with contextlib.suppress(OSError):
        lock.release()

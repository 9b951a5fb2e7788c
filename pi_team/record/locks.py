"""The two locks that keep writers from working in vain (docs/protocol.md, "Locks").

Safety never depends on them: a lock can be stolen from a paused holder, and the publication protocol
is right all the same. The stable lock is a `filelock.SoftFileLock` outside the team's directory, so that
a rename or a deletion fences stale writers without re-creating it. A process takes it by the library once;
from then on it makes a free one itself, with the text that the library wrote, and leaves to the library what
is there already: whether its holder is dead or its lifetime over, and taking it over then. The library reads
/proc each time, which costs as much as everything else that a write computes.
The compatibility lock lies inside, where peers before 0.6 look; it is a plain exclusive create, because a
library that creates missing parents would resurrect a deleted team.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import threading
import warnings
from functools import partial
from typing import TYPE_CHECKING, Final

from pi_team.errors import Busy, RecordUnsafe
from pi_team.limits import LOCK_LIFETIME, LOCK_POLL_INTERVAL, SLOW_NOTICE
from pi_team.record import turns
from pi_team.record.filesystem import (
    FileSystem,
    close_quietly,
    file_fault,
    open_private_dir,
    open_private_file,
    read_all,
    storage_error,
    unlink_quietly,
)
from pi_team.record.markers import remove_marker, take_marker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filelock import SoftFileLock

    from pi_team.clocks import Clock

LOCKS_DIRECTORY: Final = ".locks"
COMPATIBILITY_LOCK: Final = "state.json.lock"
_LOCK_BYTES: Final = 1_024
_FULL_LOOK_INTERVAL: Final = 0.1
"""Seconds between two attempts of the library, each of which also asks whether the holder is dead; in
between only the lock's name is looked at, which costs a hundredth of an attempt."""
_YOUNG: Final = 0.02
"""Age in seconds up to which a lock is taken for that of a writer at work, and the library not asked."""
_TURNLESS: Final = 1.0
"""Seconds without turns after one was waited for in vain: whoever has it was stopped, as a rule."""
_NEXT_LOOK: Final = 0.0001
"""Seconds after which whoever is next looks first whether the lock is free."""
_FUTURE: Final = 1.0
"""Seconds by which a lock may be dated after now before the clock must have stepped back."""


class Patience:
    """How long an operation waits, over all its locks and retries together.

    Args:
        clock: the clock to wait on.
        seconds: how long.
        notice: called once with what is being waited for, when the wait has lasted a second.
    """

    def __init__(self, clock: Clock, seconds: float, notice: Callable[[str], None] | None = None) -> None:
        self._clock = clock
        self._start = clock.monotonic()
        self._seconds = seconds
        self._notice = notice

    def wait(self, reason: str, interval: float = LOCK_POLL_INTERVAL) -> None:
        """Sleep for about `interval` seconds, at random, so that waiters do not move in step.

        Raises:
            Busy: the time is over.
        """
        waited = self._clock.monotonic() - self._start
        if waited >= self._seconds:
            raise Busy(f"waited {self._seconds:g} s for {reason}")
        if self._notice is not None and waited >= SLOW_NOTICE:
            self._notice(f"waiting for {reason}")
            self._notice = None
        self._clock.sleep(interval * random.uniform(0.5, 1.5))  # noqa: S311 - spreads waiters, guards nothing


class Locks:
    """The locks of one teams directory, for one process.

    Args:
        fs: the port.
        clock: the clock by which a lock's age is judged.
        path: the path of the teams directory.
        owner: this process, as it stands in file names.
        is_dead: whether the owner of that token is known to have exited.
        lifetime: seconds after which an abandoned lock is reclaimed.
    """

    def __init__(
        self,
        fs: FileSystem,
        clock: Clock,
        path: str,
        *,
        owner: Callable[[], str],
        is_dead: Callable[[str], bool],
        lifetime: float = LOCK_LIFETIME,
    ) -> None:
        self._fs = fs
        self._clock = clock
        self._directory = os.path.join(path, LOCKS_DIRECTORY)
        self._owner = owner
        self._is_dead = is_dead
        self._lifetime = lifetime
        self._local = threading.local()
        self._text: tuple[int, bytes] | None = None
        self._turnless_until = 0.0

    @contextlib.contextmanager
    def stable(self, *teams: str, patience: Patience, team_fd: int | None = None) -> Iterator[None]:
        """Hold the stable locks of the teams, taken in lexical order so that two renames cannot deadlock.

        Args:
            teams: whose.
            patience: bounds the waiting.
            team_fd: the open directory of the one team: the place where its writers take turns.

        Raises:
            Busy: another writer held one for as long as `patience` lasts.
            RecordUnsafe: the directory of the locks is not ours alone.
            StorageError: the system refused.
        """
        with contextlib.ExitStack() as held:
            locks_fd = self._open_directory()
            held.callback(close_quietly, self._fs, locks_fd)
            for team in sorted(set(teams)):
                held.callback(self._acquire(team, locks_fd, patience, team_fd))
            yield

    @contextlib.contextmanager
    def compatibility(self, team_fd: int, team: str, patience: Patience) -> Iterator[None]:
        """Hold the compatibility lock inside an open team directory; the stable lock is held already.

        Raises:
            Busy, RecordUnsafe, StorageError: as for :meth:`stable`.
        """
        # Who holds it: a writer that finds it need not wait for a dead one. Peers do not look inside.
        text = self._owner().encode()
        try:
            while (release := take_marker(self._fs, COMPATIBILITY_LOCK, team_fd, text)) is None:
                self._reclaim_compatibility(team_fd)
                patience.wait(f"an older pi-team that holds {team}/{COMPATIBILITY_LOCK}")
        except OSError as error:
            raise storage_error(error, f"cannot lock team {team}") from error
        try:
            yield
        finally:
            release()

    # --- the stable lock

    def _open_directory(self) -> int:
        shown = self._directory
        try:
            try:
                return open_private_dir(self._fs, shown, None, shown)
            except FileNotFoundError:
                with contextlib.suppress(FileExistsError):
                    self._fs.mkdir(shown)
                return open_private_dir(self._fs, shown, None, shown)
        except OSError as error:
            raise storage_error(error, f"cannot use {shown}") from error

    def _lock_path(self, team: str) -> str:
        return f"{self._directory}/{team}.lock"

    def _library_lock(self, team: str) -> SoftFileLock:
        # One a thread and process: the library's instances are bound to both.
        key = (os.getpid(), team)
        known: dict[tuple[int, str], SoftFileLock] = self._local.__dict__.setdefault("locks", {})
        if key not in known:
            from filelock import SoftFileLock, SoftFileLockLifetimeWarning  # noqa: PLC0415 - 60 ms, writers only

            with warnings.catch_warnings():
                # The library warns that an expired lock can overlap its holder; we build on that.
                warnings.simplefilter("ignore", SoftFileLockLifetimeWarning)
                known[key] = SoftFileLock(self._lock_path(team), mode=0o600, lifetime=self._lifetime)
        return known[key]

    def _acquire(
        self, team: str, locks_fd: int, patience: Patience, team_fd: int | None
    ) -> Callable[[], None]:
        """Take the lock in turn; what releases it."""
        since, look = self._clock.monotonic(), _YOUNG
        # As a rule: nobody waits, so nobody holds it.
        is_next = seems_free = turns.take_turn(team_fd) or since < self._turnless_until
        try:
            while not seems_free or (release := self._attempt(team, locks_fd)) is None:
                if is_next:
                    self._await_change(team, patience, since, look)
                    seems_free, look = True, _FULL_LOOK_INTERVAL
                else:
                    is_next = self._await_turn(team, patience, team_fd)
                    since = self._clock.monotonic()
                    seems_free = not is_next or self._seems_free(team)
        finally:
            if is_next:
                turns.end_turn(team_fd)
        return release

    def _attempt(self, team: str, locks_fd: int) -> Callable[[], None] | None:
        """Take the lock if it is free or abandoned; what releases it, or None."""
        try:
            if self._text is not None and self._text[0] == os.getpid():
                with contextlib.suppress(FileNotFoundError):  # the library makes that directory anew
                    release = take_marker(self._fs, f"{team}.lock", locks_fd, self._text[1])
                    if release is not None:
                        return release
                    if self._age_of(team) < _YOUNG:
                        return None
            return self._attempt_by_library(team, locks_fd)
        except OSError as error:
            raise storage_error(error, f"cannot lock team {team}") from error

    def _attempt_by_library(self, team: str, locks_fd: int) -> Callable[[], None] | None:
        from filelock import Timeout  # noqa: PLC0415 - as below

        lock = self._library_lock(team)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            self._remove_stranded(team, locks_fd)
            return None
        self._learn_text(team, locks_fd)
        return partial(_release, lock)

    def _remove_stranded(self, team: str, locks_fd: int) -> None:
        """Let the library take an old lock from a process that was stopped while it took it over itself.

        Such a process has set the marker that it replaces aside under a name with its pid: while it lives,
        the library leaves the lock alone, however old that is.
        """
        if not self._seems_free(team):
            return
        with contextlib.suppress(OSError):
            for name in self._fs.listdir(locks_fd):
                if name.startswith((f"{team}.lock.break.", f"{team}.lock.restore.")):
                    status = self._fs.stat(name, locks_fd)
                    changed = max(status.st_mtime, status.st_ctime)  # a marker just set aside is old itself
                    if self._clock.wall() - changed >= self._lifetime:
                        unlink_quietly(self._fs, name, locks_fd)

    def _learn_text(self, team: str, locks_fd: int) -> None:
        """Remember what the library writes for this process, which is the same each time."""
        with contextlib.suppress(OSError, RecordUnsafe):
            name, pid = f"{team}.lock", os.getpid()
            fd, _ = open_private_file(self._fs, name, locks_fd, name, _LOCK_BYTES)
            try:
                text = read_all(self._fs, fd, _LOCK_BYTES)
            finally:
                close_quietly(self._fs, fd)
            if text.startswith(b"%d\n" % pid):  # else it has been stolen this moment
                self._text = (pid, text)

    def _await_turn(self, team: str, patience: Patience, team_fd: int | None) -> bool:
        """Wait to be next; False after a while, since who is next may have been stopped."""
        began = self._clock.monotonic()
        while (waited := self._clock.monotonic() - began) < _FULL_LOOK_INTERVAL:
            patience.wait(_holder_of(team), turns.interval(waited))
            if turns.take_turn(team_fd):
                return True
        self._turnless_until = self._clock.monotonic() + _TURNLESS
        return False

    def _await_change(self, team: str, patience: Patience, since: float, look: float) -> None:
        """Wait until a full attempt is worth its cost: the name is gone or old, or some time has passed.

        Args:
            team: whose lock.
            patience: bounds the waiting.
            since: when this writer became next; it looks ever more seldom.
            look: seconds until a full attempt.
        """
        until = self._clock.monotonic() + look
        while (now := self._clock.monotonic()) < until:
            patience.wait(_holder_of(team), min(_NEXT_LOOK + (now - since) / 20, LOCK_POLL_INTERVAL))
            if self._seems_free(team):
                return

    def _seems_free(self, team: str) -> bool:
        """Whether the lock's name is gone or old."""
        try:
            return self._age_of(team) >= self._lifetime
        except OSError as error:
            raise storage_error(error, f"cannot lock team {team}") from error

    def _age_of(self, team: str) -> float:
        """The age of the stable lock in seconds; that of one which is gone is infinite. Raises OSError."""
        path = self._lock_path(team)
        try:
            status = self._fs.stat(path)
        except FileNotFoundError:
            return math.inf
        return self._age(status, path, None)

    def _age(self, status: os.stat_result, name: str, dir_fd: int | None) -> float:
        """The age of a lock in seconds; one from the future is dated anew, and expires like any other."""
        age = self._clock.wall() - status.st_mtime
        if age < -_FUTURE:
            with contextlib.suppress(OSError):
                self._fs.touch(name, dir_fd)
            return 0.0
        return age

    # --- the compatibility lock

    def _reclaim_compatibility(self, team_fd: int) -> None:
        """Remove the lock where its holder is dead or its lifetime over; the stable lock is held."""
        try:
            fd = self._fs.open_read(COMPATIBILITY_LOCK, team_fd)
        except FileNotFoundError:
            return
        try:
            status = self._fs.fstat(fd)
            fault = file_fault(status, _LOCK_BYTES)
            if fault:
                hint = "Remove it when no pi-team is running."
                raise RecordUnsafe(f"{COMPATIBILITY_LOCK} {fault}", hint=hint)
            owner = read_all(self._fs, fd, _LOCK_BYTES).decode(errors="replace")
            abandoned = self._age(status, COMPATIBILITY_LOCK, team_fd) >= self._lifetime
            if abandoned or (owner and self._is_dead(owner)):
                remove_marker(self._fs, fd, COMPATIBILITY_LOCK, team_fd)
        finally:
            self._fs.close(fd)


def _release(lock: SoftFileLock) -> None:
    # As above: an error of the release must not turn a publication that took effect into a failure.
    with contextlib.suppress(OSError):
        lock.release()


def _holder_of(team: str) -> str:
    return f"another writer that holds the lock of team {team}"

"""The two locks that keep writers from working in vain (docs/protocol.md, "Locks").

Safety never depends on them: a lock can be stolen from a paused holder, and the publication protocol
is right all the same. The stable lock is a `filelock.SoftFileLock` outside the team's directory, so that
a rename or a deletion fences stale writers without re-creating it. The compatibility lock lies inside,
where peers before 0.6 look; it is a plain exclusive create, because a library that creates missing
parents would resurrect a deleted team.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import threading
import warnings
from typing import TYPE_CHECKING, Final

from pi_team.errors import Busy, RecordUnsafe
from pi_team.limits import LOCK_LIFETIME, LOCK_POLL_INTERVAL, SLOW_NOTICE
from pi_team.record.filesystem import (
    FileSystem,
    file_fault,
    open_private_dir,
    read_all,
    same_file,
    storage_error,
    unlink_quietly,
    write_all,
)

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
_NEXT_LOOK: Final = 0.0005
"""Seconds after which whoever is next looks first whether the lock is free."""
_TURN_LOOK: Final = (0.01, 0.001)
"""Seconds between two looks of the others whether they are next: when they begin to wait, and at least."""
_TURN_HALVED: Final = 0.02
"""Seconds of waiting after which that has halved: who waits for long comes before who just came."""
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
        self._ensure_directory()
        with contextlib.ExitStack() as held:
            for team in sorted(set(teams)):
                lock = self._library_lock(team)
                self._acquire(lock, team, patience, team_fd)
                held.callback(_release, lock)
            yield

    @contextlib.contextmanager
    def compatibility(self, team_fd: int, team: str, patience: Patience) -> Iterator[None]:
        """Hold the compatibility lock inside an open team directory; the stable lock is held already.

        Raises:
            Busy, RecordUnsafe, StorageError: as for :meth:`stable`.
        """
        try:
            while (fd := self._try_compatibility(team_fd)) is None:
                patience.wait(f"an older pi-team that holds {team}/{COMPATIBILITY_LOCK}")
        except OSError as error:
            raise storage_error(error, f"cannot lock team {team}") from error
        try:
            yield
        finally:
            self._release_compatibility(fd, team_fd)

    # --- the stable lock

    def _ensure_directory(self) -> None:
        shown = self._directory
        try:
            try:
                self._fs.close(open_private_dir(self._fs, shown, None, shown))
            except FileNotFoundError:
                with contextlib.suppress(FileExistsError):
                    self._fs.mkdir(shown)
                self._fs.close(open_private_dir(self._fs, shown, None, shown))
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

    def _acquire(self, lock: SoftFileLock, team: str, patience: Patience, team_fd: int | None) -> None:
        """Take the lock in turn: of all who wait, one is next, and the others wait to be that.

        Otherwise whoever releases the lock finds it free before anybody else looks, again and again, and all
        who wait wake up for one lock.
        """
        is_next = seems_free = _take_turn(team_fd)  # as a rule: nobody waits, so nobody holds it
        since = self._clock.monotonic()
        try:
            while not (seems_free and self._attempt(lock, team)):
                if is_next:
                    self._await_change(team, patience, since)
                    seems_free = True
                else:
                    is_next = self._await_turn(team, patience, team_fd)
                    since = self._clock.monotonic()
                    seems_free = not is_next or self._seems_free(team)
        finally:
            if is_next:
                _end_turn(team_fd)

    def _attempt(self, lock: SoftFileLock, team: str) -> bool:
        from filelock import Timeout  # noqa: PLC0415 - as above

        try:
            lock.acquire(blocking=False)
        except Timeout:
            return False
        except OSError as error:
            raise storage_error(error, f"cannot lock team {team}") from error
        return True

    def _await_turn(self, team: str, patience: Patience, team_fd: int | None) -> bool:
        """Wait to be next; False after a while, since who is next may have been stopped."""
        began = self._clock.monotonic()
        while (waited := self._clock.monotonic() - began) < _FULL_LOOK_INTERVAL:
            first, least = _TURN_LOOK
            patience.wait(_holder_of(team), max(first / (1 + waited / _TURN_HALVED), least))
            if _take_turn(team_fd):
                return True
        return False

    def _await_change(self, team: str, patience: Patience, since: float) -> None:
        """Wait until a full attempt is worth its cost: the name is gone or old, or some time has passed.

        Args:
            team: whose lock.
            patience: bounds the waiting.
            since: when this writer became next; it looks ever more seldom.
        """
        until = self._clock.monotonic() + _FULL_LOOK_INTERVAL
        while (now := self._clock.monotonic()) < until:
            patience.wait(_holder_of(team), min(_NEXT_LOOK + (now - since) / 20, LOCK_POLL_INTERVAL))
            if self._seems_free(team):
                return

    def _seems_free(self, team: str) -> bool:
        """Whether the lock's name is gone or old."""
        try:
            status = self._fs.stat(self._lock_path(team))
        except FileNotFoundError:
            return True
        except OSError as error:
            raise storage_error(error, f"cannot lock team {team}") from error
        return self._age(status, self._lock_path(team), None) >= self._lifetime

    def _age(self, status: os.stat_result, name: str, dir_fd: int | None) -> float:
        """The age of a lock in seconds; one from the future is dated anew, and expires like any other."""
        age = self._clock.wall() - status.st_mtime
        if age < -_FUTURE:
            with contextlib.suppress(OSError):
                self._fs.touch(name, dir_fd)
            return 0.0
        return age

    # --- the compatibility lock

    def _try_compatibility(self, team_fd: int) -> int | None:
        try:
            fd = self._fs.create(COMPATIBILITY_LOCK, team_fd)
        except FileExistsError:
            self._reclaim_compatibility(team_fd)
            return None
        try:
            # Who holds it: a writer that finds it need not wait for a dead one. Peers do not look inside.
            write_all(self._fs, fd, self._owner().encode())
        except BaseException:
            self._release_compatibility(fd, team_fd)
            raise
        return fd

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
                self._unlink_own(fd, team_fd)
        finally:
            self._fs.close(fd)

    def _release_compatibility(self, fd: int, team_fd: int) -> None:
        # What was published stays published whatever happens to the lock, which would expire anyway.
        with contextlib.suppress(OSError):
            self._unlink_own(fd, team_fd)
        with contextlib.suppress(OSError):
            self._fs.close(fd)

    def _unlink_own(self, fd: int, team_fd: int) -> None:
        """Remove the name only where it still is the open file, which the descriptor pins."""
        with contextlib.suppress(FileNotFoundError):
            if same_file(self._fs.fstat(fd), self._fs.stat(COMPATIBILITY_LOCK, team_fd)):
                unlink_quietly(self._fs, COMPATIBILITY_LOCK, team_fd)


def _release(lock: SoftFileLock) -> None:
    # As above: an error of the release must not turn a publication that took effect into a failure.
    with contextlib.suppress(OSError):
        lock.release()


def _holder_of(team: str) -> str:
    return f"another writer that holds the lock of team {team}"


def _take_turn(team_fd: int | None) -> bool:
    """Become the next to take the lock, by a `flock` of the team's directory; whether nobody else is.

    It orders who waits and guards nothing: the kernel takes it from who dies, and where there is no such
    lock, or no directory, everybody is next.
    """
    if team_fd is None:
        return True
    try:
        fcntl.flock(team_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _end_turn(team_fd: int | None) -> None:
    if team_fd is not None:
        with contextlib.suppress(OSError):
            fcntl.flock(team_fd, fcntl.LOCK_UN)

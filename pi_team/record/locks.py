"""The two locks that keep writers from working in vain (docs/protocol.md, "Locks").

Safety never depends on them: a lock can be stolen from a paused holder, and the publication protocol
is right all the same. The stable lock is a `filelock.SoftFileLock` outside the team's directory, so that
a rename or a deletion fences stale writers without re-creating it. A process takes it by the library once;
from then on it makes a free one itself, with the text that the library wrote, and leaves what is there
already to the library, which reads /proc each time. The compatibility lock lies inside, where peers before
0.6 look; it is a plain exclusive create, because a library that creates missing parents would resurrect a
deleted team.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
from typing import TYPE_CHECKING, Final

from pi_team.errors import Busy, RecordUnsafe
from pi_team.limits import LOCK_LIFETIME, LOCK_POLL_INTERVAL, SLOW_NOTICE
from pi_team.record import turns
from pi_team.record.filesystem import (
    FileSystem,
    close_quietly,
    file_fault,
    open_private_dir,
    read_all,
    storage_error,
)
from pi_team.record.library_locks import LibraryLocks
from pi_team.record.markers import MARKER_BYTES, remove_marker, stable_lock, take_marker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pi_team.clocks import Clock

LOCKS_DIRECTORY: Final = ".locks"
COMPATIBILITY_LOCK: Final = "state.json.lock"
_FULL_LOOK_INTERVAL: Final = 0.1
"""Seconds between two attempts of the library, each of which also asks whether the holder is dead; in
between only the lock's name is looked at, which costs a hundredth of an attempt."""
_YOUNG: Final = 0.02
"""Age in seconds up to which a lock is taken for that of a writer at work, and the library not asked."""
_TURNLESS: Final = 1.0
"""Seconds without turns once the lock was free and whoever had the turn did not take it: it was stopped."""
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

    def waited(self) -> float:
        """Seconds since the operation began."""
        return self._clock.monotonic() - self._start

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """What is done within waits for no lock, and does not count."""
        began = self._clock.monotonic()
        try:
            yield
        finally:
            self._start += self._clock.monotonic() - began

    def wait(self, reason: str, interval: float = LOCK_POLL_INTERVAL) -> None:
        """Sleep for about `interval` seconds, at random, so that waiters do not move in step.

        Raises:
            Busy: the time is over.
        """
        waited = self.waited()
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
        self._library = LibraryLocks(fs, clock, self._directory, lifetime=lifetime, is_old=self._seems_free)
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
        return f"{self._directory}/{stable_lock(team)}"

    def _acquire(
        self, team: str, locks_fd: int, patience: Patience, team_fd: int | None
    ) -> Callable[[], None]:
        """Take the lock in turn; what releases it."""
        since, look, lay_free = self._clock.monotonic(), _YOUNG, False
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
                    lay_free = not is_next and self._lies_free(team, patience)
        finally:
            if is_next:
                turns.end_turn(team_fd)
        if lay_free:
            self._turnless_until = self._clock.monotonic() + _TURNLESS
        return release

    def _attempt(self, team: str, locks_fd: int) -> Callable[[], None] | None:
        """Take the lock if it is free or abandoned; what releases it, or None."""
        try:
            text = self._library.text
            if text is not None:
                with contextlib.suppress(FileNotFoundError):  # the library makes that directory anew
                    release = take_marker(self._fs, stable_lock(team), locks_fd, text)
                    if release is not None:
                        return release
                    if self._age_of(team) < _YOUNG:
                        return None
            return self._library.attempt(team, locks_fd)
        except OSError as error:
            raise storage_error(error, f"cannot lock team {team}") from error

    def _await_turn(self, team: str, patience: Patience, team_fd: int | None) -> bool:
        """Wait to be next; False after a while, since who is next may have been stopped."""
        until = self._clock.monotonic() + _FULL_LOOK_INTERVAL
        while self._clock.monotonic() < until:
            patience.wait(_holder_of(team), turns.interval(patience.waited()))
            if turns.take_turn(team_fd):
                return True
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

    def _lies_free(self, team: str, patience: Patience) -> bool:
        """Whether the lock is free, and whoever is next does not take it: as a rule it was stopped."""
        if not self._seems_free(team):
            return False
        patience.wait(_holder_of(team))
        return self._seems_free(team)

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
            fault = file_fault(status, MARKER_BYTES)
            if fault:
                hint = "Remove it when no pi-team is running."
                raise RecordUnsafe(f"{COMPATIBILITY_LOCK} {fault}", hint=hint)
            owner = read_all(self._fs, fd, MARKER_BYTES).decode(errors="replace")
            abandoned = self._age(status, COMPATIBILITY_LOCK, team_fd) >= self._lifetime
            if abandoned or (owner and self._is_dead(owner)):
                remove_marker(self._fs, fd, COMPATIBILITY_LOCK, team_fd)
        finally:
            self._fs.close(fd)


def _holder_of(team: str) -> str:
    return f"another writer that holds the lock of team {team}"

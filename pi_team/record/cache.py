"""Lock-free reads of one record, kept while the inode stays (docs/protocol.md, "Reading").

A reader opens the record and reads it; it needs nothing else. It also notices a publication that was
linked and not installed, and completes it, so that a crash is mended within seconds even if nobody
writes. Where completing fails the reader may follow the chain in memory, and what it showed never goes
back.

Threads may share a reader: one reads at a time, and the others wait, for each that comes before and helps
at most for its patience.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from pi_team.errors import PiTeamError, TeamUnknown
from pi_team.limits import LOOK_PATIENCE
from pi_team.record.directory import RECORD, REVISIONS, TeamDirectory
from pi_team.record.envelope import Damaged
from pi_team.record.filesystem import FileSystem, close_quietly, exists, same_file, storage_error
from pi_team.record.locks import Patience
from pi_team.record.reading import Codec, Pinned, Version, pin_record, read_slot, slot_name

if TYPE_CHECKING:
    from pi_team.clocks import Clock
    from pi_team.record.publication import Publisher

T = TypeVar("T")

_LIVING_WRITER: Final = 0.002
"""Seconds that a living writer usually needs from its link to its rename: looked at again before helping."""
_LIVING_LOOKS: Final = 3
_RESTARTS: Final = 8


class Reader(Generic[T]):
    """The record of one team as this process sees it.

    Args:
        fs: the port.
        clock: for the short waits of a helping read.
        path: the path of the teams directory.
        team: the team's name.
        codec: of the payload.
        publisher: completes what is pending; None for a reader that never helps.
    """

    def __init__(
        self,
        fs: FileSystem,
        clock: Clock,
        path: str,
        team: str,
        *,
        codec: Codec[T],
        publisher: Publisher | None,
    ) -> None:
        self._fs = fs
        self._clock = clock
        self._path = path
        self._team = team
        self._codec = codec
        self._publisher = publisher
        self._pinned: Pinned[T] | None = None
        self._shown: Version[T] | None = None
        self._directory: TeamDirectory | None = None
        # Reentrant: a handler of a signal may look while the look that it interrupted goes on after it.
        self._lock = threading.RLock()

    def read(self) -> Version[T]:
        """The record now, or what follows it in memory where a pending publication cannot be completed.

        Raises:
            TeamUnknown, TeamMoved, RecordMissing, RecordUnsafe, RecordCorrupt, UnsupportedSchema,
            StorageError.
        """
        with self._lock:
            for _ in range(_LIVING_LOOKS):
                version = self._refresh()
                if not self._has_pending(version):
                    return self._show(version)
                self._clock.sleep(_LIVING_WRITER)
            return self._show(self._complete())

    def close(self) -> None:
        """Let go of the pinned record and its team's directory; what was shown is kept for the next read."""
        with self._lock:
            self._pin(None, None)

    def _pin(self, pinned: Pinned[T] | None, directory: TeamDirectory | None) -> None:
        """Hold these open from here on, and no longer what was held before.

        That is forgotten before it is closed: whoever is interrupted in between leaves a descriptor open, and
        nobody closes its number once more, which may be another file's by then.
        """
        before, self._pinned = self._pinned, pinned
        then, self._directory = self._directory, directory
        try:
            if before is not None:
                close_quietly(self._fs, before.fd)
        finally:
            if then is not None:
                then.close()

    def _refresh(self) -> Version[T]:
        """The installed record, read anew only where it is another file."""
        if self._pinned is not None:
            try:
                now = self._fs.stat(os.path.join(self._path, self._team, RECORD))
            except OSError:
                pass  # reading it anew says what is wrong
            else:
                then = self._pinned.status
                if (
                    same_file(now, then)
                    and now.st_mtime_ns == then.st_mtime_ns
                    and now.st_size == then.st_size
                    and now.st_mode == then.st_mode
                ):
                    return self._pinned.version
        with contextlib.ExitStack() as opened:
            team = opened.enter_context(self._open())
            pinned = pin_record(team, self._codec)
            opened.callback(close_quietly, self._fs, pinned.fd)
            if self._is_another(team, pinned.version):
                self._shown = None  # nothing of the old team of that name is carried over
            opened.pop_all()
        self._pin(pinned, team)
        return pinned.version

    def _is_another(self, team: TeamDirectory, version: Version[T]) -> bool:
        """Whether it is not the directory of the last read, whose number is not reused while it is open.

        Where it was closed meanwhile, and the record is behind what was shown, the history tells: it holds
        what was shown, or nobody knows that it is the same team.
        """
        try:
            if self._directory is not None:
                return not same_file(self._fs.fstat(team.fd), self._fs.fstat(self._directory.fd))
            shown = self._shown
            if shown is None or version.revision >= shown.revision:
                return False
            with contextlib.suppress(PiTeamError, Damaged):
                if team.open_history(create=False):
                    found = read_slot(team, shown.revision)
                    return found is None or found.identity != shown.previous.identity
        except OSError as error:
            raise storage_error(error, f"cannot look at team {self._team}") from error
        return True

    def _has_pending(self, version: Version[T]) -> bool:
        try:
            return exists(
                self._fs,
                os.path.join(self._path, self._team, REVISIONS, slot_name(version.revision + 1)),
            )
        except OSError:
            return False  # without a history that can be looked at, the record speaks for itself

    def _complete(self) -> Version[T]:
        if self._publisher is not None:
            patience = Patience(self._clock, LOOK_PATIENCE)
            try:
                self._publisher.publish(self._open, self._codec, lambda value: value, patience)
                return self._refresh()
            except TeamUnknown:
                raise
            except PiTeamError:
                pass  # a look never fails because helping failed
        return self._follow() or self._refresh()

    def _open(self) -> TeamDirectory:
        return TeamDirectory(self._fs, self._path, self._team)

    def _follow(self) -> Version[T] | None:
        """The end of the chain above the record, in memory; None where it cannot be followed or synced."""
        if self._publisher is None:
            return None
        with contextlib.suppress(PiTeamError, OSError, Damaged), self._open() as team:
            if not team.open_history(create=False):
                return None
            for _ in range(_RESTARTS):
                pinned = pin_record(team, self._codec)
                try:
                    scan = self._publisher.scan(team, self._codec, pinned, install=False)
                finally:
                    close_quietly(self._fs, pinned.fd)
                if scan is not None:
                    return scan.base
        return None

    def _show(self, version: Version[T]) -> Version[T]:
        """What was shown never goes back, until the record has caught up with it."""
        if self._shown is not None and version.revision < self._shown.revision:
            return self._shown
        self._shown = version
        return version

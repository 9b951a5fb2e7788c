"""An open team directory: the descriptors that every call of an attempt is relative to.

A writer that slept over a deletion and re-creation of the team goes on in the directory that it opened,
and :meth:`TeamDirectory.is_current` tells it so (docs/protocol.md, "Words").
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, Self

from pi_team.errors import TeamMoved, TeamUnknown
from pi_team.record.filesystem import (
    FileSystem,
    close_quietly,
    open_private_dir,
    same_file,
    storage_error,
)

if TYPE_CHECKING:
    import os
    from types import TracebackType

RECORD: Final = "state.json"
REVISIONS: Final = "revisions"
PRESENCE: Final = "presence"


class TeamDirectory:
    """A team's directory and its history, opened once and used by descriptor.

    Args:
        fs: the port.
        path: the path of the teams directory.
        name: the name of the team's directory; assigned anew when the caller moves it.

    Raises:
        TeamUnknown: there is no such directory, or no teams directory.
        RecordUnsafe: one of the directories is not ours alone.
        StorageError: the system refused.
    """

    def __init__(self, fs: FileSystem, path: str, name: str) -> None:
        self.fs = fs
        self.path = path
        self.name = name
        self.fd = -1
        self.revisions_fd = -1
        self._status: os.stat_result | None = None
        try:
            # Both are looked at: whoever can write to teams/ could put another directory into it.
            teams_fd = open_private_dir(fs, path, None, path)
            try:
                self.fd = open_private_dir(fs, name, teams_fd, self._full)
            finally:
                close_quietly(fs, teams_fd)
        except FileNotFoundError as error:
            raise TeamUnknown(f"there is no team {name} in {path}") from error
        except OSError as error:
            raise storage_error(error, f"cannot open {self._full}") from error
        except BaseException:
            self.close()  # an interrupt: nobody has this to close it
            raise

    @property
    def _full(self) -> str:
        return f"{self.path}/{self.name}"  # os.path.join costs as much as a system call

    def open_history(self, *, create: bool) -> bool:
        """Open `revisions/`; whether it is there. A legacy team gets one with `create`, not synced yet.

        Raises:
            RecordUnsafe: it is not ours alone.
            OSError: the system refused.
        """
        if self.revisions_fd >= 0:
            return True
        shown = self.shown(REVISIONS)
        try:
            self.revisions_fd = open_private_dir(self.fs, REVISIONS, self.fd, shown)
        except FileNotFoundError:
            if not create:
                return False
            with contextlib.suppress(FileExistsError):
                self.fs.mkdir(REVISIONS, self.fd)
            self.revisions_fd = open_private_dir(self.fs, REVISIONS, self.fd, shown)
        return True

    def is_current(self) -> bool:
        """Whether the team's path still names the directory that was opened. Raises OSError."""
        try:
            there = self.fs.stat(self._full)
        except (FileNotFoundError, NotADirectoryError):
            return False
        if self._status is None:  # which directory a descriptor is open on does not change
            self._status = self.fs.fstat(self.fd)
        return same_file(there, self._status)

    def shown(self, name: str) -> str:
        """A name in the team's directory as an error shows it."""
        return f"{self._full}/{name}"

    def close(self) -> None:
        """Close the descriptors."""
        revisions_fd, self.revisions_fd = self.revisions_fd, -1
        fd, self.fd = self.fd, -1  # forgotten first: closed again, their numbers may be another file's
        try:
            if revisions_fd >= 0:
                close_quietly(self.fs, revisions_fd)
        finally:
            if fd >= 0:
                close_quietly(self.fs, fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def has_moved(team: TeamDirectory) -> bool:
    """Whether the path of an open team is known to name another directory by now, or none."""
    with contextlib.suppress(OSError):
        return not team.is_current()
    return False


def moved(team: str) -> TeamMoved:
    """What an operation says whose team is no longer where it was opened."""
    return TeamMoved(f"team {team} was renamed or deleted meanwhile")

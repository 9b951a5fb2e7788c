"""The directory of the teams: the names in it, opening one, and moving one.

Everything is relative to a descriptor of that directory, which must be ours alone (docs/record-format.md,
"Safe files"). What a move looks at, and when, is told in docs/protocol.md, "Directories".
"""

from __future__ import annotations

import contextlib
import errno
import re
from typing import TYPE_CHECKING, Final

from pi_team.errors import NameInvalid, OutcomeUnknown, TeamExists, UnsupportedFilesystem
from pi_team.limits import NAME_PATTERN
from pi_team.record.directory import TeamDirectory, moved
from pi_team.record.filesystem import FileSystem, close_quietly, open_private_dir, storage_error

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME: Final = re.compile(NAME_PATTERN)
_TAKEN: Final = frozenset({errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR})
_IMMOVABLE: Final = frozenset({errno.EXDEV, errno.EBUSY})


def is_name(name: str) -> bool:
    """Whether it can be the name of a team or of a member."""
    return _NAME.fullmatch(name) is not None


def check_name(name: str, what: str = "team name") -> None:
    """Refuse what is no name. Raises NameInvalid."""
    if not is_name(name):
        raise NameInvalid(f"{name!r} is not a valid {what}")


class TeamsDirectory:
    """The directory that holds the teams; it need not be there yet.

    Args:
        fs: the port.
        path: its path.
    """

    def __init__(self, fs: FileSystem, path: str) -> None:
        self._fs = fs
        self.path = path

    def open(self, team: str) -> TeamDirectory:
        """Open a team's directory. Raises NameInvalid, TeamUnknown, RecordUnsafe, StorageError."""
        check_name(team)
        return TeamDirectory(self._fs, self.path, team)

    @contextlib.contextmanager
    def _open_teams(self) -> Iterator[int]:
        fd = open_private_dir(self._fs, self.path, None, self.path)
        try:
            yield fd
        finally:
            close_quietly(self._fs, fd)

    def _move(self, directory: TeamDirectory, target: str) -> None:
        """Move an open team to another name below the teams directory, and sync that.

        Raises:
            TeamExists: the other name is taken.
            TeamMoved: what bears the team's name is not what was opened, or is gone.
            UnsupportedFilesystem, StorageError: refused; it is where it was.
            OutcomeUnknown: it may have been moved, or was and may not survive a power cut.
        """
        source = directory.name
        try:
            with self._open_teams() as teams_fd:
                failure: OSError | None = None
                try:
                    self._place(source, target, teams_fd)
                except OSError as error:
                    failure = error
                # Whatever the call said: the new name tells whether it took effect, and on what.
                directory.name = target
                if not self._bears_its_name(directory, source):
                    directory.name = source
                    if failure is not None:
                        raise failure
                    # What bore the name was not what was opened: put it back where it was.
                    self._place(target, source, teams_fd)
                    raise moved(source)
                self._sync(teams_fd, f"the directory of team {source} was moved")
        except FileNotFoundError as error:
            raise moved(source) from error
        except OSError as error:
            raise storage_error(error, f"cannot move team {source}") from error

    def _bears_its_name(self, directory: TeamDirectory, source: str) -> bool:
        try:
            return directory.is_current()
        except OSError as error:
            raise OutcomeUnknown(
                f"the directory of team {source} may have been moved to {directory.name}: {error}"
            ) from error

    def _place(self, source: str, target: str, teams_fd: int) -> None:
        try:
            self._fs.rename(source, teams_fd, target, teams_fd)
        except OSError as error:
            if error.errno in _TAKEN:
                raise TeamExists(f"team {target} exists already") from error
            if error.errno in _IMMOVABLE:
                raise UnsupportedFilesystem(f"the directory of team {source} cannot be moved") from error
            raise

    def _sync(self, teams_fd: int, done: str) -> None:
        try:
            self._fs.fsync(teams_fd)
        except OSError as error:
            raise OutcomeUnknown(f"{done}, and may not survive a power cut: {error}") from error

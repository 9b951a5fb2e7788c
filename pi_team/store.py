"""A teams directory: which teams there are, and making one (docs/protocol.md, "Directories").

There is never a team without a record: one is built complete under a hidden name and renamed into place.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from typing import TYPE_CHECKING, Final

from pi_team.errors import TeamExists, UnsupportedFilesystem
from pi_team.record import envelope
from pi_team.record.directory import PRESENCE, RECORD, REVISIONS
from pi_team.record.filesystem import (
    FileSystem,
    close_quietly,
    exists,
    link_error,
    same_file,
    storage_error,
    write_all,
)
from pi_team.record.reading import slot_name
from pi_team.relocation import Relocation
from pi_team.teams import check_name, is_name
from pi_team.tree import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_team.record.locks import Patience

NEW_PREFIX: Final = ".new-"


def default_path() -> str:
    """The teams directory of this user: below `$PI_CODING_AGENT_DIR`, or `~/.pi/agent/teams`."""
    configured = os.environ.get("PI_CODING_AGENT_DIR", "")
    base = os.path.expanduser(configured) if configured else os.path.expanduser("~/.pi/agent")
    return os.path.join(os.path.abspath(base), "teams")


class Store(Relocation):
    """The teams below one directory; the arguments are those of :class:`Relocation`."""

    def names(self, *, links: bool = False) -> list[str]:
        """The names of the team directories, sorted; empty where nothing was ever created.

        Args:
            links: whether also of symbolic links that stand where a team would, and are none.

        Raises:
            RecordUnsafe: the teams directory is not ours alone.
            StorageError: the system refused.
        """
        try:
            with self._open_teams() as teams_fd:
                return sorted(
                    name
                    for name in self._fs.listdir(teams_fd)
                    if is_name(name) and _is_directory(self._fs, name, teams_fd, links=links)
                )
        except FileNotFoundError:
            return []
        except OSError as error:
            raise storage_error(error, f"cannot read {self.path}") from error

    # --- create

    def create(self, team: str, payload: str, patience: Patience) -> None:
        """Build a team complete under a hidden name and rename it into place, at revision 1.

        Raises:
            NameInvalid, TeamExists, UnsupportedFilesystem, RecordUnsafe, Busy, StorageError: refused, nothing
                is there.
            OutcomeUnknown: the team is in place and may not survive a power cut.
        """
        check_name(team)
        try:
            self._ensure_path()
            # The checks begin at the teams directory: not even a lock is put into an unsafe one.
            with self._open_teams() as teams_fd, self._locks.stable(team, patience=patience):
                if exists(self._fs, team, teams_fd):
                    raise TeamExists(f"team {team} exists already")
                hidden = f"{NEW_PREFIX}{team}-{uuid.uuid4()}.{self._author().owner}"
                try:
                    self._build(hidden, teams_fd, payload)
                    self._appear(hidden, team, teams_fd)
                except BaseException:
                    with contextlib.suppress(OSError):
                        remove_tree(self._fs, hidden, teams_fd)
                    raise
                self._sync(teams_fd, f"team {team} was created")
        except OSError as error:
            raise storage_error(error, f"cannot create team {team}") from error

    def _appear(self, hidden: str, team: str, teams_fd: int) -> None:
        try:
            self._place(hidden, team, teams_fd)
        except OSError:
            # Whatever the call said: the hidden name is this creation's alone, and gone once it took effect.
            if exists(self._fs, hidden, teams_fd):
                raise

    def probe(self) -> None:
        """Try, in a hidden directory, what the protocol needs of the file system; nothing is left.

        Raises:
            UnsupportedFilesystem: it lacks something.
            StorageError: it refuses to be written to.
            RecordUnsafe: the teams directory is not ours alone.
        """
        hidden = f"{NEW_PREFIX}probe-{uuid.uuid4()}.{self._author().owner}"
        try:
            with self._open_teams() as teams_fd:
                try:
                    self._build(hidden, teams_fd, "")
                finally:
                    remove_tree(self._fs, hidden, teams_fd)
        except OSError as error:
            raise storage_error(error, f"cannot write to {self.path}") from error

    def _ensure_path(self) -> None:
        """Create the teams directory and the missing ones above it, each synced into its parent."""
        missing: list[str] = []
        path = self.path
        while not os.path.isdir(path) and not os.path.lexists(path):
            missing.append(path)
            path = os.path.dirname(path)
        for path in reversed(missing):
            # Opened first: nothing is made where it could not be synced, because it may not be read.
            parent_fd = self._fs.open_dir(os.path.realpath(os.path.dirname(path)))
            try:
                with contextlib.suppress(FileExistsError):
                    self._fs.mkdir(path)
                self._fs.fsync(parent_fd)
            finally:
                close_quietly(self._fs, parent_fd)

    def _build(self, hidden: str, teams_fd: int, payload: str) -> None:
        fs = self._fs
        fs.mkdir(hidden, teams_fd)
        with _opened(fs, hidden, teams_fd) as team_fd:
            fs.mkdir(REVISIONS, team_fd)
            fs.mkdir(PRESENCE, team_fd)
            with _opened(fs, REVISIONS, team_fd) as revisions_fd:
                author = self._author()
                publication = author.new_publication()
                private = f".{publication.id}.{author.owner}.tmp"
                fd = fs.create(private, revisions_fd)
                try:
                    write_all(fs, fd, envelope.encode(1, payload, publication, envelope.NOTHING, {})[0])
                    fs.fsync(fd)
                finally:
                    fs.close(fd)
                self._probe_links(private, revisions_fd)
                fs.rename(private, revisions_fd, RECORD, team_fd)
                self._sync_directory(revisions_fd)
            with _opened(fs, PRESENCE, team_fd) as presence_fd:
                self._sync_directory(presence_fd)
            self._sync_directory(team_fd)

    def _probe_links(self, private: str, revisions_fd: int) -> None:
        """Link the first slot, and see that a link is exclusive and two names are one file."""
        fs, slot = self._fs, slot_name(1)
        try:
            fs.link(private, revisions_fd, slot, revisions_fd)
        except OSError as error:
            raise link_error(error, "cannot create a team here") from error
        with contextlib.suppress(FileExistsError):
            fs.link(private, revisions_fd, slot, revisions_fd)
            raise UnsupportedFilesystem("the file system lets a hard link replace an existing name")
        if not same_file(fs.stat(private, revisions_fd), fs.stat(slot, revisions_fd)):
            raise UnsupportedFilesystem("the file system gives two links of one file different identities")

    def _sync_directory(self, fd: int) -> None:
        try:
            self._fs.fsync(fd)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
                raise UnsupportedFilesystem("the file system cannot sync a directory") from error
            raise


@contextlib.contextmanager
def _opened(fs: FileSystem, name: str, dir_fd: int) -> Iterator[int]:
    fd = fs.open_dir(name, dir_fd)
    try:
        yield fd
    finally:
        close_quietly(fs, fd)


def _is_directory(fs: FileSystem, name: str, dir_fd: int, *, links: bool) -> bool:
    try:
        mode = fs.stat(name, dir_fd).st_mode
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(mode) or (links and stat.S_ISLNK(mode))

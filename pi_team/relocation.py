"""Moving a team's directory: rename and delete (docs/protocol.md, "Directories").

Both fence writers and heartbeats that slept: what they hold open is no longer where the team's name points.
What the payload says is the caller's business: it comes in as functions.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import attrs

from pi_team.errors import (
    OutcomeUnknown,
    PiTeamError,
    RecordCorrupt,
    RecordMissing,
    RecordUnsafe,
    StorageError,
    TeamExists,
    TeamMoved,
    TeamUnknown,
    UnsupportedSchema,
)
from pi_team.record.attempt import Conflict
from pi_team.record.directory import TeamDirectory, has_moved, moved
from pi_team.record.filesystem import exists, storage_error
from pi_team.record.publication import CONFLICT_WAIT, Author, Publisher
from pi_team.teams import TeamsDirectory, check_name
from pi_team.tree import remove_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pi_team.record.filesystem import FileSystem
    from pi_team.record.locks import Locks, Patience
    from pi_team.record.reading import Codec

T = TypeVar("T")

TOMBSTONE_PREFIX: Final = ".deleted-"
UNREADABLE: Final = (RecordCorrupt, RecordMissing, RecordUnsafe, UnsupportedSchema)
"""What is said of a record that is there no more, or that nobody can use."""


@attrs.frozen(slots=True)
class Terms(Generic[T]):
    """What a payload means to a rename or a deletion.

    Attributes:
        codec: text ↔ payload.
        vacate: sweeps the dead from a payload, and the refusal where somebody is alive or unknown; it is
            given the open directory, which may bear another name by then.
    """

    codec: Codec[T]
    vacate: Callable[[T, TeamDirectory], tuple[T, PiTeamError | None]]


class _Renaming(Generic[T]):
    """Reads payloads that name the old team or the new, and writes ones that name the new.

    The new one too: a rename that was cut between its link and its installation left a slot that names the
    new team above a record that names the old.
    """

    def __init__(self, before: Codec[T], after: Codec[T]) -> None:
        self._before = before
        self._after = after
        self.encode = after.encode
        self._renamed: list[T] = []

    def decode(self, text: str) -> T:
        try:
            value = self._before.decode(text)
        except ValueError:
            with contextlib.suppress(ValueError):
                self._renamed[:] = [self._after.decode(text)]
                return self._renamed[0]
            raise
        self._renamed.clear()
        return value

    def is_renamed(self, value: T) -> bool:
        """Whether the value that was decoded last names the new team already."""
        return any(value is renamed for renamed in self._renamed)


class Relocation(TeamsDirectory):
    """Renames and deletes the teams below one directory.

    Args:
        fs: the port.
        path: the path of the teams directory.
        locks: its locks.
        publisher: publishes in its teams.
        author: this process.
    """

    def __init__(
        self,
        fs: FileSystem,
        path: str,
        *,
        locks: Locks,
        publisher: Publisher,
        author: Callable[[], Author],
    ) -> None:
        super().__init__(fs, path)
        self._locks = locks
        self._publisher = publisher
        self._author = author

    # --- rename

    def rename(
        self,
        team: str,
        new: str,
        *,
        before: Terms[T],
        after: Codec[T],
        retitle: Callable[[T], T],
        patience: Patience,
    ) -> None:
        """Rename a team in which nobody is alive; repeating it completes one that was cut in half.

        Args:
            team: the name now.
            new: the name to be.
            before: of payloads that name `team`.
            after: of payloads that name `new`.
            retitle: the payload under the new name.
            patience: bounds all waiting.

        Raises:
            NameInvalid, TeamUnknown, TeamExists, TeamActive, UnsupportedFilesystem, Busy and the errors of a
            publication; OutcomeUnknown and TeamMoved as there.
        """
        check_name(team)
        check_name(new)
        if team == new:
            raise TeamExists(f"team {team} has that name already")
        self._require_path(team)
        with self._locks.stable(team, new, patience=patience):
            if self._is_half_renamed(new, before.codec, after):
                with self.open(new) as directory, self._inner(directory, patience):
                    self._sync_half(team, new)
                    self._finish_rename(directory, before, after, retitle, patience)
                return
            with self.open(team) as directory:
                self._refuse_taken(new)
                with self._inner(directory, patience):
                    self._require_vacant(directory, before, patience)
                    self._move(directory, new)
                    try:
                        self._finish_rename(directory, before, after, retitle, patience)
                    except (OutcomeUnknown, TeamMoved):
                        raise
                    except PiTeamError:
                        self._move(directory, team)  # refused before anything was published: as it was
                        raise

    def _require_path(self, team: str) -> None:
        """Refuse before a lock is put into a directory that nobody made, or that is not ours alone.

        Raises:
            TeamUnknown, RecordUnsafe, StorageError.
        """
        try:
            with self._open_teams():
                pass
        except FileNotFoundError as error:
            raise TeamUnknown(f"there is no team {team} in {self.path}") from error
        except OSError as error:
            raise storage_error(error, f"cannot read {self.path}") from error

    def _refuse_taken(self, new: str) -> None:
        try:
            taken = exists(self._fs, os.path.join(self.path, new))
        except OSError as error:
            raise storage_error(error, f"cannot look at {new}") from error
        if taken:
            raise TeamExists(f"team {new} exists already")

    @contextlib.contextmanager
    def _inner(self, directory: TeamDirectory, patience: Patience) -> Iterator[None]:
        """Hold the compatibility lock of an open team, whose stable lock is held. Raises TeamMoved too."""
        if has_moved(directory):
            raise moved(directory.name)  # while this waited for the stable lock
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(self._locks.compatibility(directory.fd, directory.name, patience))
            except StorageError as error:
                if has_moved(directory):
                    raise moved(directory.name) from error
                raise
            yield

    def _is_half_renamed(self, new: str, codec: Codec[T], after: Codec[T]) -> bool:
        """Whether the directory of the new name holds a record that names the old one, and only that."""
        try:
            with self.open(new) as directory:
                self._publisher.read(directory, codec)
                try:
                    self._publisher.read(directory, after)
                except RecordCorrupt:
                    return True
        except (TeamUnknown, *UNREADABLE):
            pass
        return False

    def _sync_half(self, team: str, new: str) -> None:
        """Sync a move whose maker may have died before that.

        A power cut after the new name was published would bring the old one back, with a record that names
        the new one: nobody could read the team under either. Raises StorageError.
        """
        try:
            with self._open_teams() as teams_fd:
                self._fs.fsync(teams_fd)
        except OSError as error:
            raise storage_error(error, f"cannot complete the rename of team {team} to {new}") from error

    def _finish_rename(
        self,
        directory: TeamDirectory,
        before: Terms[T],
        after: Codec[T],
        retitle: Callable[[T], T],
        patience: Patience,
    ) -> None:
        """Publish the next revision under the new name, looking again at every conflict."""
        codec = _Renaming(before.codec, after)

        def change(value: T) -> T:
            if codec.is_renamed(value):
                return value  # what was cut short had got this far, or another process was faster
            vacated, refusal = before.vacate(value, directory)
            if refusal is not None:
                raise refusal  # a member joined meanwhile
            return retitle(vacated)

        self._attempts(directory, codec, change, patience)
        try:
            # A power cut that put the record back would leave a team that bears its old name once more.
            self._fs.fsync(directory.fd)
        except OSError as error:
            raise OutcomeUnknown(
                f"the team is renamed to {directory.name}, and that may not survive a power cut: {error}"
            ) from error

    # --- delete

    def delete(
        self,
        team: str,
        *,
        terms: Terms[T],
        damaged: bool,
        patience: Patience,
    ) -> None:
        """Delete a team in which nobody is alive, by way of a tombstone.

        Args:
            team: the name.
            terms: of its payload.
            damaged: also where the record is missing, unreadable or lost, and nobody can be asked for.
            patience: bounds all waiting.

        Raises:
            as :meth:`rename`; an unreadable record's own error without `damaged`.
        """
        with (
            self.open(team) as directory,
            self._locks.stable(team, patience=patience),
            self._inner(directory, patience),
        ):
            readable = self._require_readable(directory, terms.codec, damaged=damaged)
            if readable:
                self._require_vacant(directory, terms, patience)
            self._move(directory, f"{TOMBSTONE_PREFIX}{team}-{uuid.uuid4()}.{self._author().owner}")
            if readable:
                try:
                    # A publication that was linked meanwhile may have let a member in.
                    self._require_vacant(directory, terms, patience)
                except PiTeamError:
                    self._move(directory, team)
                    raise
            try:
                with self._open_teams() as teams_fd:
                    remove_tree(self._fs, directory.name, teams_fd)
            except OSError as error:
                refusal = storage_error(error, f"team {team} is deleted; its files are not all gone")
                refusal.hint = "The team is gone for everybody; a later sweep removes what is left of it."
                raise refusal from error

    def _require_readable(self, directory: TeamDirectory, codec: Codec[T], *, damaged: bool) -> bool:
        from pi_team.record import recovery  # noqa: PLC0415 - as a rule a process deletes no team

        try:
            self._publisher.read(directory, codec)
        except (*UNREADABLE, StorageError) as error:
            lost = recovery.is_lost(error)
            if isinstance(error, StorageError) and not lost:
                raise  # that passes or can be mended, and then the members can be asked for
            if damaged and (not lost or recovery.stays_lost(self._publisher, directory, codec)):
                return False
            error.hint = f"{error.hint} To give it up for good: pi-team delete {directory.name} --damaged"
            raise
        return True

    # --- what rename and delete share

    def _require_vacant(self, directory: TeamDirectory, terms: Terms[T], patience: Patience) -> None:
        """Help what is pending and refuse where somebody is alive; a sweep is published along with that."""
        refused: list[PiTeamError] = []

        def change(value: T) -> T:
            refused.clear()
            swept, refusal = terms.vacate(value, directory)
            if refusal is None:
                return value
            refused.append(refusal)
            return swept

        self._attempts(directory, terms.codec, change, patience)
        if refused:
            raise refused[0]

    def _attempts(
        self, directory: TeamDirectory, codec: Codec[T], change: Callable[[T], T], patience: Patience
    ) -> None:
        while True:
            try:
                self._publisher.attempt(directory, codec, change)
            except Conflict:
                patience.wait(f"other writers of team {directory.name}", CONFLICT_WAIT)
            else:
                return

"""Examining a teams directory: the directory itself, and each team in it."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

from pi_team.doctor.findings import Finding, closing, of_directory, removal, shell
from pi_team.doctor.records import RecordExamination
from pi_team.domain.lifecycles import membership_of
from pi_team.errors import (
    PiTeamError,
    RecordMissing,
    RecordUnsafe,
    StorageError,
    TeamMoved,
    TeamUnknown,
    UnsupportedFilesystem,
)
from pi_team.limits import LOCK_LIFETIME
from pi_team.presence import PresenceDirectory
from pi_team.record.directory import PRESENCE, REVISIONS, TeamDirectory
from pi_team.record.filesystem import FileSystem, exists, file_fault, storage_error
from pi_team.record.locks import COMPATIBILITY_LOCK, LOCKS_DIRECTORY
from pi_team.record.markers import MARKER_BYTES, stable_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pi_team.clocks import Clock
    from pi_team.domain.model import TeamState
    from pi_team.leftovers import Leftover, Leftovers
    from pi_team.record.publication import Publisher
    from pi_team.record.reading import Version
    from pi_team.store import Store


class Doctor:
    """Looks at one teams directory.

    Args:
        fs: the port.
        clock: the clock.
        store: the teams directory.
        leftovers: what dead writers left there.
        publisher: reads the records.
        stamps: the newest time in a payload, in seconds since 1970.
        lifetime: seconds after which a lock is abandoned.
    """

    def __init__(
        self,
        fs: FileSystem,
        clock: Clock,
        store: Store,
        leftovers: Leftovers,
        *,
        publisher: Publisher,
        stamps: Callable[[TeamState], float],
        lifetime: float = LOCK_LIFETIME,
    ) -> None:
        self._fs = fs
        self._clock = clock
        self._store = store
        self._path = store.path
        self._leftovers = leftovers
        self._publisher = publisher
        self._stamps = stamps
        self._lifetime = lifetime

    def examine(self, team: str | None) -> list[Finding]:
        """All that is wrong in the teams directory and in one team, or in every team.

        What keeps a team from being looked at is a finding of that team, and hides no other's.

        Raises:
            NameInvalid, TeamUnknown, TeamMoved: the team that was named.
            StorageError: the system refused to look at the teams directory.
        """
        findings: list[Finding] = []
        try:
            with contextlib.suppress(FileNotFoundError):
                finding = of_directory(self._fs, self._fs.stat(self._path), "", self._path)
                if finding is not None:
                    return [finding]
                findings.extend(self._directory())
        except OSError as error:
            raise storage_error(error, f"cannot look at {self._path}") from error
        for name in [team] if team is not None else self._store.names(links=True):
            try:
                findings.extend(self._team(name))  # as far as it gets: an error comes on top of that
            except (TeamMoved, TeamUnknown):
                if team is not None:
                    raise
            except PiTeamError as error:
                findings.append(self._refused(name, error))
            except OSError as error:
                findings.append(self._refused(name, storage_error(error, f"cannot look at team {name}")))
        return findings

    def _refused(self, team: str, error: PiTeamError) -> Finding:
        return Finding(error.code, team, os.path.join(self._path, team), error.message, "")

    # --- the teams directory

    def _directory(self) -> Iterator[Finding]:
        yield from self._below("", self._path, LOCKS_DIRECTORY)
        yield from self._probe()
        yield from map(self._leftover, self._leftovers.of_directory())

    def _below(self, team: str, path: str, name: str) -> Iterator[Finding]:
        """What is wrong with a directory of ours in another; a missing one is made when it is needed."""
        below = os.path.join(path, name)
        with contextlib.suppress(FileNotFoundError):
            finding = of_directory(self._fs, self._fs.stat(below), team, below, replaced=True)
            if finding is not None:
                yield finding

    def _probe(self) -> Iterator[Finding]:
        """Try what the protocol needs of the file system, in a hidden directory of our own."""
        try:
            self._store.probe()
        except (StorageError, UnsupportedFilesystem) as error:
            yield Finding(error.code, "", self._path, error.message, "")

    def _leftover(self, leftover: Leftover) -> Finding:
        path = os.path.join(self._path, leftover.name)
        first = leftover.name.split("/")[0]
        team = "" if leftover.directory or first == LOCKS_DIRECTORY else first
        remove = ("rm", "-r", "--", path) if leftover.directory else ("rm", "--", path)
        return Finding(
            "LEFTOVER", team, path, f"{path} was left behind by a writer that is gone", shell(*remove)
        )

    # --- one team

    def _team(self, team: str) -> Iterator[Finding]:
        path = os.path.join(self._path, team)
        try:
            status = self._fs.stat(path)
        except FileNotFoundError as error:
            raise TeamUnknown(f"there is no team {team} in {self._path}") from error
        finding = of_directory(self._fs, status, team, path)
        if finding is not None:
            yield finding
            return
        found = [*self._below(team, path, REVISIONS), *self._below(team, path, PRESENCE)]
        yield from found
        if found:
            return
        with self._store.open(team) as directory:
            examination = RecordExamination(directory, self._clock, self._publisher, self._stamps)
            version = yield from examination.findings()
            yield from self._locks(directory)
            if version is not None:
                yield from self._presence(directory, version)
            yield from map(self._leftover, self._leftovers.of_team(directory))

    def _locks(self, directory: TeamDirectory) -> Iterator[Finding]:
        for path in (
            os.path.join(self._path, LOCKS_DIRECTORY, stable_lock(directory.name)),
            directory.shown(COMPATIBILITY_LOCK),
        ):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                finding = self._lock(self._fs.stat(path), directory.name, path)
                if finding is not None:
                    yield finding

    def _lock(self, status: os.stat_result, team: str, path: str) -> Finding | None:
        age = self._clock.wall() - status.st_mtime
        if not stat.S_ISREG(status.st_mode) or status.st_size > MARKER_BYTES:
            message = f"{path} is no lock, and keeps writers from making one"
            return Finding("LOCK", team, path, message, removal(status, path))
        if fault := file_fault(status, MARKER_BYTES):
            command = closing(status, path, MARKER_BYTES) or removal(status, path)
            return Finding(RecordUnsafe.code, team, path, f"{path} {fault}", command)
        if age >= self._lifetime:
            message = f"{path} was left behind {age:.0f} s ago; the next writer takes it"
            return Finding("LOCK", team, path, message, removal(status, path))
        return None

    def _presence(self, directory: TeamDirectory, version: Version[TeamState]) -> Iterator[Finding]:
        team, path = directory.name, directory.shown(PRESENCE)
        if not exists(self._fs, path):
            # A team of an older peer has none before its first join.
            connected = [m.alias for m in version.value.members if membership_of(m) == "connected"]
            if connected and version.revision:
                message = f"{path} is missing, so that nobody hears {', '.join(connected)}"
                command = shell("mkdir", "-m", "700", "--", path)
                yield Finding(RecordMissing.code, team, path, message, command)
            return
        with PresenceDirectory(directory) as presence:
            for member in version.value.members:
                sighting = presence.read(member.alias)
                if sighting.fault in ("unsafe", "malformed", "unreadable"):
                    path = directory.shown(f"{PRESENCE}/{member.alias}.json")
                    message = f"the presence of {member.alias} {sighting.detail}"
                    with contextlib.suppress(FileNotFoundError):
                        command = removal(self._fs.stat(path), path)
                        yield Finding(RecordUnsafe.code, team, path, message, command)

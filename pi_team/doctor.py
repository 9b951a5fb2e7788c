"""What is wrong in a teams directory, and the command that mends it.

A doctor only looks: it completes nothing, sweeps nothing and repairs nothing. The one thing it makes is a
hidden directory of its own to try the file system with, and it removes that. Every command that it names
has been run by a test on the fault that it is for.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
from typing import TYPE_CHECKING, Final

import attrs

from pi_team import json_text
from pi_team.domain.codec import TeamCodec
from pi_team.domain.lifecycles import membership_of
from pi_team.errors import (
    PiTeamError,
    RecordCorrupt,
    RecordMissing,
    RecordUnsafe,
    StorageError,
    TeamUnknown,
    UnsupportedFilesystem,
    UnsupportedSchema,
)
from pi_team.former import FormerCodec, named_team
from pi_team.limits import LOCK_LIFETIME, RECORD_BYTES
from pi_team.presence import PresenceDirectory
from pi_team.record.directory import PRESENCE, RECORD, REVISIONS, TeamDirectory
from pi_team.record.envelope import Damaged
from pi_team.record.filesystem import FileSystem, directory_fault, exists, file_fault, storage_error
from pi_team.record.locks import COMPATIBILITY_LOCK, LOCKS_DIRECTORY
from pi_team.record.markers import stable_lock
from pi_team.record.reading import decode_version, read_envelope, read_slot, slot_name
from pi_team.record.recovery import history

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from pi_team.clocks import Clock
    from pi_team.domain.model import TeamState
    from pi_team.leftovers import Leftover, Leftovers
    from pi_team.record.publication import Publisher
    from pi_team.record.reading import Version
    from pi_team.store import Store

_CLOCK_SLACK: Final = 60.0
"""Seconds by which a stamp may be ahead of this clock before that is worth a word."""


@attrs.frozen(slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        code: the stable code of the error that it leads to, or `LEFTOVER`, `LOCK`, `PENDING`, `CLOCK`.
        team: the team, or "" for the teams directory itself.
        path: what it is about.
        message: what is wrong.
        command: the shell command that mends it, or "" where only a person can judge.
    """

    code: str
    team: str
    path: str
    message: str
    command: str

    def to_json(self) -> dict[str, str]:
        """The finding as `--json` prints it."""
        return {
            "code": self.code,
            "team": self.team,
            "path": self.path,
            "message": self.message,
            "command": self.command,
        }


def _shell(*words: str) -> str:
    return shlex.join(words)


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

        Raises:
            NameInvalid, TeamUnknown: the team that was named.
            StorageError: the system refused to look.
        """
        try:
            findings = list(self._directory())
            if findings and findings[0].code == RecordUnsafe.code:
                return findings
            for name in [team] if team is not None else self._store.names(links=True):
                findings += self._team(name)
        except OSError as error:
            raise storage_error(error, f"cannot look at {self._path}") from error
        return findings

    # --- the teams directory

    def _directory(self) -> Iterator[Finding]:
        try:
            status = self._fs.stat(self._path)
        except FileNotFoundError:
            return
        fault = directory_fault(status)
        if fault:
            yield Finding(
                RecordUnsafe.code, "", self._path, f"{self._path} {fault}", _chmod(status, self._path)
            )
            return
        locks = os.path.join(self._path, LOCKS_DIRECTORY)
        with contextlib.suppress(FileNotFoundError):
            status = self._fs.stat(locks)
            fault = directory_fault(status)
            if fault:
                yield Finding(RecordUnsafe.code, "", locks, f"{locks} {fault}", _chmod(status, locks))
        yield from self._probe()
        yield from map(self._leftover, self._leftovers.of_directory())

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
            "LEFTOVER", team, path, f"{path} was left behind by a writer that is gone", _shell(*remove)
        )

    # --- one team

    def _team(self, team: str) -> Iterator[Finding]:
        path = os.path.join(self._path, team)
        try:
            status = self._fs.stat(path)
        except FileNotFoundError as error:
            raise TeamUnknown(f"there is no team {team} in {self._path}") from error
        fault = directory_fault(status)
        if fault:
            yield Finding(RecordUnsafe.code, team, path, f"{path} {fault}", _chmod(status, path))
            return
        for inner in (REVISIONS, PRESENCE):
            below = os.path.join(path, inner)
            with contextlib.suppress(FileNotFoundError):
                status = self._fs.stat(below)
                fault = directory_fault(status)
                if fault:
                    yield Finding(RecordUnsafe.code, team, below, f"{below} {fault}", _chmod(status, below))
                    return
        with self._store.open(team) as directory:
            version = yield from self._record(directory)
            yield from self._history(directory, version)
            yield from self._locks(directory)
            if version is not None:
                yield from self._presence(directory, version)
            yield from map(self._leftover, self._leftovers.of_team(directory))

    def _record(self, directory: TeamDirectory) -> Generator[Finding, None, Version[TeamState] | None]:
        """What is wrong with the record; its version where it can be read."""
        team, path = directory.name, directory.shown(RECORD)
        try:
            version = self._publisher.read(directory, TeamCodec(team))
        except RecordCorrupt as error:
            other = self._half_renamed(directory)
            if other is None:
                yield self._unreadable(directory, error)
            else:
                message = f"team {other} was being renamed to {team}, and that was cut in half"
                yield Finding(error.code, team, path, message, _shell("pi-team", "rename-team", other, team))
        except RecordMissing as error:
            yield self._unreadable(directory, error)
        except RecordUnsafe as error:
            command = _chmod(self._fs.stat(RECORD, directory.fd), path)
            if command:
                yield Finding(error.code, team, path, error.message, command)
            else:
                yield self._unreadable(directory, error)
        except UnsupportedSchema as error:
            yield _newer(error, team, path)
        else:
            ahead = self._stamps(version.value) - self._clock.wall()
            if ahead > _CLOCK_SLACK:
                message = f"a message of team {team} is from {ahead:.0f} s in the future: is the clock right?"
                yield Finding("CLOCK", team, path, message, "")
            return version
        return None

    def _unreadable(self, directory: TeamDirectory, error: PiTeamError) -> Finding:
        """A record from which only its history can help, or nothing."""
        team, message = directory.name, error.message
        if any(report.version is not None for report in history(directory, FormerCodec(team))):
            command = _shell("pi-team", "recover", team, "--yes")
        else:
            # What cannot be recovered is for a person to give up.
            command = ""
            message = f"{message}; no revision is intact: pi-team delete {team} --damaged gives the team up"
        return Finding(error.code, team, directory.shown(RECORD), message, command)

    def _half_renamed(self, directory: TeamDirectory) -> str | None:
        """The team that an unreadable record names instead, where it is a good record of that one."""
        with contextlib.suppress(PiTeamError, Damaged, OSError, json_text.NotJson):
            found = read_envelope(directory)
            other = named_team(found.payload) if found is not None else None
            if other is not None and other != directory.name:
                self._publisher.read(directory, TeamCodec(other))
                return other
        return None

    def _history(self, directory: TeamDirectory, version: Version[TeamState] | None) -> Iterator[Finding]:
        if version is None:
            return  # what is to be done about the record comes first
        for report in history(directory, FormerCodec(directory.name)):
            above = report.revision > version.revision
            if report.fault or above:
                yield self._slot(directory, report.revision, above=above)

    def _slot(self, directory: TeamDirectory, revision: int, *, above: bool) -> Finding:
        """What is wrong with a slot that is not intact, or that stands above the record.

        Any write, and any look that can write, installs one above or goes past it where it is damaged.
        Anything else that is wrong with it stops every writer.
        """
        team, path = directory.name, directory.shown(f"{REVISIONS}/{slot_name(revision)}")
        shown, remove = f"revision {revision} of team {team}", _shell("rm", "--", path)
        codec = TeamCodec(team) if above else FormerCodec(team)
        try:
            found = read_slot(directory, revision)
            if found is not None:
                decode_version(codec, found, path)
        except RecordUnsafe as error:
            status = self._fs.stat(path)
            command = remove if stat.S_ISLNK(status.st_mode) else _chmod(status, path)
            return Finding(error.code, team, path, error.message, command)
        except UnsupportedSchema as error:
            return _newer(error, team, path)
        except RecordCorrupt as error:
            aside = _shell("mv", "--", path, f"{path}.refused")
            return Finding(error.code, team, path, error.message, aside if above else remove)
        except (Damaged, StorageError, OSError) as error:
            if not above:
                return Finding(RecordCorrupt.code, team, path, f"{shown} is not intact: {error}", remove)
            message = (
                f"{shown} is above the record and not intact, so that the next write goes past it: {error}"
            )
        else:
            message = f"{shown} was published and is not installed"
        return Finding("PENDING", team, path, message, _shell("pi-team", "members", team))

    def _locks(self, directory: TeamDirectory) -> Iterator[Finding]:
        team = directory.name
        for path in (
            os.path.join(self._path, LOCKS_DIRECTORY, stable_lock(team)),
            directory.shown(COMPATIBILITY_LOCK),
        ):
            with contextlib.suppress(FileNotFoundError):
                status = self._fs.stat(path)
                age = self._clock.wall() - status.st_mtime
                if not stat.S_ISREG(status.st_mode):
                    remove = ("rm", "-r", "--") if stat.S_ISDIR(status.st_mode) else ("rm", "--")
                    message = f"{path} is no lock, and keeps writers from making one"
                    yield Finding("LOCK", team, path, message, _shell(*remove, path))
                elif fault := file_fault(status, RECORD_BYTES):
                    yield Finding(RecordUnsafe.code, team, path, f"{path} {fault}", _chmod(status, path))
                elif age >= self._lifetime:
                    message = f"{path} was left behind {age:.0f} s ago; the next writer takes it"
                    yield Finding("LOCK", team, path, message, _shell("rm", "--", path))

    def _presence(self, directory: TeamDirectory, version: Version[TeamState]) -> Iterator[Finding]:
        team, path = directory.name, directory.shown(PRESENCE)
        if not exists(self._fs, path):
            # A team of an older peer has none before its first join.
            connected = [m.alias for m in version.value.members if membership_of(m) == "connected"]
            if connected and version.revision:
                message = f"{path} is missing, so that nobody hears {', '.join(connected)}"
                command = _shell("mkdir", "-m", "700", "--", path)
                yield Finding(RecordMissing.code, team, path, message, command)
            return
        with PresenceDirectory(directory) as presence:
            for member in version.value.members:
                sighting = presence.read(member.alias)
                if sighting.fault in ("unsafe", "malformed", "unreadable"):
                    path = directory.shown(f"{PRESENCE}/{member.alias}.json")
                    message = f"the presence of {member.alias} {sighting.detail}"
                    yield Finding(RecordUnsafe.code, team, path, message, _shell("rm", "--", path))


def _newer(error: UnsupportedSchema, team: str, path: str) -> Finding:
    # How it was installed, and so how it is upgraded, is not known here.
    message = f"{error.message} ({path}): a newer pi-team wrote it, so upgrade this one"
    return Finding(error.code, team, path, message, "")


def _chmod(status: os.stat_result, path: str) -> str:
    """The command that closes a path to others, where that is all that is wrong with it."""
    if status.st_uid != os.geteuid():
        return ""
    if stat.S_ISDIR(status.st_mode):
        return _shell("chmod", "700", path)
    if stat.S_ISREG(status.st_mode) and status.st_size <= RECORD_BYTES:
        return _shell("chmod", "600", path)
    return ""

"""What dead writers left behind, and which of it may go (docs/protocol.md, "Left-over files").

Only what bears a name that this release or an older peer makes, to the letter: people keep their own things
among the teams.
Never a file of a possibly live owner, since a live writer must be able to read a missing private file as
"somebody helped"; and never the private file of a slot above the record, which the next writer installs.
"""

from __future__ import annotations

import contextlib
import re
import stat
from typing import TYPE_CHECKING, Final

import attrs

from pi_team.errors import PiTeamError
from pi_team.limits import LEFTOVER_AGE, NAME_PATTERN
from pi_team.presence import exited, owner_of, this_process
from pi_team.record.directory import PRESENCE, REVISIONS, TeamDirectory
from pi_team.record.envelope import Damaged
from pi_team.record.filesystem import FileSystem, open_private_dir, unlink_quietly
from pi_team.record.locks import LOCKS_DIRECTORY
from pi_team.record.reading import read_envelope, read_slot, slot_number
from pi_team.relocation import TOMBSTONE_PREFIX
from pi_team.store import NEW_PREFIX
from pi_team.tree import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_team.clocks import Clock

_UUID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_PEER_TEMPORARY: Final = re.compile(rf"(?:state|[1-9][0-9]*)\.json\.{_UUID}\.tmp")
_PRIVATE: Final = re.compile(rf"\.({_UUID})\.[^.]+\.tmp")
_PRESENCE_TEMPORARY: Final = re.compile(r"\.[a-z][a-z0-9-]*\.[^.]+\.tmp")
_HALF_LOCK: Final = re.compile(r"[a-z][a-z0-9-]{0,47}\.lock\.(?:break|restore)\.[0-9]+\.[0-9a-f]{32}")
_TOMBSTONE: Final = rf"{re.escape(TOMBSTONE_PREFIX)}{NAME_PATTERN}-{_UUID}"
_HIDDEN: Final = re.compile(rf"(?:{re.escape(NEW_PREFIX)}{NAME_PATTERN}-{_UUID}|{_TOMBSTONE})\.[^.]+")
_PEER_TOMBSTONE: Final = re.compile(_TOMBSTONE)


@attrs.frozen(slots=True)
class Leftover:
    """A file or directory that nobody will use again.

    Attributes:
        name: its name, relative to the teams directory.
        directory: whether it is a directory.
    """

    name: str
    directory: bool


class Leftovers:
    """Finds and removes what dead writers left in one teams directory.

    Args:
        fs: the port.
        clock: by which an age is measured.
        path: the path of the teams directory.
    """

    def __init__(self, fs: FileSystem, clock: Clock, path: str) -> None:
        self._fs = fs
        self._clock = clock
        self._path = path

    def of_directory(self) -> list[Leftover]:
        """Half-made teams, tombstones and half-made locks. Raises RecordUnsafe, OSError."""
        try:
            teams_fd = open_private_dir(self._fs, self._path, None, self._path)
        except FileNotFoundError:
            return []
        try:
            found = [
                Leftover(name, directory=True)
                for name in sorted(self._fs.listdir(teams_fd))
                if (_HIDDEN.fullmatch(name) and self._is_abandoned(name, teams_fd))
                or (_PEER_TOMBSTONE.fullmatch(name) and self._age(name, teams_fd) > LEFTOVER_AGE)
            ]
            return found + self._locks(teams_fd)
        finally:
            self._fs.close(teams_fd)

    def of_team(self, team: TeamDirectory) -> list[Leftover]:
        """Private files, presence temporaries and older peers' temporaries of a team. Raises OSError."""
        found = list(self._peers_temporaries(team.fd, team.name))
        if team.open_history(create=False):
            inner = f"{team.name}/{REVISIONS}"
            found += self._peers_temporaries(team.revisions_fd, inner)
            found += self._private_files(team, inner)
        with contextlib.suppress(FileNotFoundError, PiTeamError):
            presence_fd = open_private_dir(self._fs, PRESENCE, team.fd, team.shown(PRESENCE))
            try:
                found += [
                    Leftover(f"{team.name}/{PRESENCE}/{name}", directory=False)
                    for name in self._fs.listdir(presence_fd)
                    if _PRESENCE_TEMPORARY.fullmatch(name) and self._is_abandoned(name, presence_fd)
                ]
            finally:
                self._fs.close(presence_fd)
        return found

    def sweep_directory(self) -> None:
        """Remove half-made teams, tombstones and half-made locks of nobody; what cannot be removed stays."""
        with contextlib.suppress(OSError, PiTeamError):
            found = self.of_directory()
            if not found:
                return
            teams_fd = self._fs.open_dir(self._path)
            try:
                # A deletion may have died before it synced its move: a power cut would bring the name back,
                # without the files that are removed here.
                self._fs.fsync(teams_fd)
                for leftover in found:
                    with contextlib.suppress(OSError):
                        if leftover.directory:
                            remove_tree(self._fs, leftover.name, teams_fd)
                        else:
                            self._fs.unlink(leftover.name, teams_fd)
            finally:
                self._fs.close(teams_fd)

    def sweep_team(self, team: TeamDirectory) -> None:
        """Remove what nobody owns in an open team; what cannot be removed stays."""
        with contextlib.suppress(OSError, PiTeamError):
            for leftover in self.of_team(team):
                *directories, name = leftover.name.split("/")[1:]
                if not directories:
                    unlink_quietly(self._fs, name, team.fd)
                elif directories == [REVISIONS]:
                    unlink_quietly(self._fs, name, team.revisions_fd)
                else:
                    with contextlib.suppress(OSError):
                        self._fs.unlink(f"{PRESENCE}/{name}", team.fd)

    # --- judging

    def _locks(self, teams_fd: int) -> list[Leftover]:
        """What the library of the stable lock left when it died while it took over a dead holder's."""
        with contextlib.suppress(FileNotFoundError, PiTeamError):
            locks_fd = open_private_dir(self._fs, LOCKS_DIRECTORY, teams_fd, LOCKS_DIRECTORY)
            try:
                # Its names bear a pid and no boot: age decides.
                return [
                    Leftover(f"{LOCKS_DIRECTORY}/{name}", directory=False)
                    for name in sorted(self._fs.listdir(locks_fd))
                    if _HALF_LOCK.fullmatch(name) and self._age(name, locks_fd) > LEFTOVER_AGE
                ]
            finally:
                self._fs.close(locks_fd)
        return []

    def _private_files(self, team: TeamDirectory, inner: str) -> Iterator[Leftover]:
        abandoned = {
            match[1]: name
            for name in self._fs.listdir(team.revisions_fd)
            if (match := _PRIVATE.fullmatch(name)) and self._is_abandoned(name, team.revisions_fd)
        }
        if abandoned:
            # Listed after the files: a publication that is linked later has a living owner.
            try:
                pending = set(self._pending(team))
            except PiTeamError:
                return  # a slot cannot be looked into, and any of them may be its publication
            for name in (name for publication, name in abandoned.items() if publication not in pending):
                yield Leftover(f"{inner}/{name}", directory=False)

    def _pending(self, team: TeamDirectory) -> Iterator[str]:
        """The publications in slots above the record; all slots where the record cannot be read.

        Raises PiTeamError.
        """
        try:
            record = read_envelope(team)
            revision = record.revision if record else 0
        except (Damaged, PiTeamError):
            revision = 0
        for name in self._fs.listdir(team.revisions_fd):
            number = slot_number(name)
            if number is not None and number > revision:
                with contextlib.suppress(Damaged):
                    found = read_slot(team, number)
                    if found is not None and found.publication is not None:
                        yield found.publication.id

    def _peers_temporaries(self, dir_fd: int, inner: str) -> Iterator[Leftover]:
        for name in self._fs.listdir(dir_fd):
            if _PEER_TEMPORARY.fullmatch(name) and self._age(name, dir_fd) > LEFTOVER_AGE:
                yield Leftover(f"{inner}/{name}", directory=False)

    def _is_abandoned(self, name: str, dir_fd: int) -> bool:
        owner = owner_of(name)
        if owner is None:
            return False
        here = this_process()
        if (owner.boot, owner.pidns) == (here.boot, here.pidns):
            return exited(owner) is True
        return owner.boot != here.boot and self._age(name, dir_fd) > LEFTOVER_AGE

    def _age(self, name: str, dir_fd: int) -> float:
        """Seconds since a name was last written; 0 where it is gone or no file or directory of ours."""
        try:
            status = self._fs.stat(name, dir_fd)
        except FileNotFoundError:
            return 0.0
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            return 0.0
        return self._clock.wall() - status.st_mtime

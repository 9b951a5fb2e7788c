"""What is wrong with the record of a team and with its history."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING, Final

import attrs

from pi_team import json_text
from pi_team.doctor.findings import (
    Finding,
    closing,
    moving_aside,
    of_newer,
    of_unreadable,
    removal,
    shell,
)
from pi_team.domain.codec import TeamCodec
from pi_team.errors import (
    PiTeamError,
    RecordCorrupt,
    RecordMissing,
    RecordUnsafe,
    StorageError,
    UnsupportedSchema,
)
from pi_team.former import FormerCodec, named_team
from pi_team.limits import RECORD_BYTES
from pi_team.record.directory import RECORD, REVISIONS, TeamDirectory
from pi_team.record.envelope import Damaged
from pi_team.record.filesystem import storage_error
from pi_team.record.reading import decode_version, read_envelope, read_slot, slot_name
from pi_team.record.recovery import history, intact, is_lost, obstacles

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from pi_team.clocks import Clock
    from pi_team.domain.model import TeamState
    from pi_team.record.publication import Publisher
    from pi_team.record.reading import Version
    from pi_team.record.recovery import SlotReport

_CLOCK_SLACK: Final = 60.0
"""Seconds by which a stamp may be ahead of this clock before that is worth a word."""


@attrs.frozen
class RecordExamination:
    """Looks at the record and the history of one team.

    Attributes:
        team: the open directory.
        clock: the clock.
        publisher: reads the record.
        stamps: the newest time in a payload, in seconds since 1970.
    """

    team: TeamDirectory
    clock: Clock
    publisher: Publisher
    stamps: Callable[[TeamState], float]

    def findings(self) -> Generator[Finding, None, Version[TeamState] | None]:
        """All that is wrong; returns the record's version where it can be read.

        Raises:
            TeamMoved: the directory is the team's no longer.
            StorageError, RecordUnsafe, OSError: the history cannot be looked at.
        """
        # Before the record, or a revision that is published meanwhile would seem not to be installed.
        reports = history(self.team, FormerCodec(self.team.name))
        version = yield from self._record(reports)
        if version is not None:  # or else what is to be done about the record comes first
            yield from self._history(reports, version)
        return version

    # --- the record

    def _record(
        self, reports: list[SlotReport[TeamState]]
    ) -> Generator[Finding, None, Version[TeamState] | None]:
        team, path = self.team.name, self.team.shown(RECORD)
        try:
            version = self.publisher.read(self.team, TeamCodec(team))
        except RecordCorrupt as error:
            other = self._half_renamed()
            if other is None:
                yield from self._to_be_recovered(reports, error)
            else:
                message = f"team {other} was being renamed to {team}, and that was cut in half"
                yield Finding(error.code, team, path, message, shell("pi-team", "rename-team", other, team))
        except RecordMissing as error:
            yield from self._to_be_recovered(reports, error)
        except RecordUnsafe as error:
            status = self.team.fs.stat(RECORD, self.team.fd)
            command = "" if stat.S_ISDIR(status.st_mode) else closing(status, path, RECORD_BYTES)
            if command:
                yield Finding(error.code, team, path, error.message, command)
            else:
                yield from self._to_be_recovered(reports, error)
        except UnsupportedSchema as error:
            yield of_newer(error, team, path)
        except StorageError as error:
            yield self._refused(reports, error)
        else:
            ahead = self.stamps(version.value) - self.clock.wall()
            if ahead > _CLOCK_SLACK:
                ahead_by = f"{round(ahead):.10g} s in the future"
                message = f"a message of team {team} is from {ahead_by}: is the clock right?"
                yield Finding("CLOCK", team, path, message, "")
            return version
        return None

    def _to_be_recovered(self, reports: list[SlotReport[TeamState]], error: PiTeamError) -> Iterator[Finding]:
        """A record from which only its history can help, or nothing.

        First what keeps a recovery from it: revisions that may be good, and could not be read.
        """
        team, message = self.team.name, error.message
        in_the_way = [self._slot(report.revision, above=False) for report in obstacles(reports)]
        found = [finding for finding in in_the_way if finding is not None]
        yield from found
        good = intact(reports)
        command = ""
        if not all(finding.command for finding in found):
            # What is not mended by a command, and what cannot be recovered, is for a person to give up.
            message = f"{message}; a newer revision than those that are intact cannot be read"
            if good:
                message += f", and pi-team recover {team} --revision {good[-1].revision} gives it up"
        elif good:
            command = shell("pi-team", "recover", team, "--yes")
        elif not found:
            message = f"{message}; no revision is intact: pi-team delete {team} --damaged gives the team up"
        yield Finding(error.code, team, self.team.shown(RECORD), message, command)

    def _refused(self, reports: list[SlotReport[TeamState]], error: StorageError) -> Finding:
        """A record that the system did not let us read."""
        team, path = self.team.name, self.team.shown(RECORD)
        finding = of_unreadable(self.team.fs.stat(RECORD, self.team.fd), team, path, error)
        good = intact(reports)
        if finding.command or not is_lost(error) or not good:
            return finding
        # It may pass, so that this too is for a person to judge.
        newest = good[-1].revision
        way = f"if it stays so, pi-team recover {team} --revision {newest} goes back to what is intact"
        return attrs.evolve(finding, message=f"{error.message}; {way}")

    def _half_renamed(self) -> str | None:
        """The team that an unreadable record names instead, where it is a good record of that one."""
        with contextlib.suppress(PiTeamError, Damaged, OSError, json_text.NotJson):
            found = read_envelope(self.team)
            other = named_team(found.payload) if found is not None else None
            if other is not None and other != self.team.name:
                self.publisher.read(self.team, TeamCodec(other))
                return other
        return None

    # --- the history

    def _history(
        self, reports: list[SlotReport[TeamState]], version: Version[TeamState]
    ) -> Iterator[Finding]:
        following = version.revision
        for report in reports:
            above = report.revision > version.revision
            if report.revision == following + 1:
                following += 1
            if report.fault or above:
                finding = self._slot(report.revision, above=above, reached=report.revision <= following)
                if finding is not None:
                    yield finding

    def _slot(self, revision: int, *, above: bool, reached: bool = True) -> Finding | None:
        """What is wrong with a slot that is not intact, or that stands above the record; None: it is gone.

        Any write, and any look that can write, installs one above or goes past it where it is damaged.
        Anything else that is wrong with it stops every writer.

        Args:
            revision: its number.
            above: whether it stands above the record.
            reached: whether the next writer gets to it: every number between it and the record is taken.
        """
        team, path = self.team.name, self.team.shown(f"{REVISIONS}/{slot_name(revision)}")
        shown, fault = f"revision {revision} of team {team}", ""
        codec = TeamCodec(team) if above else FormerCodec(team)
        try:
            status = self.team.fs.stat(slot_name(revision), self.team.revisions_fd)
        except FileNotFoundError:
            return None
        try:
            found = read_slot(self.team, revision)
            if found is not None:
                decode_version(codec, found, path)
        except OSError as error:
            return of_unreadable(status, team, path, storage_error(error, f"cannot read {shown}"))
        except PiTeamError as error:
            return self._refused_slot(error, status, path, above=above)
        except Damaged as error:
            found, fault = None, f"is not intact: {error}"
        if not fault and (found is None or not above):
            return None  # pruned, or mended, since it was listed
        if not above:
            message, command = f"{shown} {fault}", removal(status, path)
        elif not reached:
            message = f"{shown} stands above numbers that nobody has published"
            command = moving_aside(self.team.fs, path)
        else:
            message = f"{shown} " + (fault or "was published and is not installed")
            message += "; the next write goes past it" if fault else ""
            return Finding("PENDING", team, path, message, shell("pi-team", "members", team))
        return Finding(RecordCorrupt.code, team, path, message, command)

    def _refused_slot(self, error: PiTeamError, status: os.stat_result, path: str, *, above: bool) -> Finding:
        """What is wrong with a slot that we refuse to read or to understand."""
        command = removal(status, path)
        if isinstance(error, UnsupportedSchema):
            return of_newer(error, self.team.name, path)
        if isinstance(error, RecordUnsafe):
            command = self._safe(status, path)
        elif above:
            command = moving_aside(self.team.fs, path)
        return Finding(error.code, self.team.name, path, error.message, command)

    def _safe(self, status: os.stat_result, path: str) -> str:
        """The command that makes an end of an unsafe slot; what may be of use is kept."""
        if status.st_uid != os.geteuid():
            return ""  # its owner can give it back, with the newest changes
        if stat.S_ISLNK(status.st_mode):
            return removal(status, path)
        mode = "" if stat.S_ISDIR(status.st_mode) else closing(status, path, RECORD_BYTES)
        return mode or moving_aside(self.team.fs, path)

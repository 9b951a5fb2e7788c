"""Bringing back an old revision (docs/protocol.md, "Recovery").

A recovery restores by publishing anew, like any write. Only where the record cannot be read is it
special: it goes above the highest slot, names the last intact one as its parent, replaces nothing but the
record that it looked at, and keeps that one beside.
"""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import attrs

from pi_team.errors import (
    OutcomeUnknown,
    PiTeamError,
    RecordCorrupt,
    RecordMissing,
    RecordUnsafe,
    UsageError,
)
from pi_team.limits import REVISION_MAX
from pi_team.record.attempt import Conflict
from pi_team.record.directory import RECORD, TeamDirectory
from pi_team.record.envelope import Damaged, Previous, Publication
from pi_team.record.filesystem import same_file, storage_error
from pi_team.record.publication import Publisher, Scan
from pi_team.record.reading import (
    Codec,
    Version,
    decode_version,
    read_slot,
    slot_name,
    slot_number,
)

if TYPE_CHECKING:
    import os

T = TypeVar("T")

EVIDENCE_PREFIX: Final = "state.json.damaged-"


@attrs.frozen(slots=True)
class SlotReport(Generic[T]):
    """What a slot holds.

    Attributes:
        revision: its number.
        version: its content, or None where it is not intact.
        fault: why it is not intact, or "".
        publication: who published it; None for an older peer's, or where it is not intact.
        parent: what it was based on; None where there is no publication.
    """

    revision: int
    version: Version[T] | None
    fault: str
    publication: Publication | None
    parent: Previous | None = None


def history(team: TeamDirectory, codec: Codec[T]) -> list[SlotReport[T]]:
    """All slots, oldest first, each read and checked. Raises RecordUnsafe, StorageError."""
    try:
        if not team.open_history(create=False):
            return []
        while True:
            numbers = sorted(filter(None, map(slot_number, team.fs.listdir(team.revisions_fd))))
            reports = [report for number in numbers if (report := _inspect(team, codec, number)) is not None]
            if reports or not numbers:
                return reports
            # All that was listed has been pruned since, so there is a whole history of newer ones.
    except OSError as error:
        raise storage_error(error, f"cannot read the history of team {team.name}") from error


def _inspect(team: TeamDirectory, codec: Codec[T], number: int) -> SlotReport[T] | None:
    shown = team.shown(f"revisions/{slot_name(number)}")
    try:
        found = read_slot(team, number)
        if found is None:
            return None  # pruned since it was listed
        version = decode_version(codec, found, shown)
    except (Damaged, PiTeamError) as error:
        return SlotReport(number, None, str(error), None)
    return SlotReport(number, version, "", found.publication, found.previous)


def recover(
    publisher: Publisher, team: TeamDirectory, codec: Codec[T], former: Codec[T], revision: int | None
) -> Version[T]:
    """Publish an old revision anew; both locks are held.

    Args:
        publisher: publishes.
        team: the open directory.
        codec: of the record's payload.
        former: of the history's, which may bear a former name of the team.
        revision: which one; None for the newest intact one, where the record cannot be read.

    Raises:
        UsageError: nothing is damaged and no revision was named, or that revision is not there or not
            intact.
        RecordCorrupt: no revision is intact, or the record is good under a former name: that is a rename to
            be completed and nothing to recover from.
        Conflict, and the errors of a publication.
    """
    reports = history(team, former)
    try:
        readable = publisher.read(team, codec)
    except (RecordCorrupt, RecordMissing, RecordUnsafe) as error:
        if isinstance(error, RecordCorrupt) and _is_readable(publisher, team, former):
            raise
        return _replace(publisher, team, former, reports, revision)
    if revision is None:
        raise UsageError(
            f"the record of team {team.name} is intact at revision {readable.revision}",
            hint="Name the revision to go back to with --revision.",
        )
    wanted = _choose(team, reports, revision)
    return publisher.attempt(team, codec, lambda _: wanted.value)


def _is_readable(publisher: Publisher, team: TeamDirectory, codec: Codec[T]) -> bool:
    try:
        publisher.read(team, codec)
    except PiTeamError:
        return False
    return True


def _choose(team: TeamDirectory, reports: list[SlotReport[T]], revision: int | None) -> Version[T]:
    intact = [report.version for report in reports if report.version is not None]
    if not intact:
        raise RecordCorrupt(
            f"no revision of team {team.name} is intact",
            hint=f"Keep a copy if you need one; pi-team delete {team.name} --damaged gives the team up.",
        )
    if revision is None:
        return intact[-1]
    for version in intact:
        if version.revision == revision:
            return version
    known = ", ".join(str(version.revision) for version in intact)
    raise UsageError(f"revision {revision} of team {team.name} is not intact", hint=f"Intact: {known}.")


def _replace(
    publisher: Publisher,
    team: TeamDirectory,
    codec: Codec[T],
    reports: list[SlotReport[T]],
    revision: int | None,
) -> Version[T]:
    wanted = _choose(team, reports, revision)
    last = _choose(team, reports, None)
    slot = max(report.revision for report in reports) + 1
    if slot > REVISION_MAX:
        raise RecordCorrupt(f"team {team.name} has used up its revisions")
    try:
        before = _status(team)
        if before is not None:
            _keep_evidence(team, before, slot)
        _retire(team, _chain(reports))
    except OSError as error:
        raise storage_error(error, f"cannot recover team {team.name}") from error

    def unchanged() -> bool:
        now = _status(team)
        if before is None or now is None:
            return before is now
        return same_file(before, now)  # the evidence pins it

    scan = Scan(last, slot, detour=True)
    version = publisher.install(team, codec, wanted.value, scan, unchanged, only_unchanged=True)
    try:
        # A power cut would bring the damaged record back, which nobody helps to get past.
        team.fs.fsync(team.fd)
    except OSError as error:
        raise OutcomeUnknown(
            f"team {team.name} is restored, and that may not survive a power cut: {error}"
        ) from error
    return version


def _status(team: TeamDirectory) -> os.stat_result | None:
    try:
        return team.fs.stat(RECORD, team.fd)
    except FileNotFoundError:
        return None


def _keep_evidence(team: TeamDirectory, record: os.stat_result, slot: int) -> None:
    """Give the damaged record a second name that survives a power cut, unless it has one already."""
    kept = [name for name in team.fs.listdir(team.fd) if name.startswith(EVIDENCE_PREFIX)]
    if not any(same_file(team.fs.stat(name, team.fd), record) for name in kept):
        name = f"{EVIDENCE_PREFIX}{slot}"
        if name in kept:  # an earlier try kept another record, which somebody has replaced since
            name += f"-{uuid.uuid4()}"
        try:
            team.fs.link(RECORD, team.fd, name, team.fd)
        except FileExistsError as error:
            raise Conflict from error  # another recovery, this moment
    team.fs.fsync(team.fd)


def _chain(reports: list[SlotReport[T]]) -> set[str]:
    """The publications that the newest intact slot contains: its own, its parent's and so on."""
    publications: set[str] = set()
    wanted: Previous | None = None
    for report in reversed(reports):
        if report.version is None or (publications and report.version.previous != wanted):
            continue
        if report.publication is None:
            break  # below an older peer's slot everything was installed
        publications.add(report.publication.id)
        wanted = report.parent
    return publications


def _retire(team: TeamDirectory, publications: set[str]) -> None:
    """Take away the private files of publications that are restored.

    A writer that sleeps between steps 7 and 8 would put its revision back over all that follows: where the
    record cannot be read nobody helps it, and so nobody has consumed its file. To find it gone means that
    somebody helped, so only what is contained in what comes next may be taken. (A writer whose slot was
    pruned and reused keeps its file, and withdraws.)
    """
    for name in team.fs.listdir(team.revisions_fd):
        identifier, dot, _ = name.removeprefix(".").partition(".")
        if name.startswith(".") and dot and identifier in publications:
            with contextlib.suppress(FileNotFoundError):
                team.fs.unlink(name, team.revisions_fd)

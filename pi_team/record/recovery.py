"""Bringing back an old revision (docs/protocol.md, "Recovery").

A recovery restores by publishing anew, like any write. Only where the record cannot be read is it
special: it goes above the highest slot, names the last intact one as its parent, replaces nothing but the
record that it looked at, and keeps that one beside. By itself it passes over no revision that it could not
read: what has not been read may be good, and the newest.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
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
    UsageError,
)
from pi_team.limits import REVISION_MAX, REVISIONS_KEPT
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
    from collections.abc import Sequence

T = TypeVar("T")

EVIDENCE_PREFIX: Final = "state.json.damaged-"
_LOST: Final = {errno.EIO, errno.EBADMSG, getattr(errno, "EUCLEAN", errno.EIO)}
"""What a system says of content that a device or file system has lost; other refusals may pass."""
_GAP: Final = 2 * REVISIONS_KEPT
"""By more numbers no slot stands above the one below it, pruning and power cuts included."""


@attrs.frozen(slots=True)
class SlotReport(Generic[T]):
    """What a slot holds.

    Attributes:
        revision: its number.
        version: its content, or None where it is not intact.
        fault: why it is not intact, or "".
        unread: the refusal where nobody knows what it holds, since it could not be read or may not be; else
            None.
        publication: who published it; None for an older peer's, or where it is not intact.
        parent: what it was based on; None where there is no publication.
    """

    revision: int
    version: Version[T] | None
    fault: str
    publication: Publication | None = None
    parent: Previous | None = None
    unread: PiTeamError | None = None


def history(team: TeamDirectory, codec: Codec[T]) -> list[SlotReport[T]]:
    """All slots, oldest first, each read and checked, as far as it can be.

    Raises:
        RecordUnsafe, StorageError: the directory of the history; a slot's own are in its report.
    """
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
    except (Damaged, RecordCorrupt) as error:
        return SlotReport(number, None, str(error))
    except PiTeamError as error:
        return SlotReport(number, None, str(error), unread=error)
    except OSError as error:
        refusal = storage_error(error, f"cannot read revision {number} of team {team.name}")
        refusal.__cause__ = error
        return SlotReport(number, None, str(refusal), unread=refusal)
    return SlotReport(number, version, "", found.publication, found.previous)


def intact(reports: Sequence[SlotReport[T]]) -> list[Version[T]]:
    """What the intact slots hold, oldest first."""
    return [report.version for report in reports if report.version is not None]


def obstacles(reports: Sequence[SlotReport[T]]) -> list[SlotReport[T]]:
    """The slots above the newest intact one that were not read: nobody but a person may pass over them."""
    newest = max((version.revision for version in intact(reports)), default=0)
    return [report for report in reports if report.unread is not None and report.revision > newest]


def is_lost(error: PiTeamError) -> bool:
    """Whether a read was refused because the device or the file system has lost the content."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in _LOST


def stays_lost(publisher: Publisher, team: TeamDirectory, codec: Codec[T]) -> bool:
    """Whether a record whose content was lost a moment ago still is. Raises as a read, but for that."""
    try:
        publisher.read(team, codec)
    except StorageError as error:
        if is_lost(error):
            return True
        raise
    return False


def recover(
    publisher: Publisher, team: TeamDirectory, codec: Codec[T], former: Codec[T], revision: int | None
) -> Version[T]:
    """Publish an old revision anew; both locks are held.

    Args:
        publisher: publishes.
        team: the open directory.
        codec: of the record's payload.
        former: of the history's, which may bear a former name of the team.
        revision: which one; None for the newest intact one, where the record is known to be bad.

    Raises:
        UsageError: nothing is damaged and no revision was named, or that revision is not there or not
            intact.
        RecordUnsafe, UnsupportedSchema, StorageError: no revision was named and a newer one than the newest
            intact one could not be read; or the named one could not.
        StorageError: the record could not be read. Where its content is lost, a revision has to be named.
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
    except StorageError as error:
        if not is_lost(error):
            raise
        if revision is None or not stays_lost(publisher, team, codec):
            error.hint = f"{error.hint} If it stays so, name the revision to go back to with --revision."
            raise
        return _replace(publisher, team, former, reports, revision)
    if revision is None:
        raise UsageError(
            f"the record of team {team.name} is intact at revision {readable.revision}",
            hint="Name the revision to go back to with --revision.",
        )
    wanted = _named(team, reports, revision)
    return publisher.attempt(team, codec, lambda _: wanted.value)


def _is_readable(publisher: Publisher, team: TeamDirectory, codec: Codec[T]) -> bool:
    try:
        publisher.read(team, codec)
    except PiTeamError:
        return False
    return True


def _newest(team: TeamDirectory, reports: list[SlotReport[T]]) -> Version[T]:
    good = intact(reports)
    if not good:
        raise RecordCorrupt(
            f"no revision of team {team.name} is intact",
            hint=f"Keep a copy if you need one; pi-team delete {team.name} --damaged gives the team up.",
        )
    return good[-1]


def _named(team: TeamDirectory, reports: list[SlotReport[T]], revision: int) -> Version[T]:
    for report in reports:
        if report.revision == revision and report.version is not None:
            return report.version
        if report.revision == revision and report.unread is not None:
            raise report.unread
    known = ", ".join(str(version.revision) for version in intact(reports))
    raise UsageError(f"revision {revision} of team {team.name} is not intact", hint=f"Intact: {known}.")


def _refuse_to_pass_over(team: TeamDirectory, reports: list[SlotReport[T]], newest: Version[T]) -> None:
    for report in obstacles(reports):
        if report.unread is not None:
            report.unread.hint = (
                f"Revision {report.revision} may hold the newest changes: mend that and repeat, or give "
                f"them up with pi-team recover {team.name} --revision {newest.revision}"
            )
            raise report.unread


def _replace(
    publisher: Publisher,
    team: TeamDirectory,
    codec: Codec[T],
    reports: list[SlotReport[T]],
    revision: int | None,
) -> Version[T]:
    last = _newest(team, reports)
    if revision is None:
        _refuse_to_pass_over(team, reports, last)
    wanted = last if revision is None else _named(team, reports, revision)
    slot = _slot_above(reports, last)
    if slot > REVISION_MAX:
        raise RecordCorrupt(f"team {team.name} has used up its revisions")
    try:
        before = _status(team)
        if before is not None and _keep_evidence(team, before, slot):
            before = None
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


def _slot_above(reports: list[SlotReport[T]], last: Version[T]) -> int:
    """The slot above all of the history; a file that is no part of it, by its number, does not count."""
    highest = last.revision
    for report in reports:
        if highest < report.revision <= highest + _GAP:
            highest = report.revision
    return highest + 1


def _status(team: TeamDirectory) -> os.stat_result | None:
    try:
        return team.fs.stat(RECORD, team.fd)
    except FileNotFoundError:
        return None


def _keep_evidence(team: TeamDirectory, record: os.stat_result, slot: int) -> bool:
    """Give the damaged record a second name that survives a power cut, unless it has one already.

    Returns:
        Whether it was moved there instead: a directory has no second name, nor need somebody else's file get
        one.
    """
    moved = stat.S_ISDIR(record.st_mode) or record.st_uid != os.geteuid()
    kept = [name for name in team.fs.listdir(team.fd) if name.startswith(EVIDENCE_PREFIX)]
    if moved:
        _move_aside(team, record, slot)
    elif not any(same_file(team.fs.stat(name, team.fd), record) for name in kept):
        name = f"{EVIDENCE_PREFIX}{slot}"
        if name in kept:  # an earlier try kept another record, which somebody has replaced since
            name += f"-{uuid.uuid4()}"
        try:
            team.fs.link(RECORD, team.fd, name, team.fd)
        except FileExistsError as error:
            raise Conflict from error  # another recovery, this moment
    team.fs.fsync(team.fd)
    return moved


def _move_aside(team: TeamDirectory, record: os.stat_result, slot: int) -> None:
    """Move what stands in place of the record. Raises Conflict where that is something else by now."""
    name = f"{EVIDENCE_PREFIX}{slot}-{uuid.uuid4()}"  # one that is taken would be replaced
    try:
        team.fs.rename(RECORD, team.fd, name, team.fd)
    except FileNotFoundError as error:
        raise Conflict from error
    if not same_file(team.fs.stat(name, team.fd), record):
        # Another recovery was faster, and this is its record.
        with contextlib.suppress(FileExistsError):
            team.fs.link(name, team.fd, RECORD, team.fd)
        team.fs.unlink(name, team.fd)
        raise Conflict


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

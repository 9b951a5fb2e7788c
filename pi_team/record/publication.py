"""The publication protocol: docs/protocol.md, "A write"; one attempt's own steps are in `attempt.py`.

Private file → hard link into a bounded history → rename onto the record. A slot is taken by `link`,
which fails when the name exists: that is the compare-and-swap. A publication is installed by `rename`,
which consumes its source: it happens once, by whoever comes first. The numbers in the comments are the
steps of that document.
"""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import attrs

from pi_team.errors import (
    LimitRecord,
    OutcomeUnknown,
    PiTeamError,
    RecordCorrupt,
    RecordMissing,
    StorageError,
    TeamMoved,
    UnsupportedFilesystem,
)
from pi_team.limits import RECORD_BYTES, REVISION_MAX, REVISIONS_KEPT
from pi_team.record import envelope
from pi_team.record.attempt import Attempt, Conflict, unknown_outcome
from pi_team.record.directory import RECORD, TeamDirectory, has_moved, moved
from pi_team.record.envelope import Damaged, Envelope, Previous, Publication
from pi_team.record.filesystem import (
    close_quietly,
    exists,
    storage_error,
    unlink_quietly,
)
from pi_team.record.reading import (
    Codec,
    Pinned,
    Version,
    decode_version,
    is_unchanged,
    pin_record,
    read_slot,
    slot_name,
    slot_number,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_team.record.locks import Locks, Patience

T = TypeVar("T")
R = TypeVar("R")

CONFLICT_WAIT: Final = 0.005
"""Seconds, on average, before a conflict is retried."""


@attrs.frozen(slots=True)
class Author:
    """The process that publishes.

    Attributes:
        pid, start, host, boot: as in :class:`Publication`.
        owner: the same, with the pid namespace, as it stands in file names (no dots, no slashes).
    """

    pid: int
    start: float
    host: str
    boot: str
    owner: str

    def new_publication(self) -> Publication:
        """A new attempt of this process."""
        return Publication(str(uuid.uuid4()), self.pid, self.start, self.host, self.boot)


@attrs.frozen(slots=True)
class Scan(Generic[T]):
    """What stands above the record.

    Attributes:
        base: the version to build on: the record, or the last adopted slot.
        slot: the first free slot.
        detour: whether a slot was adopted or skipped, so that even an unchanged payload must be published.
    """

    base: Version[T]
    slot: int
    detour: bool


class Publisher:
    """Publishes changes of records, for one process.

    Args:
        locks: the locks of the teams directory.
        author: who publishes; asked anew for each attempt, since a process may fork.
        kept: the bound of the history.
    """

    def __init__(self, locks: Locks, author: Callable[[], Author], *, kept: int = REVISIONS_KEPT) -> None:
        self._locks = locks
        self._author = author
        self._kept = kept

    def publish(
        self,
        open_directory: Callable[[], TeamDirectory],
        codec: Codec[T],
        change: Callable[[T], T],
        patience: Patience,
    ) -> Version[T]:
        """Apply `change` to the record, under both locks, until it took effect; the version that holds it.

        Args:
            open_directory: opens the team, once an attempt.
            codec: of the payload.
            change: a pure function, called once an attempt; returns its argument to change nothing.
            patience: bounds all waiting.

        Raises:
            Busy: the locks or the retries took too long.
            OutcomeUnknown: an error came after the link; whoever comes next completes the publication.
            TeamMoved: the team was renamed or deleted meanwhile.
            TeamUnknown, RecordMissing, RecordCorrupt, RecordUnsafe, UnsupportedSchema, LimitRecord,
            StorageError, UnsupportedFilesystem: refused, and nothing was changed.
        """
        return self.exclusively(open_directory, lambda team: self.attempt(team, codec, change), patience)

    def exclusively(
        self,
        open_directory: Callable[[], TeamDirectory],
        body: Callable[[TeamDirectory], R],
        patience: Patience,
    ) -> R:
        """Run `body` on an open team under both locks, again after each conflict. Raises Busy."""
        while True:
            with contextlib.ExitStack() as held:
                team = held.enter_context(open_directory())
                held.enter_context(self._locks.stable(team.name, patience=patience, team_fd=team.fd))
                # It may have moved while this waited for the lock, and again a moment later.
                if _is_current(team) and self._enter_compatibility(held, team, patience):
                    with contextlib.suppress(Conflict):
                        return body(team)
            patience.wait(f"other writers of team {team.name}", CONFLICT_WAIT)

    def _enter_compatibility(
        self, held: contextlib.ExitStack, team: TeamDirectory, patience: Patience
    ) -> bool:
        """Take the compatibility lock; False where the team moved meanwhile. Raises Busy, StorageError."""
        try:
            held.enter_context(self._locks.compatibility(team.fd, team.name, patience))
        except StorageError:
            if has_moved(team):
                return False
            raise
        return True

    def attempt(self, team: TeamDirectory, codec: Codec[T], change: Callable[[T], T]) -> Version[T]:
        """One attempt in an open directory, the locks held. Raises Conflict, and as :meth:`publish`."""
        try:
            team.open_history(create=True)
            while True:
                pinned = pin_record(team, codec)
                try:
                    scan = self.scan(team, codec, pinned)
                    if scan is not None:
                        return self._apply(team, codec, change, pinned, scan)
                finally:
                    close_quietly(team.fs, pinned.fd)
        except (OSError, Damaged, RecordCorrupt, RecordMissing, StorageError, UnsupportedFilesystem) as error:
            if has_moved(team):
                # Half gone, or retitled already: what was found says nothing about the team asked for.
                raise moved(team.name) from error
            if isinstance(error, OSError):
                raise storage_error(error, f"cannot publish in team {team.name}") from error
            if isinstance(error, Damaged):
                raise RecordCorrupt(f"{team.shown(RECORD)} is damaged: {error}") from error
            raise

    def read(self, team: TeamDirectory, codec: Codec[T]) -> Version[T]:
        """The record of an open directory, as it is. Raises as :func:`pin_record`."""
        pinned = pin_record(team, codec)
        close_quietly(team.fs, pinned.fd)
        return pinned.version

    # --- step 2: what stands above the record

    def scan(
        self, team: TeamDirectory, codec: Codec[T], pinned: Pinned[T], *, install: bool = True
    ) -> Scan[T] | None:
        """Follow the slots above the record to the first free one; None: start again from step 1.

        With `install`, a publication that was linked and not installed is installed. Without, it is
        followed in memory, after the same check and fsync: a reader that cannot write shows it.
        """
        base, slot, detour = pinned.version, pinned.version.revision + 1, False
        while slot <= REVISION_MAX:
            try:
                found = read_slot(team, slot)
                if found is None:
                    return Scan(base, slot, detour)
                successor = self._successor(team, codec, found, base)
            except Damaged:
                found, successor = None, None  # skipped, and kept
            publication = found.publication if found is not None else None
            if successor is not None and (publication is not None or not install):
                if not is_unchanged(team, pinned):
                    return None
                # What a reader will see must not be taken back by a power cut.
                team.fs.fsync(team.revisions_fd)
                if install and publication is not None and self._install_for(team, publication.id):
                    return None
                if not is_unchanged(team, pinned):
                    return None
            base = successor or base
            detour = True
            slot += 1
        raise RecordCorrupt(f"team {team.name} has used up its revisions")

    def _successor(
        self, team: TeamDirectory, codec: Codec[T], found: Envelope, base: Version[T]
    ) -> Version[T] | None:
        """The slot's version where it continues `base`, or None where it is a branch to skip.

        An older peer's slot (no publication) is adopted: if that peer is only asleep and installs it
        later, the chain still leads from it to us. It is decoded in any case, so that a payload that breaks
        the schema is an error and never a reason to skip.
        """
        shown = team.shown(f"revisions/{slot_name(found.revision)}")
        version = decode_version(codec, found, shown)
        if found.publication is None or found.previous == base.previous:
            return version
        return None

    def _install_for(self, team: TeamDirectory, publication_id: str) -> bool:
        """Install a publication for its owner; False where its private file is gone."""
        prefix = f".{publication_id}."
        for name in team.fs.listdir(team.revisions_fd):
            if name.startswith(prefix) and name.endswith(".tmp"):
                try:
                    team.fs.rename(name, team.revisions_fd, RECORD, team.fd)
                except FileNotFoundError:
                    return False
                return True
        return False

    # --- steps 3 to 8

    def _apply(
        self,
        team: TeamDirectory,
        codec: Codec[T],
        change: Callable[[T], T],
        pinned: Pinned[T],
        scan: Scan[T],
    ) -> Version[T]:
        value = change(scan.base.value)
        if value is scan.base.value and not scan.detour:
            return scan.base
        if pinned.version.previous.publication is None:
            # Legacy, or an older peer's: whoever made `revisions/` may not have synced that it is there.
            team.fs.fsync(team.fd)
        return self.install(team, codec, value, scan, lambda: is_unchanged(team, pinned))

    def install(
        self,
        team: TeamDirectory,
        codec: Codec[T],
        value: T,
        scan: Scan[T],
        unchanged: Callable[[], bool],
        *,
        only_unchanged: bool = False,
    ) -> Version[T]:
        """Steps 4 to 9: write, sync, link, sync, verify, rename, prune.

        Args:
            team: the open directory.
            codec: of the payload.
            value: the new payload.
            scan: the base and the free slot.
            unchanged: whether the record still is the one that was read.
            only_unchanged: a recovery, which accepts nothing but the unchanged record in step 7.

        Raises:
            Conflict: another writer was faster; nothing of this attempt is left.
            OutcomeUnknown, TeamMoved, LimitRecord, StorageError, UnsupportedFilesystem: as for `publish`.
        """
        author = self._author()
        publication = author.new_publication()
        base = scan.base
        data, digest = envelope.encode(scan.slot, codec.encode(value), publication, base.previous, base.extra)
        if len(data) > RECORD_BYTES:
            raise LimitRecord(f"the record would have {len(data):,} bytes, more than {RECORD_BYTES:,}")
        private = f".{publication.id}.{author.owner}.tmp"
        attempt = Attempt(
            team, publication.id, private, scan.slot, unchanged=unchanged, only_unchanged=only_unchanged
        )
        attempt.write(data)
        attempt.link()
        # Nothing is withdrawn from here on, except where step 7 says so.
        try:
            team.fs.fsync(team.revisions_fd)  # 6
            if attempt.verify():
                attempt.rename()
            if not team.is_current():
                raise TeamMoved(f"team {team.name} was renamed or deleted while this was written")
        except (OSError, Damaged) as error:
            raise unknown_outcome(team, error) from error
        except PiTeamError as error:
            if isinstance(error, TeamMoved | OutcomeUnknown):
                raise
            raise unknown_outcome(team, error) from error
        self._prune(team, scan.slot)
        return Version(scan.slot, Previous(scan.slot, digest, publication.id), value, base.extra)

    def _prune(self, team: TeamDirectory, slot: int) -> None:
        """Step 9: remove old slots once there are twice as many as are kept; errors change nothing."""
        with contextlib.suppress(OSError):
            if slot <= 2 * self._kept or not exists(
                team.fs, slot_name(slot - 2 * self._kept), team.revisions_fd
            ):
                return
            # A power cut must not put the record back below the history that is left.
            team.fs.fsync(team.fd)
            for name in team.fs.listdir(team.revisions_fd):
                number = slot_number(name)
                if number is not None and number <= slot - self._kept:
                    unlink_quietly(team.fs, name, team.revisions_fd)


def _is_current(team: TeamDirectory) -> bool:
    try:
        return team.is_current()
    except OSError as error:
        raise storage_error(error, f"cannot look at team {team.name}") from error

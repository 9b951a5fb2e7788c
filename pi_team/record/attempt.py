"""One attempt at publishing: a private file on its way into a slot and onto the record.

docs/protocol.md, "A write", steps 4, 5, 7 and 8. Where a call fails, its effect is looked at: what the call
said decides nothing. The steps around these are in :mod:`pi_team.record.publication`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_team.errors import OutcomeUnknown, PiTeamError, TeamMoved
from pi_team.record.directory import RECORD, TeamDirectory
from pi_team.record.envelope import Damaged
from pi_team.record.filesystem import exists, link_error, storage_error, unlink_quietly, write_all
from pi_team.record.reading import missing, read_envelope, read_slot, slot_name

if TYPE_CHECKING:
    from collections.abc import Callable


class Conflict(Exception):
    """Another writer was faster, or helped was given: start again from step 1."""


def unknown_outcome(team: TeamDirectory, error: Exception) -> OutcomeUnknown:
    """What an error after the link means: whoever comes next may complete the publication."""
    return OutcomeUnknown(f"the change of team {team.name} may or may not take effect: {error}")


class Attempt:
    """One private file on its way into a slot and onto the record.

    Args:
        team: the open directory.
        publication_id: the id in the private file.
        private: the name of the private file in `revisions/`.
        slot: the revision that it is to be.
        unchanged: whether the record still is the one that was read.
        only_unchanged: whether step 7 accepts nothing but that.
    """

    def __init__(
        self,
        team: TeamDirectory,
        publication_id: str,
        private: str,
        slot: int,
        *,
        unchanged: Callable[[], bool],
        only_unchanged: bool,
    ) -> None:
        self._team = team
        self._id = publication_id
        self._private = private
        self._slot = slot
        self._unchanged = unchanged
        self._only_unchanged = only_unchanged

    def write(self, data: bytes) -> None:
        """Step 4: the private file, synced. A failure removes it and is clean. Raises StorageError."""
        fs = self._team.fs
        try:
            fd = fs.create(self._private, self._team.revisions_fd)
            try:
                write_all(fs, fd, data)
                fs.fsync(fd)
            finally:
                fs.close(fd)
        except BaseException as error:
            self._drop()  # the name is this attempt's alone, and a call that failed may have made the file
            if isinstance(error, OSError):
                raise storage_error(error, f"cannot write to team {self._team.name}") from error
            raise

    def link(self) -> None:
        """Step 5: take the slot. Raises Conflict, StorageError, UnsupportedFilesystem, OutcomeUnknown."""
        fs, team = self._team.fs, self._team
        try:
            fs.link(self._private, team.revisions_fd, slot_name(self._slot), team.revisions_fd)
        except OSError as error:
            # Whatever the call said: the slot tells whether it took effect. So does a private file that is
            # gone, since only a helper takes it: the slot may have been pruned by then, and is free again.
            try:
                holder = self._holder()
                if holder == self._id or not exists(fs, self._private, team.revisions_fd):
                    return
            except (OSError, PiTeamError) as blind:
                raise unknown_outcome(team, blind) from blind
            self._drop()
            if holder is None:
                raise link_error(error, f"cannot publish in team {team.name}") from error
            raise Conflict from error

    def _holder(self) -> str | None:
        """The publication id in my slot; "" for a damaged file or an older peer's; None where it is free."""
        try:
            found = read_slot(self._team, self._slot)
        except Damaged:
            return ""
        if found is None:
            return None
        return found.publication.id if found.publication else ""

    def verify(self) -> bool:
        """Step 7: whether to go on to the rename; False where somebody has installed it.

        Raises Conflict, OutcomeUnknown, and the errors of a look at the record.
        """
        if self._unchanged():
            return True
        if not self._only_unchanged:
            now = read_envelope(self._team)
            if now is None:
                raise missing(self._team)  # no reason to withdraw what a helper may have seen
            if now.revision < self._slot:
                return True
        if not exists(self._team.fs, self._private, self._team.revisions_fd):
            return self._installed_by_other()
        if self._only_unchanged:
            # Whoever put a readable record there may be followed by writers that adopt this slot or pass it,
            # and need it for their own to be found after a power cut: it is left as a crash here leaves it.
            raise OutcomeUnknown(f"the record of team {self._team.name} was replaced while it was restored")
        # I slept so long that my slot had been pruned and reused: this attempt never happened.
        if self._holder() == self._id:
            self._team.fs.unlink(slot_name(self._slot), self._team.revisions_fd)
        try:
            self._team.fs.unlink(self._private, self._team.revisions_fd)
        except FileNotFoundError:
            return self._installed_by_other()
        raise Conflict

    def rename(self) -> None:
        """Step 8: install. Raises OutcomeUnknown, TeamMoved, OSError."""
        try:
            self._team.fs.rename(self._private, self._team.revisions_fd, RECORD, self._team.fd)
        except OSError:
            # Whatever the call said: the private file is gone once somebody has installed it, we or another.
            if exists(self._team.fs, self._private, self._team.revisions_fd):
                raise
            self._installed_by_other()

    def _installed_by_other(self) -> bool:
        """My private file is gone: somebody installed it where the record is at or above my slot."""
        if not self._team.is_current():
            raise TeamMoved(f"team {self._team.name} was renamed or deleted while this was written")
        now = read_envelope(self._team)
        if now is not None and now.revision >= self._slot:
            return False
        raise OutcomeUnknown(
            f"the private file of revision {self._slot} of team {self._team.name} is gone, "
            "and the record is below it"
        )

    def _drop(self) -> None:
        unlink_quietly(self._team.fs, self._private, self._team.revisions_fd)

"""What a process keeps for one membership: the open team, its presence, and the observer that it is."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from pi_team.domain.lifecycles import membership_of
from pi_team.errors import PiTeamError, StorageError
from pi_team.presence import Observer, PresenceDirectory, Process
from pi_team.record.directory import moved
from pi_team.record.filesystem import storage_error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pi_team.domain.model import Judge, Member, Status, Verdict
    from pi_team.domain.views import Shown
    from pi_team.record.directory import TeamDirectory


class Seat:
    """A membership's place in an open team.

    The directory stays open from the join on: it tells this team from one that takes its name later.

    Args:
        directory: the open team.
        process: the process that is the member.
        observer: how the member judges others.

    Attributes:
        lock: held by the thread that uses the seat, so that no other closes its descriptors meanwhile. Only
            files of presence are looked at and written under it, and nothing is waited for.
    """

    def __init__(self, directory: TeamDirectory, process: Process, observer: Observer) -> None:
        self.directory = directory
        self.process = process
        self.observer = observer
        self.presence = PresenceDirectory(directory)
        self.attended = False
        self.lock = threading.RLock()

    def status(self, alias: str) -> Status:
        """The status that the member last said."""
        presence = self.presence.read(alias).presence
        return presence.status if presence is not None else "idle"

    def display(self, members: Iterable[Member]) -> tuple[Judge, Shown]:
        """What the members' presence shows, looked at once each."""
        seen: dict[tuple[str, str], tuple[Status, Verdict]] = {
            (member.alias, member.token): self.observer.displayed(
                self.presence, member.alias, member.token, member.pid
            )
            for member in members
            if membership_of(member) == "connected"
        }
        return lambda alias, token: seen[alias, token][1], lambda alias, token: seen[alias, token][0]

    def make_presence(self) -> None:
        """Make the directory of the presence files where there is none. Raises StorageError."""
        try:
            if self.directory.is_current():
                self.presence.make()
        except OSError as error:
            team = self.directory.name
            raise storage_error(error, f"cannot make the presence directory of team {team}") from error

    def write_presence(self, alias: str, token: str, status: Status, now: float) -> None:
        """Write the member's presence, and note that its observer was there.

        Args:
            alias: the member's alias.
            token: its ownership token.
            status: what it is doing.
            now: the wall clock, in seconds since 1970.

        Raises:
            TeamMoved: the team was renamed, deleted or created anew; nothing was written to what is there.
            StorageError: the system refused, or the directory is gone.
            RecordUnsafe: the directory is not ours alone.
        """
        team = self.directory.name
        doing = f"cannot write the presence of {alias} in team {team}"
        try:
            written = self.presence.write(alias, token, status, process=self.process, now=now)
            missing = not written and self.directory.is_current()
        except OSError as error:
            raise storage_error(error, doing) from error
        if missing:
            hint = f"`pi-team doctor {team}` says what mends it."
            raise StorageError(f"{doing}: its directory is missing", hint=hint)
        if not written:
            raise moved(team)
        self.observer.attended()

    def forget(self, alias: str, token: str) -> None:
        """Remove the presence under an alias where it bears this token; errors leave it to expire."""
        with contextlib.suppress(OSError, PiTeamError):
            self.presence.remove(alias, token)

    def close(self) -> None:
        """Let go of the directory."""
        try:
            self.presence.close()
        finally:
            self.directory.close()

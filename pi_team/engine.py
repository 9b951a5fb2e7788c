"""How an operation of the domain is applied to a team's record, and how the record is read.

An operation is a pure function. It is applied under the team's locks to what the record holds then, with
members judged then, and anew on each retry; what it answers is true of the revision that holds it
(docs/lifecycles.md, "Operations").
"""

from __future__ import annotations

import os
import threading
import uuid
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar

from pi_team.clocks import Clock, SystemClock
from pi_team.domain.codec import TeamCodec
from pi_team.leftovers import Leftovers
from pi_team.limits import HEARTBEAT_INTERVAL, LOCK_LIFETIME, PRESENCE_EXPIRY, WRITE_PATIENCE
from pi_team.presence import Observer, PresenceDirectory, owner_exited, owner_token, this_process
from pi_team.record.cache import Reader
from pi_team.record.filesystem import FileSystem, OsFileSystem
from pi_team.record.locks import Locks, Patience
from pi_team.record.publication import Author, Publisher
from pi_team.store import Store, default_path
from pi_team.teams import check_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pi_team.domain.model import Judge, TeamState
    from pi_team.domain.operations import Change
    from pi_team.presence.judging import Judged
    from pi_team.record.directory import TeamDirectory
    from pi_team.record.reading import Version

R = TypeVar("R")

_OPEN_RECORDS: Final = 24
"""Teams whose records stay open between two looks, by two descriptors each; some systems give 256 in all."""


def new_id() -> str:
    """A new unique identifier."""
    return str(uuid.uuid4())


def _author() -> Author:
    here = this_process()
    return Author(here.pid, here.start or 0, here.host, here.boot, owner_token(here))


class Options(TypedDict, total=False):
    """What :class:`Engine` can be given besides the directory."""

    notice: Callable[[str], None] | None
    filesystem: FileSystem | None
    clock: Clock | None
    lock_lifetime: float
    patience: float
    interval: float
    expiry: float


class Engine:
    """The moving parts behind the operations, for one process and one teams directory.

    Args:
        teams: the teams directory; `$PI_CODING_AGENT_DIR/teams` or `~/.pi/agent/teams` by default.
        notice: called with what is waited for, when an operation has waited for a second.
        filesystem: the system-call port.
        clock: the clocks.
        lock_lifetime: seconds after which an abandoned lock is reclaimed.
        patience: seconds that an operation waits for locks and retries together.
        interval: seconds between two heartbeats.
        expiry: age in seconds from which on a presence is stale.
    """

    def __init__(
        self,
        teams: str | os.PathLike[str] | None = None,
        *,
        notice: Callable[[str], None] | None = None,
        filesystem: FileSystem | None = None,
        clock: Clock | None = None,
        lock_lifetime: float = LOCK_LIFETIME,
        patience: float = WRITE_PATIENCE,
        interval: float = HEARTBEAT_INTERVAL,
        expiry: float = PRESENCE_EXPIRY,
    ) -> None:
        self.path = default_path() if teams is None else os.path.abspath(os.fspath(teams))
        self.fs: FileSystem = filesystem or OsFileSystem()
        self.clock: Clock = clock or SystemClock()
        self.lock_lifetime = lock_lifetime
        self._notice = notice
        self._patience = patience
        self._interval = interval
        self._expiry = expiry
        locks = Locks(
            self.fs,
            self.clock,
            self.path,
            owner=lambda: owner_token(this_process()),
            is_dead=owner_exited,
            lifetime=lock_lifetime,
        )
        self.publisher = Publisher(locks, _author)
        self.store = Store(self.fs, self.path, locks=locks, publisher=self.publisher, author=_author)
        self.leftovers = Leftovers(self.fs, self.clock, self.path)
        self._codecs: dict[str, TeamCodec] = {}
        self._readers: dict[str, Reader[TeamState]] = {}
        self._open: OrderedDict[str, None] = OrderedDict()  # the teams whose records are, as they were read
        self._opening = threading.RLock()

    def operate(
        self,
        team: str,
        operation: Callable[[TeamState, Judge], Change[R]],
        observer: Observer | None = None,
    ) -> R:
        """Apply an operation; without a session's observer, once more after watching whom it could not judge.

        Args:
            team: the team.
            operation: of the domain; called once an attempt.
            observer: a session's, which has heartbeats of its own; None for a one-shot command.

        Raises:
            PiTeamError: the operation's refusal, or an error of the publication.
        """
        judging = observer or self.new_observer()
        patience = self.new_patience()
        change, undecided = self._publish(team, operation, judging, patience)
        if change.refusal is not None and undecided and observer is None:
            self.watch(team, undecided, judging, patience)
            change, _ = self._publish(team, operation, judging, patience)
        return change.unwrap()

    def _publish(
        self,
        team: str,
        operation: Callable[[TeamState, Judge], Change[R]],
        observer: Observer,
        patience: Patience,
    ) -> tuple[Change[R], tuple[Any, ...]]:
        """One publication; the change that took effect, and the members that could not be judged."""
        opened: list[TeamDirectory] = []
        result: list[tuple[Change[R], tuple[Any, ...]]] = []

        def open_directory() -> TeamDirectory:
            opened[:] = [self.store.open(team)]
            return opened[0]

        def apply(state: TeamState) -> TeamState:
            with PresenceDirectory(opened[0]) as presence:
                hearing = observer.hearing(presence, state.members)
                change = operation(state, hearing)
            result[:] = [(change, hearing.undecided)]
            return change.state

        self.publisher.publish(open_directory, self._codec(team), apply, patience)
        return result[0]

    def watch(self, team: str, undecided: Iterable[Judged], observer: Observer, patience: Patience) -> None:
        """Watch those whom an operation could not judge; that is no waiting for locks.

        Raises:
            TeamUnknown, RecordUnsafe, StorageError: the team cannot be opened.
        """
        with patience.aside(), self.store.open(team) as directory, PresenceDirectory(directory) as presence:
            observer.watch(presence, undecided)

    def read(self, team: str) -> Version[TeamState]:
        """The record now, without a lock. Raises as :meth:`Reader.read`."""
        reader = self._readers.get(team)
        if reader is None:
            check_name(team)
            reader = Reader(
                self.fs,
                self.clock,
                self.path,
                team,
                codec=self._codec(team),
                publisher=self.publisher,
            )
            reader = self._readers.setdefault(team, reader)  # another thread may have been faster
        self._keep_open(team)
        return reader.read()

    def _keep_open(self, team: str) -> None:
        """Note that a record is read now, and close the one whose turn is longest ago where many are open."""
        oldest = None
        with self._opening:
            self._open[team] = None
            self._open.move_to_end(team)
            if len(self._open) > _OPEN_RECORDS:
                oldest = self._readers.get(self._open.popitem(last=False)[0])
        if oldest is not None:
            oldest.close()

    def new_observer(self) -> Observer:
        """An observer that has not been there yet."""
        return Observer(self.clock, interval=self._interval, expiry=self._expiry)

    def new_patience(self) -> Patience:
        """The patience of one operation, from now on."""
        return Patience(self.clock, self._patience, self._notice)

    def now(self) -> int:
        """Milliseconds since 1970."""
        return int(self.clock.wall() * 1_000)

    def close(self) -> None:
        """Let go of the pinned records."""
        with self._opening:
            readers, self._readers = self._readers, {}
            self._open.clear()
        for reader in readers.values():
            reader.close()

    def _codec(self, team: str) -> TeamCodec:
        codec = self._codecs.get(team)
        return codec if codec is not None else self._codecs.setdefault(team, TeamCodec(team))

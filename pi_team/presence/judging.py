"""Alive, dead or unknown: the one function that every operation asks (docs/lifecycles.md, "Judging").

An observer weighs what a member's process and presence say. Two mistakes are possible, and they are not
alike: a dead session that is taken for living costs waiting; a living one that is taken for dead loses its
work. So death needs proof:

- the process has exited: proof for everybody, at once;
- nothing was heard for long: proof only for an observer that was itself there to hear. A laptop lid
  stops everybody; who is continued first finds everybody else silent. So an observer goes by time only
  while its own heartbeats came on time, by the wall clock and by one that counts suspension, and after
  a gap only when everybody has had two intervals to be heard again;
- nothing is there to be heard (presence missing, or of another token): the same, after the observer has
  watched it stay so for two intervals.

The order of looks is part of the proof: the clock is read before the file, so that a pause between
the two makes a presence look younger than it is and never older.

Threads may share an observer: one judges at a time.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeAlias

import attrs

from pi_team.limits import HEARTBEAT_INTERVAL, MEMBERS, PRESENCE_EXPIRY
from pi_team.presence.process import ended_with_boot, exited, pid_exists

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pi_team.clocks import Clock
    from pi_team.domain.model import Status, Verdict
    from pi_team.presence.heartbeat import Presence, PresenceDirectory, Sighting
    from pi_team.presence.process import Process

Pair: TypeAlias = tuple[str, str]
"""An alias and a token: what is judged, never an alias alone."""

DISPLAY_AGE: Final = 0.25
"""Seconds that a look at a process may be old where it is only displayed."""
_REMEMBERED: Final = 4 * MEMBERS
_LOOKS_PER_INTERVAL: Final = 4

_Life: TypeAlias = Literal["exited", "running", "unproven", "absent"]
"""A process has exited; is provably running; may run; or is an older peer's pid that nobody here bears."""


class Judged(Protocol):
    """What is asked of a member: the domain's has it."""

    @property
    def alias(self) -> str:
        """Its alias."""

    @property
    def token(self) -> str:
        """Its ownership token."""

    @property
    def pid(self) -> int:
        """Its process, as the record has it."""


class _Moment(NamedTuple):
    wall: float
    running: float


@attrs.define(slots=True)
class _Watch:
    """A pair that was seen without a new heartbeat.

    Attributes:
        stamp: its last one; None: no presence of that token.
        first: the observer's attendance at the first such look.
        last: the running clock at the last one.
    """

    stamp: float | None
    first: float
    last: float


class Observer:
    """One session, or one command, that looks at the members of one team.

    Args:
        clock: the clocks.
        interval: seconds between two heartbeats of any member.
        expiry: age in seconds from which on a presence is stale.
        has_exited: as :func:`exited`.
        exists: as :func:`pid_exists`.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        interval: float = HEARTBEAT_INTERVAL,
        expiry: float = PRESENCE_EXPIRY,
        has_exited: Callable[[Process], bool | None] = exited,
        exists: Callable[[int], bool] = pid_exists,
    ) -> None:
        self._clock = clock
        self._interval = interval
        self._expiry = expiry
        self._has_exited = has_exited
        self._exists = exists
        self._patience = 2 * interval
        self._last: _Moment | None = None
        self._attended = 0.0
        self._since = 0.0
        self._on_time = 0
        self._sightings: dict[str, Sighting] = {}
        self._lives: dict[tuple[int, str], tuple[_Life, float]] = {}
        self._watches: dict[Pair, _Watch] = {}
        self._lock = threading.RLock()  # held while one member is judged; nothing is waited for under it

    # --- the observer's own presence

    def has_gap(self) -> bool:
        """Whether this session has missed a heartbeat of its own: it was stopped, or the clock was set.

        It may have been swept and replaced meanwhile, and has to look whether its membership is still
        current before it writes its presence again.
        """
        with self._lock:
            return self._last is not None and not self._in_time(self._last, self._now())

    def attended(self) -> None:
        """Note that this session has just written its own presence."""
        with self._lock:
            now = self._now()
            self._attended = self._attendance(now)
            if self._last is not None and self._in_time(self._last, now):
                self._on_time += 1
            else:
                self._on_time = 0
                self._since = self._attended
            self._last = now

    def _attendance(self, now: _Moment) -> float:
        """Seconds that this observer has been there so far.

        Of the time between two heartbeats at most an interval counts: the rest may be a pause, too short to
        be a gap, in which nobody else could be heard either.
        """
        if self._last is None:
            return 0.0
        return self._attended + max(0.0, min(now.running - self._last.running, self._interval))

    def _now(self) -> _Moment:
        return _Moment(self._clock.wall(), self._clock.running())

    def _in_time(self, before: _Moment, now: _Moment) -> bool:
        return (
            0 <= now.wall - before.wall <= self._patience
            and 0 <= now.running - before.running <= self._patience
        )

    def _goes_by_time(self, now: _Moment) -> bool:
        """Whether this observer has been there: two heartbeats on time, and two intervals without a gap."""
        return (
            self._last is not None
            and self._on_time >= 2  # noqa: PLR2004 - "its own last two heartbeats"
            and self._attendance(now) - self._since >= self._patience
            and self._in_time(self._last, now)
        )

    # --- judging others

    def judge(self, presence: PresenceDirectory, alias: str, token: str, pid: int) -> Verdict:
        """Judge a member, looking anew at everything that is evidence.

        Args:
            presence: the team's presence files.
            alias: the member's alias.
            token: the member's token.
            pid: the member's process, from the record.
        """
        with self._lock:
            return self._weigh(presence, alias, token, pid, 0.0)[0]

    def displayed(
        self, presence: PresenceDirectory, alias: str, token: str, pid: int
    ) -> tuple[Status, Verdict]:
        """What is shown of a connected member: its status, and whether it lives.

        The status is what its presence says while that is fresh, and `offline` otherwise. For looks only:
        the process may have been looked at up to 0.25 s ago.
        """
        with self._lock:
            verdict, status = self._weigh(presence, alias, token, pid, DISPLAY_AGE)
        return status, verdict

    def hearing(self, presence: PresenceDirectory, members: Iterable[Judged]) -> Hearing:
        """What an operation asks about the members of the state that it works on; anew for each attempt."""
        return Hearing(self, presence, members)

    def watch(self, presence: PresenceDirectory, members: Iterable[Judged]) -> dict[Pair, Verdict]:
        """Be there for two intervals, and judge as a session does.

        For a command without heartbeats that would have to refuse because of *unknown*. It returns as soon
        as nobody is unknown any more; until two intervals later, :meth:`judge` goes by time as well. A
        pause of this process begins the watch again.
        """
        asked = tuple(members)
        look = self._interval / _LOOKS_PER_INTERVAL
        self.attended()
        began = self._attended
        while True:
            verdicts = {(m.alias, m.token): self.judge(presence, m.alias, m.token, m.pid) for m in asked}
            if "unknown" not in verdicts.values():
                return verdicts
            if self._attended - max(began, self._since) >= self._patience + look:
                return verdicts
            self._clock.sleep(look)
            self.attended()

    def _weigh(
        self, directory: PresenceDirectory, alias: str, token: str, pid: int, max_age: float
    ) -> tuple[Verdict, Status]:
        now = self._now()
        sighting = self._look(directory, alias)
        presence = sighting.presence
        if sighting.fault == "unreadable":  # nothing was seen, and nothing is watched
            return "unknown", "offline"
        if presence is None or presence.token != token:
            return self._watched((alias, token), None, now), "offline"
        life = self._life(presence, pid, now.running, max_age)
        if life == "exited":
            return "dead", "offline"
        seen = presence.seen / 1_000
        if now.wall - seen >= self._expiry:
            return ("dead" if self._goes_by_time(now) else "unknown"), "offline"
        # A stamp from the future counts while the process is provably running. It is none if it was
        # written since the clock was read, above.
        fresh = seen <= now.wall or life == "running" or seen <= self._clock.wall()
        if fresh and life != "absent":
            self._watches.pop((alias, token), None)
            return "alive", presence.status
        return self._watched((alias, token), seen, now), presence.status if fresh else "offline"

    def _look(self, directory: PresenceDirectory, alias: str) -> Sighting:
        known = self._sightings.get(alias)
        sighting = directory.read(alias, known)
        if sighting is not known:
            if len(self._sightings) >= _REMEMBERED:
                self._sightings.clear()
            self._sightings[alias] = sighting
        return sighting

    def _life(self, presence: Presence, pid: int, running: float, max_age: float) -> _Life:
        key = (pid, presence.token)
        known = self._lives.get(key) if max_age else None
        if known is not None and 0 <= running - known[1] <= max_age:
            return known[0]
        if len(self._lives) >= _REMEMBERED:
            self._lives.clear()
        life = self._ask(presence, pid)
        self._lives[key] = (life, running)
        return life

    def _ask(self, presence: Presence, pid: int) -> _Life:
        process = presence.process(pid)
        if process is None:
            # An older peer. A pid that is there may have been given out again, and one that is not may be
            # in another pid namespace: neither proves anything, but the second is worth watching.
            return "unproven" if self._exists(pid) else "absent"
        has_exited = self._has_exited(process)
        if has_exited is None:
            return "exited" if ended_with_boot(process, presence.seen / 1_000) else "unproven"
        return "exited" if has_exited else "running"

    def _watched(self, pair: Pair, stamp: float | None, now: _Moment) -> Verdict:
        """Dead, for an observer that has seen the pair without a new heartbeat for two intervals.

        It has watched from its first look to its last one, if the looks between came in time, and if it
        was itself there all the while.
        """
        watch = self._watches.get(pair)
        if watch is None or watch.stamp != stamp or not 0 <= now.running - watch.last <= self._patience:
            begun = self._now()  # after the look: a pause before it is no watching
            recent = {p: w for p, w in self._watches.items() if begun.running - w.last <= self._patience}
            self._watches = {**recent, pair: _Watch(stamp, self._attendance(begun), begun.running)}
            return "unknown"
        watch.last = now.running
        watched = self._attendance(now) - watch.first
        return "dead" if self._goes_by_time(now) and watched >= self._patience else "unknown"


class Hearing:
    """The domain's judge for one attempt of one operation.

    It looks once at each pair, so that a member cannot be dead for one guard of an operation and alive
    for the next.

    Args:
        observer: who judges.
        presence: the team's presence files.
        members: the members of the state that the operation works on.
    """

    __slots__ = ("_members", "_observer", "_presence", "_verdicts")

    def __init__(self, observer: Observer, presence: PresenceDirectory, members: Iterable[Judged]) -> None:
        self._observer = observer
        self._presence = presence
        self._members = tuple(members)
        self._verdicts: dict[Pair, Verdict] = {}

    def __call__(self, alias: str, token: str) -> Verdict:
        """The verdict on a member; *unknown* for a pair that is none."""
        verdict = self._verdicts.get((alias, token))
        if verdict is None:
            verdict = "unknown"
            for member in self._members:
                if member.alias == alias and member.token == token:
                    verdict = self._observer.judge(self._presence, alias, token, member.pid)
            self._verdicts[alias, token] = verdict
        return verdict

    @property
    def undecided(self) -> tuple[Judged, ...]:
        """The members that it was asked about and could not judge: whom a one-shot has to watch."""
        return tuple(m for m in self._members if self._verdicts.get((m.alias, m.token)) == "unknown")

"""Processes, what befalls them, and what is known of it: each step is told, done and checked."""

from __future__ import annotations

import contextlib
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import nursery as nurseries
from nursery import Died, Refused
from pi_team.limits import PRESENCE_EXPIRY, REVISIONS_KEPT
from plain import Owner
from players import Player, Seat
from possible import Possible, Refusal, Violation, shown
from records import Records
from set_clock import SetClock

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from nursery import Actor
    from players import Fate
    from possible import Attempt

INTERVAL: Final = 0.05
LIFETIME: Final = 0.1
_SLACK: Final = 8.0
"""Seconds by which a step may be slower than it looks."""
_EVER: Final = frozenset({"alive", "unknown", "dead"})
_LOST: Final = frozenset({"OUTCOME_UNKNOWN", "TEAM_MOVED"})
_NEVER: Final = frozenset({"BUSY", "STORAGE", "RECORD_MISSING", "RECORD_UNSAFE", "UNSUPPORTED_FILESYSTEM"})


class Cast:
    """The processes of one example, and the teams that they act on.

    Args:
        happened: counts what happens.
        broken: a rule that every process does without: a control.
        patience: seconds that an operation waits for locks.
        kept: the bound of the history.
    """

    def __init__(
        self,
        happened: Counter[str],
        *,
        broken: str = "",
        patience: float = 20.0,
        kept: int = REVISIONS_KEPT,
    ) -> None:
        self.happened = happened
        self._broken = broken
        self._root = Path(tempfile.mkdtemp(prefix="stateful-"))
        self.path = self._root / "teams"
        self.path.mkdir(mode=0o700)
        clock = str(self._root / "clock")
        self._clock = SetClock(clock)
        self._options: dict[str, Any] = {"clock": clock, "lock_lifetime": LIFETIME, "interval": INTERVAL}
        self._options |= {"patience": patience, "kept": kept}
        self._nursery = nurseries.shared()
        self.records = Records(self.path)
        self.possible = Possible(self._verdicts)
        self.story: list[str] = []
        self.players: list[Player] = []
        self.seats: list[Seat] = []
        self._holders: dict[str, Player] = {}  # sessions -> their processes
        self._said: dict[str, float] = {}  # sessions -> when their presence was written last
        self._blurred: set[str] = set()  # aliases whose presence may be another session's
        self._begun: dict[Attempt, int] = {}
        self._reader = self._actor()

    def close(self) -> None:
        """End all of them."""
        self._nursery.forget()
        self.records.close()
        shutil.rmtree(self._root)

    # --- processes

    def _actor(self) -> Actor:
        actor = self._nursery.actor(self.path, **self._options)
        self.happened["processes"] += 1
        if self._broken:
            actor.ask("break", self._broken)
        return actor

    def enter(self) -> Player:
        """A new process."""
        player = Player(f"P{len(self.players) + 1}", self._actor())
        self.players.append(player)
        return player

    def able(self) -> list[Player]:
        """The processes that run."""
        return [player for player in self.players if player.died is None and player.midway is None]

    def asleep(self) -> list[Player]:
        """The processes that are stopped."""
        return [player for player in self.players if player.died is None and player.midway is not None]

    def kill(self, player: Player) -> None:
        """A process dies, idle or stopped."""
        with self._told():
            self.tell(f"{player.name} is killed" + " in its sleep" * (player.midway is not None))
            player.actor.kill()
            self._bury(player, player.midway)

    def _bury(self, player: Player, attempt: Attempt | None) -> None:
        self.happened["killed"] += 1
        player.died, player.midway = len(self.story), None
        if attempt is not None:
            self._blurred |= attempt.aliases
            self.possible.lost(attempt)
        self.observe()

    def wake(self, player: Player) -> None:
        """A stopped process is continued, and does what it was doing to its end."""
        attempt = player.midway
        assert attempt is not None
        with self._told():
            player.actor.go_on()
            player.midway = None
            answer, value = self._answer(player, attempt)
            self.tell(f"{player.name} is continued: {attempt.text}: {shown(answer)}")
            self.happened["continued"] += 1
            player.actor.ask("untrap")
            self._blurred |= attempt.aliases
            if isinstance(answer, Refusal) and answer.code in _LOST:
                self.happened["told that nobody knows"] += 1
                self.possible.lost(attempt)
            else:
                self.possible.resumed(attempt, answer)
            self._note(player, attempt, answer, value)

    def set_clock(self, seconds: float) -> None:
        """The wall clock of the machine is set, for everybody at once."""
        self.tell(f"the clock is set {'forward' if seconds > 0 else 'back'} by {abs(seconds):g} s")
        self.happened["clock set"] += 1
        self._clock.step(seconds)

    # --- operations

    def act(
        self, player: Player, attempt: Attempt, *order: Any, fate: Fate | None = None, **options: Any
    ) -> Any:
        """Let a process do something; its answer, or None where it does not come to that."""
        with self._told():
            self._begun[attempt] = len(self.story)
            if fate is not None:
                where = {"nth": fate.nth, "when": fate.when, "method": fate.method, "name": fate.name}
                player.actor.ask("trap", fate.how, **where)
            player.actor.begin(attempt.do, *order, **options)
            try:
                if fate is not None and fate.how == "stop" and player.actor.stopped_or_answered():
                    self._sleep(player, attempt, fate)
                    return None
                answer, value = self._answer(player, attempt)
            except Died as died:
                if fate is None or died.status != -signal.SIGKILL:
                    raise
                self.tell(f"{attempt.text}: it is {fate}")
                self.happened["killed midway"] += 1
                self.happened["killed between link and rename"] += fate.between_link_and_rename
                self._bury(player, attempt)
                return None
            if fate is not None:
                player.actor.ask("untrap")
            self.tell(f"{attempt.text}: {shown(answer)}")
            self.possible.answered(attempt, answer)
            self._note(player, attempt, answer, value)
            return answer

    def _sleep(self, player: Player, attempt: Attempt, fate: Fate) -> None:
        self.tell(f"{attempt.text}: it is {fate}")
        self.happened["stopped"] += 1
        self.happened["stopped between link and rename"] += fate.between_link_and_rename
        player.midway = attempt
        self._blurred |= attempt.aliases
        self.possible.suspended(attempt)
        self.observe()

    def _answer(self, player: Player, attempt: Attempt) -> tuple[Any, Any]:
        """What a process answers: plainly, and as it is. Raises Died, Violation."""
        try:
            value = player.actor.answer()
        except Refused as refused:
            if refused.code in _NEVER:
                self.tell(f"{attempt.text}: {refused}")
                raise Violation("Unstuck", f"{attempt.text}: {refused}") from refused
            gone = refused.code == "MEMBERSHIP_LOST" and attempt.teams.isdisjoint(self.records.names())
            return Refusal("TEAM_UNKNOWN" if gone else refused.code), None
        if attempt.do == "join":
            return value["alias"], value
        if attempt.do == "notes":
            return tuple(f"{one['kind']} {one['subject']}" for one in value), value
        if attempt.do in {"send", "claim"} and value is not None:
            return f"{value['kind']} {value['subject']}", value
        if attempt.do == "remove_member":
            return (value["refused"], value["cancelled"], value["discarded"]), value
        return (None if attempt.do == "rename_member" else value), value

    def _note(self, player: Player, attempt: Attempt, answer: Any, value: Any) -> None:
        """Note what follows from an answer, and observe."""
        if isinstance(answer, Refusal):
            self.happened[f"{attempt.do} {answer.code}"] += 1
        else:
            self.happened[attempt.do] += 1
            if attempt.do in {"join", "rename_member"} and value is not None:
                self._seat(Seat(player, value["team"], Owner(value["alias"], value["session"]), value))
        self.observe()
        if not isinstance(answer, Refusal):
            for team in attempt.teams:
                # Whoever completes a rename that was cut in half does not look at who has the old name now.
                if not attempt.new or team == attempt.new or team not in self.records.teams:
                    self._read(team)

    def _seat(self, seat: Seat) -> None:
        """A process holds a membership, for which it has just written its presence if that is new."""
        if all((seat.team, seat.owner) != (known.team, known.owner) for known in self.seats):
            self._said[seat.owner.session] = self._clock.wall()
            self.records.aliases[seat.owner.session].add(seat.owner.alias)
            self.seats.append(seat)

    def _read(self, team: str) -> None:
        """Somebody who lives has read a team to its end."""
        for attempt, happened in self.possible.read_by_the_living(team):
            self.happened["died midway, and it " + ("had happened" if happened else "never happened")] += 1
            self.tell(f"    (so it {'had' if happened else 'never'} happened: {attempt.text})")

    def expect(self, player: Player, session: str, alias: str) -> None:
        """A process is about to join as a new session."""
        self._holders[session] = player
        self._said[session] = self._clock.wall()
        self.records.aliases[session].add(alias)

    def heartbeat(self, seat: Seat, status: str = "idle") -> None:
        """A session says that it lives, if it may."""
        with self._told():
            current = self.is_current(seat)
            try:
                seat.player.actor.ask("heartbeat", seat.value, status)
            except Refused as refused:
                self.tell(f"{seat} says that it lives: refused with {refused.code}")
                if current or refused.code not in {"MEMBERSHIP_LOST", "TEAM_MOVED", "TEAM_UNKNOWN"}:
                    raise Violation("Fenced", f"{seat} may not say that it lives: {refused}") from refused
                return
            self.tell(f"{seat} says that it lives")
            alias = seat.owner.alias
            if not current:
                self._blurred.add(alias)
            elif not any(player.midway and alias in player.midway.aliases for player in self.asleep()):
                self._blurred.discard(alias)
            self._said[seat.owner.session] = self._clock.wall()
            self.observe()

    def look(self, name: str) -> None:
        """Somebody outside looks at a team: never at less than before."""
        with self._told():
            team = self.records.teams.get(name)
            try:
                view = self._reader.ask("look", name)
            except Refused as refused:
                self.tell(f"somebody looks at {name}: refused with {refused.code}")
                expected = "TEAM_UNKNOWN" if team is None else "" if team.title == name else "RECORD_CORRUPT"
                if refused.code != expected:
                    raise Violation("Unstuck", f"nobody can look at {name}: {refused}") from refused
                if team is None:
                    self._read(name)
                return
            self.tell(f"somebody looks at {name}")
            self.happened["look"] += 1
            self.possible.observed(self.records.teams | {name: self.records.show(name, view)})
            self.observe()
            self._read(name)

    # --- what is known

    def is_current(self, seat: Seat) -> bool:
        """Whether the team's record names this membership."""
        team = self.records.teams.get(seat.team)
        member = team.member(seat.owner.alias) if team is not None else None
        return member is not None and member.session == seat.owner.session and member.connected

    def _verdicts(self, session: str, attempt: Attempt | None) -> frozenset[str]:
        """What may be said of a session: now, or at any time since that attempt began."""
        player = self._holders[session]
        blurred = not self.records.aliases[session].isdisjoint(self._blurred)
        since = self._begun[attempt] if attempt is not None else len(self.story) + 1
        if player.died is not None and player.died <= since:
            return frozenset({"dead", "unknown"} if blurred or attempt is not None else {"dead"})
        age = self._clock.wall() - self._said[session]
        if blurred or attempt is not None or age > PRESENCE_EXPIRY - _SLACK:
            return _EVER
        return frozenset({"alive"})

    def observe(self) -> None:
        """Read all records as they are, and check that they may be so. Raises Violation."""
        found, behind = self.records.read()
        self.possible.observed(found, behind=behind)
        self.records.teams = {
            name: self.records.teams[name] if name in behind else team for name, team in found.items()
        }

    # --- the story

    def tell(self, line: str) -> None:
        """One more line of the story."""
        self.story.append(line)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Tell how it came to what goes wrong in here."""
        try:
            yield
        except Violation as violation:
            told = "\n".join(f"{number:4}. {line}" for number, line in enumerate(self.story, 1))
            raise Violation(violation.invariant, f"{violation.text}\n\n{told}\n") from violation

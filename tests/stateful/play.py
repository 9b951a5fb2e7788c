"""What the processes of an example can do, in words, plainly, and as an order; and how an example ends."""

from __future__ import annotations

import itertools
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs

import evidence
import plain
import trials
from cast import INTERVAL, Cast
from plain import No, Team
from possible import Attempt, Violation, in_team

if TYPE_CHECKING:
    from players import Fate, Player, Seat

_LONG: Final = 30.0
"""Seconds that the last process waits until it knows who is dead; far more than it takes."""


# --- whole teams, plainly ---------------------------------------------------------------------------


def _create(name: str, teams: dict[str, Team], _: plain.Judge, late: bool) -> Any:  # noqa: ARG001 - a stage
    if name in teams:
        raise No("TEAM_EXISTS")
    teams[name] = Team(name)
    return 1


def _take_away(name: str, target: str, teams: dict[str, Team], judge: plain.Judge) -> None:
    """Move a team's directory. Refuses where somebody is there; the dead stay swept then."""
    if name not in teams:
        raise No("TEAM_UNKNOWN")
    if target in teams and not target.startswith("."):
        raise No("TEAM_EXISTS")
    if teams[name].title != name:
        raise No("RECORD_CORRUPT")
    try:
        plain.vacated(teams[name], judge)
    except No as no:
        teams[name] = no.swept or teams[name]
        raise
    team = teams.pop(name)
    # A team of which nothing is written does not say how it is called.
    teams[target] = team if team.members or team.messages else attrs.evolve(team, title=target)


def _put_back(name: str, target: str, teams: dict[str, Team]) -> None:
    if name not in teams:
        teams[name] = teams.pop(target)


def _move(name: str, new: str, teams: dict[str, Team], judge: plain.Judge, late: bool) -> Any:  # noqa: ARG001 - a stage
    if name == new:
        raise No("TEAM_EXISTS")
    if new in teams and teams[new].title == name:
        return  # what was cut in half is completed
    _take_away(name, new, teams, judge)


def _retitle(name: str, new: str, teams: dict[str, Team], judge: plain.Judge, late: bool) -> Any:
    if new not in teams or teams[new].title != name:
        return  # somebody has done it
    try:
        teams[new] = attrs.evolve(plain.vacated(teams[new], judge), title=new)
    except No:
        if late:
            _put_back(name, new, teams)
        raise


def _bury(name: str, teams: dict[str, Team], judge: plain.Judge, late: bool) -> Any:  # noqa: ARG001 - a stage
    _take_away(name, f".{name}", teams, judge)


def _remove(name: str, teams: dict[str, Team], judge: plain.Judge, late: bool) -> Any:  # noqa: ARG001 - a stage
    if f".{name}" not in teams:
        return
    try:
        plain.vacated(teams[f".{name}"], judge)
    except No:
        _put_back(name, f".{name}", teams)
        raise
    del teams[f".{name}"]


class Play(Cast):
    """An example: processes that act; see :class:`Cast`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._numbers = itertools.count(1)

    # --- whole teams

    def create(self, player: Player, name: str, fate: Fate | None = None) -> Any:
        """A team is made."""
        text = f"{player.name} creates {name}"
        attempt = Attempt(text, "create", frozenset({name}), (partial(_create, name),))
        return self.act(player, attempt, name, fate=fate)

    def rename_team(self, player: Player, name: str, new: str, fate: Fate | None = None) -> Any:
        """A team gets another name."""
        text = f"{player.name} renames team {name} to {new}"
        stages = (partial(_move, name, new), partial(_retitle, name, new))
        attempt = Attempt(text, "rename_team", frozenset({name, new}), stages, new=new)
        return self.act(player, attempt, name, new, fate=fate)

    def delete_team(self, player: Player, name: str, fate: Fate | None = None) -> Any:
        """A team is deleted."""
        text = f"{player.name} deletes team {name}"
        stages = (partial(_bury, name), partial(_remove, name))
        return self.act(player, Attempt(text, "delete_team", frozenset({name}), stages), name, fate=fate)

    # --- members

    def join(self, player: Player, team: str, alias: str, fate: Fate | None = None) -> Seat | None:
        """A process becomes a member."""
        session = f"{player.name}-{next(self._numbers)}"
        self.expect(player, session, alias)
        attempt = Attempt(
            f"{player.name} joins {team} as {alias}",
            "join",
            frozenset({team}),
            (in_team(team, partial(plain.join, alias=alias, session=session)),),
            aliases=frozenset({alias}),
        )
        answer = self.act(player, attempt, team, alias, session=session, fate=fate)
        return self.seats[-1] if answer == alias else None

    def leave(self, seat: Seat, fate: Fate | None = None) -> Any:
        """A member goes."""
        return self._own(seat, "leaves", "leave", partial(plain.leave, owner=seat.owner), fate=fate)

    def sweep(self, seat: Seat, fate: Fate | None = None) -> Any:
        """A member looks for work of the dead."""
        apply = partial(plain.sweep, owner=seat.owner)
        return self._own(seat, "sweeps", "sweep", apply, fate=fate, idle=True)

    def rename_member(
        self,
        player: Player,
        actor: Seat | None,
        team: str,
        alias: str,
        new: str,
        *,
        fate: Fate | None = None,
    ) -> Any:
        """A member, or a person, gives a member another alias."""
        attempt = Attempt(
            f"{actor or player.name} renames {alias} of {team} to {new}",
            "rename_member",
            frozenset({team}),
            (in_team(team, partial(plain.rename_member, actor=_owner(actor), alias=alias, new=new)),),
            aliases=frozenset({alias, new}),
        )
        return self.act(player, attempt, team, alias, new, fate=fate, **_actor(actor))

    def remove_member(
        self, player: Player, actor: Seat | None, team: str, alias: str, fate: Fate | None = None
    ) -> Any:
        """A member, or a person, takes a member out of the roster."""
        attempt = Attempt(
            f"{actor or player.name} removes {alias} of {team}",
            "remove_member",
            frozenset({team}),
            (in_team(team, partial(plain.remove_member, actor=_owner(actor), alias=alias)),),
        )
        return self.act(player, attempt, team, alias, fate=fate, **_actor(actor))

    # --- messages

    def send(self, seat: Seat, to: str, kind: str, parent: str = "", fate: Fate | None = None) -> Any:
        """A member sends."""
        subject = f"s{next(self._numbers)}"
        words = f"sends {to} {kind} {subject}" + f" about {parent}" * bool(parent)
        apply = partial(plain.send, owner=seat.owner, to=to, kind=kind, subject=subject, parent=parent)
        options: dict[str, Any] = {"kind": kind, "subject": subject, "body": "x"}
        options |= {"parent": self.records.ids[parent]} if parent else {}
        return self._own(seat, words, "send", apply, to, fate=fate, **options)

    def notes(self, seat: Seat, fate: Fate | None = None) -> Any:
        """A member takes its notes."""
        apply = partial(plain.notes, owner=seat.owner)
        return self._own(seat, "takes its notes", "notes", apply, fate=fate, idle=True)

    def claim(self, seat: Seat, wanted: str = "", fate: Fate | None = None) -> Any:
        """A member begins to work, on what is next or on what it asks for."""
        options: dict[str, Any] = {"message_id": self.records.ids[wanted]} if wanted else {}
        apply = partial(plain.claim, owner=seat.owner, wanted=wanted)
        words = f"claims {wanted or 'what is next'}"
        return self._own(seat, words, "claim", apply, fate=fate, idle=True, **options)

    def release(self, seat: Seat, key: str, fate: Fate | None = None) -> Any:
        """A member has not begun after all."""
        apply = partial(plain.release, owner=seat.owner, key=key)
        return self._own(
            seat, f"releases {key}", "release", apply, self.records.ids[key], fate=fate, idle=True
        )

    def settle(self, seat: Seat, key: str, outcome: str = "completed", fate: Fate | None = None) -> Any:
        """A member has worked."""
        apply = partial(plain.settle, owner=seat.owner, key=key, outcome=outcome)
        report: dict[str, Any] = {"outcome": outcome, "body": "x", "files": [], "tests": []}
        words = f"settles {key} as {outcome}"
        return self._own(seat, words, "settle", apply, self.records.ids[key], report, fate=fate, idle=True)

    def _own(
        self,
        seat: Seat,
        words: str,
        do: str,
        apply: Any,
        *order: Any,
        fate: Fate | None,
        idle: bool = False,
        **options: Any,
    ) -> Any:
        stages = (in_team(seat.team, apply),)
        attempt = Attempt(f"{seat} {words}", do, frozenset({seat.team}), stages, idle=idle)
        return self.act(seat.player, attempt, seat.value, *order, fate=fate, **options)

    # --- the end

    def end(self) -> None:
        """Everybody dies. Somebody new joins, writes and sweeps, and nothing is left undone."""
        for player in self.players:
            if player.died is None:
                self.kill(player)
        self.set_clock(1_000_000.0)  # nothing that was written is from the future any more
        last = self.enter()
        for name, team in list(self.records.teams.items()):
            if team.title != name:
                self.rename_team(last, team.title, name)
        for name in list(self.records.teams):
            self._finish(last, name)
        with self._told():
            trials.heal(last.actor, self.path)
            self.observe()
            if evidence.strays(self.path):
                raise Violation("Swept", f"nobody needs {evidence.strays(self.path)}")

    def _finish(self, last: Player, name: str) -> None:
        seat = self.join(last, name, "last")
        with self._told():
            if seat is None:
                raise Violation("Unstuck", f"nobody can join {name}")
        assert seat is not None
        others = [member.alias for member in self.records.teams[name].members if member.alias != "last"]
        for alias in others[:1]:
            self.send(seat, alias, "note")
        until = time.monotonic() + _LONG
        self.sweep(seat)
        while any(one.state == "processing" for one in self.records.teams[name].messages):
            with self._told():
                if time.monotonic() > until:
                    raise Violation("Unstuck", f"nobody ends what the dead of {name} have claimed")
            time.sleep(INTERVAL / 2)
            self.heartbeat(seat)
            self.sweep(seat)
        self.look(name)


def _owner(actor: Seat | None) -> plain.Owner | None:
    return actor.owner if actor is not None else None


def _actor(actor: Seat | None) -> dict[str, Any]:
    return {"actor": actor.value} if actor is not None else {}

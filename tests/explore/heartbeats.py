"""A session whose heartbeats go on while its team is deleted and made anew, or renamed.

The session has opened its team as it does when it joins, and beats through what it opened. Nothing of it
may reach a team that takes the name later, and no heartbeat makes a team or a directory of one.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Final
from unittest import mock

import directories
import programs
import scenarios
from behaviour import Outcome
from directories import NEW, DirectoryJudge
from disk import Directory
from invariants import Violation, file_at, record_of
from pi_team.errors import TeamMoved, TeamUnknown
from pi_team.presence import Observer, Process, heartbeat
from pi_team.seats import Seat
from programs import PATH, Operation, ending
from system import Scenario
from worlds import TEAM, ListCodec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from behaviour import Recorder
    from disk import Disk

ALIAS: Final = "ann"
OLD: Final = "the token before"
SUCCESSOR: Final = "the token after"
_PRESENCE: Final = f"{ALIAS}.json"


def _sitting(label: str, token: str, *, beats: int, leaves: bool, home: str = "") -> Operation:
    """Open the team as a joining session does, beat that often, and leave or stay.

    Args:
        label: of the operation.
        token: what the presence bears.
        beats: how often.
        leaves: whether the presence is removed at the end.
        home: whose record the team must have, since that is the one that was joined; "" for any.
    """

    def run(name: str, fs: Recorder) -> Outcome:
        ended: list[Outcome] = []
        myself = Process(ord(name[0]), 1, "here", "0" * 32, "1")
        with (
            ending(ended, label),
            mock.patch.object(heartbeat, "_attempts", itertools.count()),
            mock.patch.object(heartbeat, "this_process", return_value=myself),
        ):
            process = programs.Process(fs, name, 32)
            seat = Seat(process.open(), myself, Observer(process.clock))
            try:
                born = process.publisher.read(seat.directory, ListCodec()).previous.publication
                if home not in (born, ""):
                    raise TeamUnknown("the team that was joined is gone")
                for beat in range(beats):
                    try:
                        seat.write_presence(ALIAS, token, "idle", 1_000 + beat)
                    except TeamMoved:
                        break
                if leaves:
                    seat.forget(ALIAS, token)
            finally:
                seat.close()
            ended.append(Outcome("acknowledged", label))
        return ended[0]

    return Operation(label, run)


class HeartbeatJudge(DirectoryJudge):
    """Besides what holds of directories. Foreign: no presence of the session is in any team but its own.

    Own: what the successor says of itself stays there until it says something else.

    Args:
        home: the thing that is the session's team.
    """

    def __init__(self, home: str) -> None:
        super().__init__()
        self._home = home

    def after_step(self, before: Disk, after: Disk) -> None:
        """A step changed the disk."""
        super().after_step(before, after)
        there = [*_tokens(after)]
        for name, thing, token in there:
            if token == OLD and thing != self._home:
                raise Violation("Foreign", f"the session's presence is in another team, {name}")
        told = any(token == SUCCESSOR for *_, token in _tokens(before))
        if told and all(token != SUCCESSOR for *_, token in there):
            raise Violation("Own", "the successor's presence is gone")


def _tokens(disk: Disk) -> Iterator[tuple[str, str, str]]:
    """Each directory under the teams directory that holds a presence of the alias: name, thing, token."""
    teams = disk.things[PATH]
    assert isinstance(teams, Directory)
    for name, thing in teams.entries.items():
        data = file_at(disk, name, "presence", _PRESENCE)
        if data is not None:
            yield name, thing, json.loads(data)["token"]


def _scenario(name: str, second: list[Operation], bound: int | None, *, beats: int) -> Scenario:
    disk = scenarios.team()
    teams = disk.things[PATH]
    assert isinstance(teams, Directory)
    home, born = teams.entries[TEAM], record_of(disk).identity
    return Scenario(
        f"{name}, {beats} heartbeat{'s' * (beats > 1)} and a leave",
        disk,
        {"h": [_sitting("leave", OLD, beats=beats, leaves=True, home=born)], "d": second},
        lambda: HeartbeatJudge(home),
        Operation("recovery", directories.recover),
        bound=bound,
        cuts=False,  # presence is never synced; what a cut leaves of the others is in `directories`
        directories_stay=False,
    )


def beside_deletion(bound: int | None = None, *, beats: int = 2) -> Scenario:
    """Heartbeats beside a deletion, a creation of the same name, and a join under the same alias there."""
    operations = [
        programs.delete(TEAM),
        programs.create(TEAM),
        _sitting("join", SUCCESSOR, beats=1, leaves=False),
    ]
    return _scenario("delete, create and join", operations, bound, beats=beats)


def beside_renaming(bound: int | None = None, *, beats: int = 2) -> Scenario:
    """Heartbeats beside a rename of the team."""
    return _scenario("a rename", [programs.rename(TEAM, NEW)], bound, beats=beats)

"""Whole teams that are created, renamed and deleted while somebody writes: scenarios and their invariants.

Names are looked up anew by each process and nobody holds a lock, so that all that protects a team is what
the protocol says of directories (docs/protocol.md, "Directories").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import programs
import scenarios
from behaviour import Outcome
from disk import Directory
from invariants import OLDER_PEER, Violation, file_at, parsed
from pi_team.errors import RecordCorrupt
from programs import PATH, Process, ending
from system import Scenario
from worlds import TEAM, Items

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from behaviour import Recorder
    from disk import Disk
    from invariants import Facts

NEW: Final = "beta"


def recover(name: str, fs: Recorder) -> Outcome:
    """A fresh process looks at every team and writes in it; a rename that was cut in half it repeats."""
    ended: list[Outcome] = []
    with ending(ended, ""):
        process = Process(fs, name, 1_000)
        found: dict[str, Items] = {}
        for team in process.store.names():
            try:
                found[team] = _used(process, team)
            except RecordCorrupt:
                programs.rename(TEAM, team).run(name, fs)
                found[team] = _used(process, team)
        ended.append(Outcome("acknowledged", "", tuple(found.items())))
    return ended[0]


def _used(process: Process, team: str) -> Items:
    reader = process.reader(team)
    try:
        reader.read()
        process.append("recovery", process.patience(0.05), team)
        items: Items = reader.read().value
        return items
    finally:
        reader.close()


class DirectoryJudge:
    """The invariants of a teams directory, whatever is done to it.

    Complete: what stands under the name of a team has a sound record. Chain: the record of one directory
    only moves forward, to what was written for this very directory.
    """

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def after_step(self, before: Disk, after: Disk) -> None:
        """A step changed the disk."""
        then, now = _records(before), _records(after)
        for thing, data in now.items():
            if data is None or data == then.get(thing):
                continue
            record = parsed(data)
            self._parents[record.identity] = record.parent
            old = then.get(thing)
            if old is not None and record.parent != OLDER_PEER:
                self._check_chain(parsed(old).identity, record.identity, after)

    def _check_chain(self, old: str, new: str, disk: Disk) -> None:
        for found in disk.things.values():
            if not isinstance(found, Directory):
                try:
                    record = parsed(found.data)
                except (ValueError, KeyError, AssertionError):
                    continue
                self._parents[record.identity] = record.parent
        at = new
        while at != old:
            if at not in self._parents:
                raise Violation("Chain", f"publication {new} replaced {old}, and does not descend from it")
            at = self._parents[at]

    def after_outcome(self, disk: Disk, outcome: Outcome) -> None:
        """An operation ended; Expected: with no error that a caller does not know."""
        if outcome.kind == "broken":
            raise Violation("Expected", f"{outcome.item} ended in {outcome.detail}")
        for team in _teams(disk):
            if file_at(disk, team, "state.json") is None:
                raise Violation("Complete", f"team {team} has no record")

    def shown(self, disk: Disk) -> Items:
        """Nothing that would have to last: a team may be deleted."""
        del disk
        return ()

    def agree(self, shown: list[Any]) -> Items:
        """As that says, nothing."""
        del shown
        return ()

    def after_recovery(self, outcome: Outcome, facts: Facts) -> None:
        """A fresh process has used every team that it found. Usable: each could be read and written.

        Lasting: an acknowledged creation, rename or deletion took effect. Durable, Once: as for one team.
        """
        if outcome.kind != "acknowledged":
            raise Violation("Usable", f"a fresh process is told: {outcome.detail}")
        teams: dict[str, Items] = dict(outcome.detail)
        done = facts.acknowledged
        if f"rename {NEW}" in done and (NEW not in teams or TEAM in teams):
            raise Violation("Lasting", f"the rename is acknowledged, and there is {sorted(teams)}")
        if "delete" in done and "create" not in facts.begun and TEAM in teams:
            raise Violation("Lasting", "the deletion is acknowledged, and the team is there")
        if "create" in done and "delete" not in facts.begun - done and TEAM not in teams:
            raise Violation("Lasting", "the creation is acknowledged, and the team is not there")
        if not facts.begun & {"delete", "create"} and len(teams) != 1:
            raise Violation("Lasting", f"nobody deleted the team, and there is {sorted(teams)}")
        for items in teams.values():
            if len(set(items)) != len(items):
                raise Violation("Once", f"something is doubled in {items}")
        if "delete" not in facts.begun:
            self._check_items(teams, {item for item in done if item.startswith("a")})

    def _check_items(self, teams: Mapping[str, Items], acknowledged: set[str]) -> None:
        everything = [item for items in teams.values() for item in items]
        for item in acknowledged:
            if item not in everything:
                raise Violation("Durable", f"{item} is acknowledged and not in {everything}")


def _teams(disk: Disk) -> Iterator[str]:
    directory = disk.things[PATH]
    assert isinstance(directory, Directory)
    return (name for name in directory.entries if not name.startswith("."))


def _records(disk: Disk) -> dict[str, bytes | None]:
    """The record of each directory below the teams directory, by the directory and not its name."""
    directory = disk.things[PATH]
    assert isinstance(directory, Directory)
    return {thing: file_at(disk, name, "state.json") for name, thing in directory.entries.items()}


def _scenario(name: str, second: list[programs.Operation], bound: int | None) -> Scenario:
    return Scenario(
        name,
        scenarios.team(),
        {"a": [programs.write("a1", 32)], "d": second},
        DirectoryJudge,
        programs.Operation("recovery", recover),
        bound=bound,
        directories_stay=False,
    )


def renaming(bound: int | None = 3) -> Scenario:
    """A writer, and a rename."""
    return _scenario("1 writer, and a rename", [programs.rename(TEAM, NEW)], bound)


def deleting(bound: int | None = 2) -> Scenario:
    """A writer, and a deletion with a creation of the same name after it."""
    operations = [programs.delete(TEAM), programs.create(TEAM)]
    return _scenario("1 writer, delete and create", operations, bound)

"""What must hold of a team at every moment, after every crash and every power cut.

The names are those of the spec's invariants. Records are read here without any code under test.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import attrs

from disk import Directory, Disk, File
from programs import PATH
from worlds import TEAM, Items, parse_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from behaviour import Outcome

RECOVERY: Final = "recovery"
OLDER_PEER: Final = ""
"""The parent of an older peer's record, which does not say what it is."""


class Violation(AssertionError):
    """An invariant does not hold; `invariant` is its name."""

    def __init__(self, invariant: str, text: str) -> None:
        super().__init__(f"{invariant}: {text}")
        self.invariant = invariant


class Record(NamedTuple):
    """What a record says; who its parent is by identity."""

    revision: int
    identity: str
    parent: str
    items: Items


@attrs.frozen
class Facts:
    """What the processes and their users know.

    Attributes:
        acknowledged: items whose writers were told that they are in.
        refused: items whose writers were told that they are not.
        begun: items whose writers have begun, and may be told anything yet, and those above.
        shown: what was shown of the team so far, the longest.
    """

    acknowledged: frozenset[str]
    refused: frozenset[str]
    begun: frozenset[str]
    shown: Items

    def without(self, item: str) -> Facts:
        """Without an operation that writes no item."""
        return attrs.evolve(self, acknowledged=self.acknowledged - {item}, refused=self.refused - {item})


@lru_cache(maxsize=4096)
def parsed(data: bytes) -> Record:
    """A record's bytes, checked."""
    value = parse_record(data)
    return Record(
        value["revision"],
        value["publication"]["id"] if "publication" in value else value["contentHash"],
        value["previous"]["publication"] or value["previous"]["contentHash"] if "previous" in value else "",
        tuple(value["payload"]["items"]),
    )


def file_at(disk: Disk, *path: str) -> bytes | None:
    """The bytes of a file below the teams directory, or None."""
    thing: str = PATH
    for part in path:
        found = disk.things.get(thing)
        if not isinstance(found, Directory) or part not in found.entries:
            return None
        thing = found.entries[part]
    found = disk.things[thing]
    return found.data if isinstance(found, File) else None


def record_of(disk: Disk, team: str = TEAM) -> Record:
    """The record of a team, which is always there and sound."""
    data = file_at(disk, team, "state.json")
    if data is None:
        raise Violation("Present", f"team {team} has no record")
    try:
        return parsed(data)
    except (ValueError, KeyError, AssertionError) as error:
        raise Violation("Sound", f"the record of team {team} is damaged: {error!r}") from error


class PublicationJudge:
    """The invariants of publication over one team whose payload is a list of items.

    Args:
        acknowledged: what was acknowledged before the exploration.
    """

    def __init__(self, acknowledged: frozenset[str] = frozenset()) -> None:
        self._acknowledged = acknowledged
        self._parents: dict[str, str] = {}

    def after_step(self, before: Disk, after: Disk) -> None:
        """A step changed the disk.

        Chain: the record before is the record after, or an ancestor of it. So it never goes back.
        """
        old, new = record_of(before), record_of(after)
        if old == new:
            return
        self._learn(after)
        at, seen = new.identity, 0
        while at not in (old.identity, OLDER_PEER):
            if at not in self._parents or seen > 1_000:
                raise Violation(
                    "Chain", f"revision {new.revision} {new.items} replaced {old.revision} {old.items}"
                )
            at, seen = self._parents[at], seen + 1
        if new.revision <= old.revision:
            raise Violation("Forward", f"the record went from revision {old.revision} to {new.revision}")

    def _learn(self, disk: Disk) -> None:
        for record in records(disk):
            self._parents[record.identity] = record.parent

    def after_outcome(self, disk: Disk, outcome: Outcome) -> None:
        """An operation ended.

        Installed: what is acknowledged is in the record. Expected: no error that a caller does not know.
        """
        if outcome.kind == "broken":
            raise Violation("Expected", f"{outcome.item} ended in {outcome.detail}")
        if outcome.kind == "acknowledged" and outcome.item:
            record = record_of(disk)
            if outcome.item not in record.items:
                raise Violation("Installed", f"{outcome.item} is acknowledged; the record is {record.items}")

    def shown(self, disk: Disk) -> Items:
        """What a plain reader sees now, and has seen at most: the record only moves forward."""
        return record_of(disk).items

    def agree(self, shown: list[Any]) -> Items:
        """The longest of what was shown; Shown is broken where not each is the beginning of it."""
        return longest(shown)

    def after_recovery(self, outcome: Outcome, facts: Facts) -> None:
        """All processes stopped for ever, or the power was cut; a fresh one looked and wrote.

        Writable: both worked. Durable: each acknowledged item is there once. Refused: those are not there.
        Once: nothing is there twice. Shown: what was shown to anybody is not taken back.
        CaughtUp: the record itself is what the look showed.
        """
        if outcome.kind != "acknowledged":
            raise Violation("Writable", f"a fresh process is told: {outcome.detail}")
        shown, record, last, shown_revision, last_revision = outcome.detail
        self._check_items(shown, facts)
        if record != shown:
            raise Violation("CaughtUp", f"a look shows {shown}, the record is {record}")
        if last.count(outcome.item) != 1 or last_revision <= shown_revision:
            raise Violation("Durable", f"a write after {shown} is acknowledged and made {last}")
        if last != (*shown, outcome.item):
            raise Violation("CaughtUp", f"a look shows {shown}, and a write after it made {last}")

    def _check_items(self, items: Items, facts: Facts) -> None:
        if items[: len(facts.shown)] != facts.shown:
            raise Violation("Shown", f"{facts.shown} was shown, and now it is {items}")
        for item in facts.acknowledged | self._acknowledged:
            if items.count(item) != 1:
                raise Violation("Durable", f"{item} is acknowledged and {items.count(item)} times in {items}")
        for item in facts.refused:
            if item in items:
                raise Violation("Refused", f"{item} was refused and is in {items}")
        if len(set(items)) != len(items):
            raise Violation("Once", f"something is doubled in {items}")


def records(disk: Disk) -> Iterator[Record]:
    """All sound records on a disk, under whatever name."""
    for found in disk.things.values():
        if isinstance(found, File) and found.target is None:
            try:
                yield parsed(found.data)
            except (ValueError, KeyError, AssertionError):
                continue


def longest(shown: list[Any]) -> Items:
    """The longest of what was shown; each is the beginning of it, or Shown is broken already."""
    best: Items = max(shown, key=len, default=())
    for items in shown:
        if best[: len(items)] != items:
            raise Violation("Shown", f"both {items} and {best} were shown")
    return best

"""A disk as a value: what is on it, what of that is durable, and which inode numbers are free.

Each change makes a new one, so that a search keeps as many as it likes and compares them.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT: Final = ""


class File(NamedTuple):
    """A regular file, or a symbolic link where `target` says so.

    Attributes:
        number: of the inode; 0 once it has neither a name nor a descriptor.
        links: how many names it has.
        opens: how many descriptors pin it.
        data: its bytes.
        durable: its bytes at the last fsync.
        target: where a symbolic link leads.
    """

    number: int
    links: int
    opens: int
    data: bytes
    durable: bytes
    target: str | None = None


class Directory:
    """A directory; immutable, and hashed once.

    Attributes:
        number, links, opens: as for a file; `links` is 1 while it has a name.
        entries: which object bears a name.
        past: what a name changed since the last fsync bore before, the durable one first; None for nothing.
    """

    __slots__ = ("_known", "entries", "links", "number", "opens", "past")

    def __init__(
        self,
        number: int,
        links: int,
        opens: int,
        entries: Mapping[str, str],
        past: Mapping[str, tuple[str | None, ...]],
    ) -> None:
        self.number = number
        self.links = links
        self.opens = opens
        self.entries = entries
        self.past = past
        self._known: object = None

    def _names(self) -> object:
        """Entries and past, to be compared; the same for all directories that differ in counts only."""
        if self._known is None:
            self._known = (frozenset(self.entries.items()), frozenset(self.past.items()))
        return self._known

    def __hash__(self) -> int:
        return hash((self.number, self.links, self.opens, self._names()))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Directory)
            and (self.number, self.links, self.opens) == (other.number, other.links, other.opens)
            and self._names() == other._names()
        )

    def lasting(self) -> object:
        """What does not depend on who has it open."""
        return (self.links, self._names())

    def counted(self, *, number: int, links: int, opens: int) -> Directory:
        """With other counts."""
        changed = Directory(number, links, opens, self.entries, self.past)
        changed._known = self._names()
        return changed

    def naming(self, name: str, value: str | None) -> Directory:
        """With a name that bears `value`, or nothing."""
        entries = dict(self.entries)
        before = entries.pop(name, None)
        if value is not None:
            entries[name] = value
        past = self.past.get(name, ())
        if before not in past:
            past = (*past, before)
        return Directory(self.number, self.links, self.opens, entries, {**self.past, name: past})


Thing: TypeAlias = File | Directory


@attrs.frozen(eq=False)
class Disk:
    """All that outlives a process.

    Attributes:
        things: files and directories by a name of their own, which tells where each was made. What has
            lost all its names stays while a power cut could bring it back.
        spare: inode numbers that are free again, and are given out first.
    """

    things: Mapping[str, Thing]
    spare: frozenset[int] = frozenset()

    def key(self) -> object:
        """What two equal disks have in common."""
        return (frozenset(self.things.items()), self.spare)

    def lasting(self) -> object:
        """What two disks have in common that a crash or a power cut leaves the same."""
        return frozenset(
            (thing, found.lasting() if isinstance(found, Directory) else (found.data, found.durable))
            for thing, found in self.things.items()
        )


class Descriptor(NamedTuple):
    """An open file: what it is, where it is read next, whether for writing, and how it was named."""

    thing: str
    offset: int
    writes: bool
    name: str


def blank(path: str = "/") -> Disk:
    """A disk with a root directory and an empty directory at a path."""
    things: dict[str, Thing] = {ROOT: Directory(1, 1, 0, {}, {})}
    at = ROOT
    for part in filter(None, path.split("/")):
        below = f"{at}/{part}"
        above = things[at]
        assert isinstance(above, Directory)
        things[at] = Directory(above.number, 1, 0, {part: below}, {})
        things[below] = Directory(len(things) + 1, 1, 0, {}, {})
        at = below
    return Disk(things)


_fresh: Final[dict[str, int]] = {}


def fresh_number(thing: str, taken: set[int]) -> int:
    """A number of its own for each thing ever made, whatever was made before it."""
    while (number := _fresh.setdefault(thing, 1_000 + len(_fresh))) in taken:
        thing += "'"
    return number


@cache
def status(mode: int, number: int, links: int, size: int) -> os.stat_result:
    # The clock of the file system stands still: two files are never told apart by their dates.
    return os.stat_result((mode, number, 1, links, os.geteuid(), os.getegid(), size, 0, 0, 0))

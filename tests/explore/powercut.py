"""What a power cut may leave of a disk (docs/protocol.md, "What is asked of the file system").

- Of the names that changed since the directory's last `fsync`, any subset; a name that changed several
  times may bear any of the files that it bore since. A directory is not a file here: a rename of one
  within its parent happens or does not, as no file system gives a directory two names or none.
- Of a file's data since its last `fsync`, nothing, a part, or all.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, TypeAlias

from disk import ROOT, Directory, Disk, File, Thing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Choice: TypeAlias = tuple[str, str | None, Any, str]
    """A thing, the name in it for a directory, what that bears or the bytes, and what was lost in words."""


def synced(disk: Disk) -> Disk:
    """The disk as it is, with everything on it durable and nobody who has anything open."""
    return _mounted({thing: _settled(found) for thing, found in disk.things.items()})


def _settled(found: Thing) -> Thing:
    return found if isinstance(found, File) else Directory(0, 0, 0, found.entries, {})


def nothing_lost(disk: Disk) -> Iterator[tuple[Disk, tuple[str, ...]]]:
    """What a power cut leaves of a file system that syncs everything at once."""
    yield synced(disk), ()


def persisted(disk: Disk) -> Iterator[tuple[Disk, tuple[str, ...]]]:
    """Every disk that a power cut may leave, and in words what each lost of the newest state."""
    choices = list(_choices(disk))
    moved = any(
        name is not None and isinstance(disk.things.get(value), Directory)
        for options in choices
        for _, name, value, _ in options
    )
    settled = {thing: _settled(found) for thing, found in disk.things.items()}
    for chosen in itertools.product(*choices):
        things = dict(settled)
        for thing, name, value, _ in chosen:
            things[thing] = _with(things[thing], name, value)
        if not moved or _is_legal(disk, things):
            words = tuple(
                text for options, (*_, text) in zip(choices, chosen, strict=True) if text != options[0][-1]
            )
            yield _mounted(things), words


def _choices(disk: Disk) -> Iterator[list[Choice]]:
    """For each name and each file that is not durable what may be left of it, the newest first."""
    for thing, found in disk.things.items():
        if isinstance(found, Directory):
            for name, past in found.past.items():
                now = found.entries.get(name)
                values = [now, *(value for value in past if value != now)]
                if len(values) > 1:
                    yield [(thing, name, value, _lost(name, now, value)) for value in values]
        elif found.data != found.durable:
            size, short = len(found.data), thing.rpartition("/")[2]
            datas = dict.fromkeys([found.data, found.durable, b"", found.data[: size // 2]])
            yield [(thing, None, data, f"{short} keeps {len(data)} of {size} bytes") for data in datas]


def _with(found: Thing, name: str | None, value: Any) -> Thing:
    if isinstance(found, File):
        return found._replace(data=value)
    entries = dict(found.entries)
    entries.pop(str(name), None)
    if value is not None:
        entries[str(name)] = value
    return Directory(0, 0, 0, entries, {})


def _lost(name: str, now: str | None, value: str | None) -> str:
    if value is None:
        return f"{name} is not there yet"
    if now is None:
        return f"{name} is there still"
    return f"{name} is still {value.rpartition('/')[2]}"


def _is_legal(disk: Disk, things: Mapping[str, Thing]) -> bool:
    """Whether no directory has two names, and none lost the one that it had for sure."""
    for thing, found in disk.things.items():
        if isinstance(found, Directory) and thing != ROOT:
            names = _bearers(things, thing)
            if names > 1 or (names == 0 and found.links and _was_durable(disk, thing)):
                return False
    return True


def _bearers(things: Mapping[str, Thing], thing: str) -> int:
    return sum(
        value == thing
        for found in things.values()
        if isinstance(found, Directory)
        for value in found.entries.values()
    )


def _was_durable(disk: Disk, thing: str) -> bool:
    """Whether a directory had a name at its parent's last fsync."""
    return any(
        value == thing
        for found in disk.things.values()
        if isinstance(found, Directory)
        for value in ({**found.entries} | {name: past[0] for name, past in found.past.items()}).values()
    )


def _mounted(things: Mapping[str, Thing]) -> Disk:
    """The reachable part, with link counts and numbers as after a reboot."""
    links: dict[str, int] = {ROOT: 1}
    order = [ROOT]
    for thing in order:
        found = things[thing]
        if isinstance(found, Directory):
            for _, below in sorted(found.entries.items()):
                if below not in links:
                    order.append(below)
                links[below] = links.get(below, 0) + 1
    fresh: dict[str, Thing] = {}
    for number, thing in enumerate(order, 1):
        found = things[thing]
        if isinstance(found, Directory):
            fresh[thing] = found.counted(number=number, links=links[thing], opens=0)
        else:
            fresh[thing] = File(number, links[thing], 0, found.data, found.data, found.target)
    return Disk(fresh)

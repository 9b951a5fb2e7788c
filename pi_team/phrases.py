"""Numbers, times and ids as people say them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ago", "clock_time", "plural", "short_ids"]

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))
_SHORTEST_ID: Final = 8


def ago(milliseconds: float, now: float) -> str:
    """The age of a moment, like "3 min"; a moment ahead of the clock counts as now.

    Args:
        milliseconds: the moment, since 1970.
        now: the present in seconds since 1970.
    """
    seconds = max(now - milliseconds / 1000, 0)
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"


def clock_time(milliseconds: float) -> str:
    """The local time of day, like "14:03:22"; "?" for a moment that no calendar has."""
    try:
        return time.strftime("%H:%M:%S", time.localtime(milliseconds / 1000))
    except (OverflowError, ValueError, OSError):
        return "?"


def plural(count: int, noun: str) -> str:
    """The number with its noun: "1 request", "3 requests"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """For each id its shortest beginning, of at least eight characters, that no other id shares."""
    ordered = sorted(set(ids))
    short = {}
    for number, identifier in enumerate(ordered):
        neighbours = [*ordered[max(number - 1, 0) : number], *ordered[number + 1 : number + 2]]
        shared = max((_shared(identifier, other) for other in neighbours), default=0)
        short[identifier] = identifier[: max(shared + 1, _SHORTEST_ID)]
    return short


def _shared(one: str, other: str) -> int:
    """Length of the beginning that two texts share."""
    length = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        length += 1
    return length

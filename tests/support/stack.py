"""Calls deep in a stack that is nearly used up, as in a host that recurses."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def with_frames_left(frames: int, run: Callable[[], T]) -> T:
    """Call with so many frames left to the interpreter's limit, that of the call included."""
    height = 1
    frame = sys._getframe()
    while frame.f_back is not None:
        height, frame = height + 1, frame.f_back
    return _deeper(sys.getrecursionlimit() - height - frames, run)


def _deeper(levels: int, run: Callable[[], T]) -> T:
    return run() if levels <= 1 else _deeper(levels - 1, run)

"""System calls as values: made on a simulated file system, answered, varied, and told in words."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from simulation import SimulatedFileSystem

Call: TypeAlias = "tuple[str, tuple[Any, ...]]"
"""Method and arguments."""


class Failure(NamedTuple):
    """The answer of a call that the system refused."""

    code: int

    def __str__(self) -> str:
        return errno.errorcode.get(self.code, str(self.code))


RUN: Final = "run"
MISS: Final = "miss"
FAIL: Final = "fail"
FAIL_AFTER: Final = "fail after"
_EFFECTIVE: Final = frozenset({"create", "mkdir", "fsync", "link", "rename", "unlink", "rmdir", "close"})


def perform(fs: SimulatedFileSystem, call: Call, how: str = RUN) -> Any:
    """Make a call on a simulated file system; its answer, always hashable.

    Args:
        fs: the process's port; its disk changes.
        call: method and arguments.
        how: MISS leaves out of a listing what came or went meanwhile; FAIL is EIO instead of the call,
            FAIL_AFTER an EIO that the call reports although it took effect.
    """
    method, args = call
    if how == FAIL and method != "close":
        return Failure(errno.EIO)
    try:
        answer = _answer(fs, method, args, how)
    except OSError as error:
        return Failure(error.errno or 0)
    if how in (FAIL, FAIL_AFTER):
        if method == "create":
            fs.close(answer)  # a call that failed gave nobody a descriptor
        return Failure(errno.EIO)
    return answer


def _answer(fs: SimulatedFileSystem, method: str, args: tuple[Any, ...], how: str) -> Any:
    if method == "show":
        return None
    if method == "list_begin":
        return tuple(fs.listdir(args[0]))
    if method == "list_end":
        begun, now = set(args[1]), set(fs.listdir(args[0]))
        return tuple(sorted(begun & now if how == MISS else begun | now))
    answer = getattr(fs, method)(*args)
    if method in ("stat", "fstat"):
        return _without_links(answer)
    return answer


_masked: Final[dict[os.stat_result, os.stat_result]] = {}


def _without_links(status: os.stat_result) -> os.stat_result:
    # The code never asks how many names a file has, and what it does not see need not tell two states apart.
    if status not in _masked:
        fields = list(status)
        fields[3] = 0
        _masked[status] = os.stat_result(fields)
    return _masked[status]


_OWN: Final = frozenset({"fstat", "read", "write", "close"})
_NAMED: Final = frozenset({"open_dir", "stat"})


def is_local(call: Call, fs: SimulatedFileSystem, *, directories_stay: bool) -> bool:
    """Whether a call commutes with every call of every other process.

    It does where it is about an open file: its number, kind and bytes are nobody else's to change once it
    can be opened by others, and what its owner writes before that nobody opens. Where no process moves or
    removes directories it also does where it looks for one that is there.
    """
    method, args = call
    if method in _OWN:
        return True
    return directories_stay and method in _NAMED and fs.is_directory(*args)


def is_silent(call: Call, fs: SimulatedFileSystem, *, directories_stay: bool) -> bool:
    """Whether a call is local and leaves nothing behind: a crash just before it is one just after it."""
    return call[0] != "write" and is_local(call, fs, directories_stay=directories_stay)


def variants(call: Call, *, fs: SimulatedFileSystem, faults: bool) -> Iterator[str]:
    """How a call may go."""
    yield RUN
    if call[0] == "list_end" and set(call[1][1]) != set(fs.listdir(call[1][0])):
        yield MISS
    if faults and call[0] != "show":
        yield FAIL
        if call[0] in _EFFECTIVE - {"close"}:
            yield FAIL_AFTER


def describe(call: Call, names: Callable[[int], str]) -> str:
    """A call in words: the method, and the names that it is about.

    Args:
        call: method and arguments.
        names: by which name a descriptor was opened.
    """
    method, args = call
    if method in ("link", "rename"):
        return f"{method} {args[0]} -> {args[2]}"
    if method == "show":
        return f"show {args[0]}"
    about = names(args[0]) if isinstance(args[0], int) else args[0]
    return f"{method} {about}"

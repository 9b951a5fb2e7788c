"""The real code as a transition system: which call it makes next is a function of the answers so far.

Nothing else can influence it. So each operation is a tree: at a node the call that the code makes there,
below it a branch for each answer that was ever given. A search walks the trees of several processes over
one disk, in any order that it likes, and runs code only where an answer is new: once, from the start of
the operation through the known answers to the new one, and on to its end. No threads, and no schedule is
run twice.

The code is the one under test, unchanged. Two of its surroundings are held still while it runs: `uuid4`
gives names that say whose they are, and waits are of one length.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pi_team.record.filesystem import FileSystem
    from simulation import SimulatedFileSystem

Call: TypeAlias = "tuple[str, tuple[Any, ...]]"
_LONGEST: Final = 5_000
"""Calls of one operation, after which it is taken to run in circles."""


class Failure(NamedTuple):
    """The answer of a call that the system refused."""

    code: int

    def __str__(self) -> str:
        return errno.errorcode.get(self.code, str(self.code))


class Outcome(NamedTuple):
    """How an operation ended.

    Attributes:
        kind: "acknowledged", "refused", "unknown" (a caller is told so), "again" (a conflict: the operation
            starts anew), "broken" (an error that no caller expects).
        item: what it wrote, or "".
        detail: its answer, or the error in words.
    """

    kind: str
    item: str
    detail: Any = None


class NotDeterministicError(AssertionError):
    """The code made another call than before after the same answers."""


class Node:
    """Where the code stands after some answers.

    Attributes:
        call: what it does next; None at its end.
        children: by answer.
        outcome: at its end.
        number: one of its own.
    """

    __slots__ = ("answer", "call", "children", "number", "outcome", "parent")
    made = 0

    def __init__(self, parent: Node | None, answer: Any) -> None:
        self.parent = parent
        self.answer = answer
        self.call: Call | None = None
        self.children: dict[Any, Node] = {}
        self.outcome: Outcome | None = None
        Node.made += 1
        self.number = Node.made

    def answers(self) -> list[Any]:
        """What it took to get here, newest first."""
        node, given = self, []
        while node.parent is not None:
            given.append(node.answer)
            node = node.parent
        return given


class Behaviour:
    """The tree of one operation of one process.

    Args:
        run: the operation over a port; deterministic but for what the port answers.
        label: begins the identities that it draws.
    """

    def __init__(self, run: Callable[[Recorder], Outcome], label: str) -> None:
        self._run = run
        self._label = label
        self.runs = 0
        self.root = Node(None, None)

    def begin(self, fs: SimulatedFileSystem) -> Node:
        """The first node, learned on a disk where it is not known yet."""
        if self.root.call is None:
            self._learn([], fs)
        return self.root

    def after(self, node: Node, answer: Any, fs: SimulatedFileSystem) -> Node:
        """The node after a further answer; where it is new the code goes on over `fs`, which is used up."""
        found = node.children.get(answer)
        if found is None:
            self._learn([answer, *node.answers()], fs)
            found = node.children[answer]
        return found

    def alone(self, fs: SimulatedFileSystem) -> Outcome:
        """How the operation ends where nobody else does anything."""
        node = self.root
        while node.outcome is None:
            if node.call is None:
                return self._learn([], fs)
            answer = perform(fs, node.call)
            if answer not in node.children:
                return self._learn([answer, *node.answers()], fs)
            node = node.children[answer]
        return node.outcome

    def _learn(self, answers: list[Any], fs: SimulatedFileSystem) -> Outcome:
        self.runs += 1
        recorder = Recorder(self.root, answers, fs)
        _identities.begin(self._label)
        outcome = self._run(recorder)
        recorder.node.outcome = outcome
        return outcome


class Recorder:
    """The port under the code: gives the known answers, then those of a disk, and notes each in the tree.

    A listing is two calls, its begin and its end: what comes or goes in between may be in it or not.
    """

    def __init__(self, root: Node, answers: list[Any], fs: SimulatedFileSystem) -> None:
        self.node = root
        self._answers = answers
        self._fs = fs
        self._calls = 0

    def _call(self, method: str, *args: Any) -> Any:
        node, call = self.node, (method, args)
        self._calls += 1
        if self._calls > _LONGEST:
            raise AssertionError("the operation runs in circles")
        if node.call is None:
            node.call = call
        elif node.call != call:
            raise NotDeterministicError(f"{call} and not {node.call} as before")
        answer = self._answers.pop() if self._answers else perform(self._fs, call)
        child = node.children.get(answer)
        if child is None:
            child = node.children[answer] = Node(node, answer)
        self.node = child
        if isinstance(answer, Failure):
            raise OSError(answer.code, os.strerror(answer.code))
        return answer

    def tell(self, event: Any) -> None:
        """Say what the user sees now; a step like a call."""
        self._call("show", event)

    def open_dir(self, name: str, dir_fd: int | None = None) -> int:
        fd: int = self._call("open_dir", name, dir_fd)
        return fd

    def open_read(self, name: str, dir_fd: int | None = None) -> int:
        fd: int = self._call("open_read", name, dir_fd)
        return fd

    def create(self, name: str, dir_fd: int | None = None) -> int:
        fd: int = self._call("create", name, dir_fd)
        return fd

    def mkdir(self, name: str, dir_fd: int | None = None) -> None:
        self._call("mkdir", name, dir_fd)

    def fstat(self, fd: int) -> os.stat_result:
        status: os.stat_result = self._call("fstat", fd)
        return status

    def stat(self, name: str, dir_fd: int | None = None) -> os.stat_result:
        status: os.stat_result = self._call("stat", name, dir_fd)
        return status

    def read(self, fd: int, size: int) -> bytes:
        data: bytes = self._call("read", fd, size)
        return data

    def write(self, fd: int, data: bytes | memoryview) -> int:
        taken: int = self._call("write", fd, bytes(data))
        return taken

    def fsync(self, fd: int) -> None:
        self._call("fsync", fd)

    def close(self, fd: int) -> None:
        self._call("close", fd)

    def link(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        self._call("link", source, source_dir_fd, target, target_dir_fd)

    def rename(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        self._call("rename", source, source_dir_fd, target, target_dir_fd)

    def unlink(self, name: str, dir_fd: int | None = None) -> None:
        self._call("unlink", name, dir_fd)

    def rmdir(self, name: str, dir_fd: int | None = None) -> None:
        self._call("rmdir", name, dir_fd)

    def listdir(self, fd: int) -> list[str]:
        begun = self._call("list_begin", fd)
        return list(self._call("list_end", fd, begun))

    def touch(self, name: str, dir_fd: int | None = None) -> None:
        self._call("touch", name, dir_fd)


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


class _Identities:
    """Stands in for `uuid4`: the same ones in each run of an operation."""

    def __init__(self) -> None:
        self._label = ""
        self._drawn = 0

    def begin(self, label: str) -> None:
        self._label, self._drawn = label, 0

    def draw(self) -> str:
        self._drawn += 1
        return self._label if self._drawn == 1 else f"{self._label}-{self._drawn}"


_identities: Final = _Identities()


@contextlib.contextmanager
def still(label: str = "planted") -> Iterator[None]:
    """While the code under test is run: identities are drawn in order, and waits are of one length."""
    _identities.begin(label)
    with mock.patch.object(uuid, "uuid4", _identities.draw), mock.patch.object(random, "uniform", max):
        yield


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


if TYPE_CHECKING:
    _port: FileSystem = Recorder.__new__(Recorder)

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
import os
import random
import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from unittest import mock

from calls import Failure, perform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from calls import Call
    from pi_team.record.filesystem import FileSystem
    from simulation import SimulatedFileSystem

_calls: Final[dict[Call, Call]] = {}
"""Each call once, however many nodes make it."""
_LONGEST: Final = 5_000
"""Calls of one operation, after which it is taken to run in circles."""


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
        outcome: at its end.
        number: one of its own.
    """

    __slots__ = ("_below", "answer", "call", "number", "outcome", "parent")
    made = 0

    def __init__(self, parent: Node | None, answer: Any) -> None:
        self.parent = parent
        self.answer = answer
        self.call: Call | None = None
        self._below: Node | dict[Any, Node] | None = None  # most have one child, and there are millions
        self.outcome: Outcome | None = None
        Node.made += 1
        self.number = Node.made

    def child(self, answer: Any) -> Node | None:
        """Where the code stands after one more answer, if that was ever given."""
        below = self._below
        if isinstance(below, dict):
            return below.get(answer)
        return below if below is not None and below.answer == answer else None

    def grow(self, answer: Any) -> Node:
        """The child after an answer that was never given before."""
        child, below = Node(self, answer), self._below
        if below is None:
            self._below = child
        elif isinstance(below, dict):
            below[answer] = child
        else:
            self._below = {below.answer: below, answer: child}
        return child

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
        found = node.child(answer)
        if found is None:
            self._learn([answer, *node.answers()], fs)
            found = node.child(answer)
            assert found is not None
        return found

    def alone(self, fs: SimulatedFileSystem) -> Outcome:
        """How the operation ends where nobody else does anything."""
        node = self.root
        while node.outcome is None:
            if node.call is None:
                return self._learn([], fs)
            answer = perform(fs, node.call)
            after = node.child(answer)
            if after is None:
                return self._learn([answer, *node.answers()], fs)
            node = after
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
            node.call = _calls.setdefault(call, call)
        elif node.call != call:
            raise NotDeterministicError(f"{call} and not {node.call} as before")
        answer = self._answers.pop() if self._answers else perform(self._fs, call)
        self.node = node.child(answer) or node.grow(answer)
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


if TYPE_CHECKING:
    _port: FileSystem = Recorder.__new__(Recorder)

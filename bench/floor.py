"""The floor: a tight loop of the system calls that a send makes, on the same bytes, and of nothing else.

They are recorded from real sends (a `FileSystem` of our own under a mailbox) and become the source of a
Python function without a branch or a loop, one line a call, in which only the names of slots and private
files are arguments, since they are new in each send. `bench/run.py --show-floor` prints one.

Not in it: getpid, geteuid, getrandom, flock and clocks, which take no time that could be measured here.
"""

from __future__ import annotations

import functools
import re
import time
import uuid
from typing import TYPE_CHECKING, Any, Final

import attrs

from bench.team import BenchMailbox, settled, team_of, text
from pi_team.record.filesystem import OsFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pi_team.domain.model import Membership, Message


# --- the calls of the port ------------------------------------------------------------------------

_SHORT: Final = 100
"""Bytes up to which what is written stands in the source as it is."""


def _failing(line: str) -> str:
    """A call that the system refuses, as it did when it was recorded."""
    return f"with ignored: {line}"


class _Ignored:
    """A context that a refused call may leave."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, OSError)


_ONE_NAME: Final = ("open_dir", "open_read", "create", "mkdir", "stat", "unlink", "rmdir", "touch")
_ONE_DESCRIPTOR: Final = ("fstat", "read", "write", "fsync", "close", "listdir")
_TWO_NAMES: Final = ("link", "rename")
_NAMES: Final = dict.fromkeys(_ONE_NAME, (0,)) | dict.fromkeys(_TWO_NAMES, (0, 2))
"""Which arguments of a call are names."""
_DESCRIPTORS: Final = (
    dict.fromkeys(_ONE_NAME, (1,)) | dict.fromkeys(_ONE_DESCRIPTOR, (0,)) | dict.fromkeys(_TWO_NAMES, (1, 3))
)
"""Which are descriptors."""
_OPENING: Final = frozenset({"open_dir", "open_read", "create"})
_SLOT: Final = re.compile(r"([1-9][0-9]*)\.json")
_PRIVATE: Final = re.compile(r"\.([0-9a-f-]{36})(\..+\.tmp)")


@attrs.frozen
class Call:
    """One recorded call: the port's method, its arguments, and what it gave or raised."""

    method: str
    arguments: tuple[Any, ...]
    result: object
    failed: bool


class RecordingFileSystem(OsFileSystem):
    """The operating system's port, which notes each call."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def __getattribute__(self, name: str) -> Any:
        attribute = super().__getattribute__(name)
        if name not in _DESCRIPTORS:
            return attribute

        def note(*arguments: Any) -> object:
            kept = tuple(bytes(item) if isinstance(item, memoryview) else item for item in arguments)
            try:
                result = attribute(*arguments)
            except OSError:
                self.calls.append(Call(name, kept, None, failed=True))
                raise
            self.calls.append(Call(name, kept, result, failed=False))
            return result

        return note


class _Names:
    """The names that a replay needs: what stands for a slot or a private file moves on with each replay."""

    def __init__(self) -> None:
        self._slots: list[int | None] = []
        self._privates: list[tuple[str, str] | None] = []

    def expression(self, name: str) -> str:
        """The source text for a name: a literal, or an item of the list `names`."""
        slot, private = _SLOT.fullmatch(name), _PRIVATE.fullmatch(name)
        if slot is None and private is None:
            return repr(name)
        self._slots.append(int(slot[1]) if slot else None)
        self._privates.append((private[1], private[2]) if private else None)
        return f"names[{len(self._slots) - 1}]"

    def after(self, revisions: int) -> list[str]:
        """The names for a replay that begins `revisions` revisions after the recording did."""
        fresh: dict[str, str] = {}
        names: list[str] = []
        for slot, private in zip(self._slots, self._privates, strict=True):
            if slot is not None:
                names.append(f"{slot + revisions}.json")
            elif private is not None:
                identifier = fresh.setdefault(private[0], str(uuid.uuid4()))
                names.append(f".{identifier}{private[1]}")
        return names


class Replay:
    """The calls of one publication as a function.

    Args:
        calls: what was recorded.
    """

    def __init__(self, calls: list[Call]) -> None:
        self._names = _Names()
        self._data: dict[str, bytes] = {}
        lines = self._port_lines(calls)
        self.calls = calls
        self.source = "def replay(names):\n" + "".join(f"    {line}\n" for line in lines)
        fs = OsFileSystem()
        scope: dict[str, Any] = {name: getattr(fs, name) for name in _DESCRIPTORS}
        scope |= {"ignored": _Ignored(), **self._data}
        exec(compile(self.source, "<floor>", "exec"), scope)  # our own source, made above
        self.run: Callable[[list[str]], None] = scope["replay"]

    def names(self, revisions: int) -> list[str]:
        """See :meth:`_Names.after`."""
        return self._names.after(revisions)

    def _port_lines(self, calls: list[Call]) -> Iterator[str]:
        variables: dict[object, str] = {}
        for index, call in enumerate(calls):
            arguments = []
            for position, argument in enumerate(call.arguments):
                if position in _DESCRIPTORS[call.method] and argument is not None:
                    arguments.append(variables[argument])
                elif position in _NAMES.get(call.method, ()):
                    arguments.append(self._names.expression(argument))
                elif isinstance(argument, bytes) and len(argument) > _SHORT:
                    name = f"record_of_{len(argument)}_bytes"
                    self._data[name] = argument
                    arguments.append(name)
                else:
                    arguments.append(repr(argument))
            line = f"{call.method}({', '.join(arguments)})"
            if call.failed:
                yield _failing(line)
            elif call.method in _OPENING:
                variables[call.result] = f"fd{index}"
                yield f"fd{index} = {line}"
            else:
                yield line


# --- the loop -------------------------------------------------------------------------------------


class Floor:
    """Replays the sends of a team of its own. Each send is followed by what sets the record back to its size.

    Args:
        path: a directory for the team.
        messages: how many are in the record when a send begins.
        period: sends to record. With 33 every kind of send is among them as often as in the long run:
            each has two revisions, its own and the one that sets the record back, and every 33rd revision
            prunes the history.
        history: revisions to publish before, so that the history is as long as it gets.
    """

    def __init__(self, path: str, messages: int, period: int, history: int) -> None:
        self._recorder = RecordingFileSystem()
        with_team = BenchMailbox(path, filesystem=self._recorder)
        sender, _ = team_of(with_team, messages)
        planted = settled(messages, "ann", "ben")
        for _ in range(history):
            with_team.plant(planted)
        self._sends: list[Replay] = []
        self._resets: list[Replay] = []
        for number in range(period):
            self._sends.append(self._recorded(functools.partial(_send, with_team, sender, number)))
            self._resets.append(self._recorded(functools.partial(with_team.plant, planted)))
        with_team.close()
        self._next = 0
        self._replayed = 0

    def _recorded(self, publication: Callable[[], object]) -> Replay:
        self._recorder.calls.clear()
        publication()
        return Replay(list(self._recorder.calls))

    @property
    def example(self) -> Replay:
        """A send that prunes nothing."""
        return min(self._sends, key=lambda send: len(send.calls))

    def once(self) -> float:
        """Seconds that the calls of the next send take; then the record is set back."""
        if self._next == 0:
            self._replayed += 2 * len(self._sends)
        send, reset = self._sends[self._next], self._resets[self._next]
        self._next = (self._next + 1) % len(self._sends)
        names, after = send.names(self._replayed), reset.names(self._replayed)
        start = time.perf_counter()
        send.run(names)
        taken = time.perf_counter() - start
        reset.run(after)
        return taken


def _send(mailbox: BenchMailbox, sender: Membership, number: int) -> Message:
    return mailbox.send(sender, "ben", kind="note", subject=f"message {number}", body=text(number))

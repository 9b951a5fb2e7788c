"""Records what a process does at the system-call port, at the grain of the specification.

A line of JSON for each call on the record, a slot or a private file, with its result and with when it began
and ended by the monotonic clock that all processes share, appended to a file of the process's own. A process
that kills or stops itself does so between two calls, each with its line.
"""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pi_team.record.filesystem import OsFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Moment: TypeAlias = "tuple[str, str, int]"
"""("before", "take" a slot or "install", the how manieth attempt), ("after", the same, the how manieth to
succeed), or ("after", "look" whether the record is still the one that was read, the how manieth)."""

_SLOT: Final = re.compile(r"([1-9]\d*)\.json")
_PRIVATE: Final = re.compile(r"\.([0-9a-f-]{36})\..*\.tmp")
_PAUSE: Final = 0.002
_MOST: Final = 1 << 20


class RecordingFileSystem(OsFileSystem):
    """The operating system, recorded; it dawdles before each recorded call so that processes interleave.

    Args:
        path: the trace.
        seed: of the pauses.
        plan: what happens at which moments: the process dies or stops, or an OSError, which is then the
            result of the call, which is not made.
    """

    def __init__(self, path: str, *, seed: int, plan: Mapping[Moment, Callable[[], None]]) -> None:
        self._trace = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._random = random.Random(seed)  # noqa: S311 - pauses, not secrets
        self._plan = plan
        self._moments: Counter[tuple[str, str]] = Counter()
        self._directories: dict[int, str] = {}
        self._began = 0

    def ask(self, operation: str) -> None:
        """Record which operation begins; "" is one that changes nothing."""
        self._write("asked", "", operation=operation)

    def tell(self, outcome: str, operation: str) -> None:
        """Record what the caller of an operation was told: "acknowledged", "refused" or "unknown"."""
        self._begin()
        self._write("told", "", outcome=outcome, operation=operation)

    def open_dir(self, name: str, dir_fd: int | None = None) -> int:
        """Open a directory and remember which it is."""
        fd = super().open_dir(name, dir_fd)
        self._directories[fd] = os.path.basename(name)
        return fd

    def open_read(self, name: str, dir_fd: int | None = None) -> int:
        """Open a file; of the record and the slots, with what they hold."""
        kind = self._kind(name)
        if kind not in {"record", "slot"}:
            return self._plain(super().open_read(name, dir_fd))
        self._begin()
        try:
            fd = self._plain(super().open_read(name, dir_fd))
        except FileNotFoundError:
            self._write("open", name, found=None)
            raise
        self._write("open", name, found=_identity(fd))
        return fd

    def create(self, name: str, dir_fd: int | None = None) -> int:
        """Create a file: its descriptor names no directory."""
        return self._plain(super().create(name, dir_fd))

    def stat(self, name: str, dir_fd: int | None = None) -> os.stat_result:
        """Status of a name; of the record and private files, with what they hold."""
        kind = self._kind(name)
        if kind not in {"record", "private"}:
            return super().stat(name, dir_fd)
        self._begin()
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=dir_fd)
        except FileNotFoundError:
            self._write("stat", name, found=None)
            raise
        try:  # the status and the identity of one file, whatever the name means a moment later
            self._write("stat", name, found=_identity(fd))
            if kind == "record":
                self._at("after", "look")
            return os.fstat(fd)
        finally:
            os.close(fd)

    def listdir(self, fd: int) -> list[str]:
        """The names in a directory."""
        self._begin()
        names = super().listdir(fd)
        if self._directories.get(fd) == "revisions":
            self._write("list", "revisions")
        return names

    def fsync(self, fd: int) -> None:
        """Sync; recorded for directories."""
        name = self._directories.get(fd)
        self._begin()
        super().fsync(fd)
        if name is not None:
            self._write("fsync", name)

    def link(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        """Link; recorded where the target is a slot."""

        def perform() -> None:
            super(RecordingFileSystem, self).link(source, source_dir_fd, target, target_dir_fd)

        if self._kind(target) == "slot":
            self._change("link", source, perform, target=target, found=_held(source, source_dir_fd))
        else:
            perform()

    def rename(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        """Rename; recorded where the target is the record or, which no rule allows, a slot."""

        def perform() -> None:
            super(RecordingFileSystem, self).rename(source, source_dir_fd, target, target_dir_fd)

        if self._kind(target) in {"record", "slot"}:
            self._change("rename", source, perform, target=target, found=_held(source, source_dir_fd))
        else:
            perform()

    def unlink(self, name: str, dir_fd: int | None = None) -> None:
        """Remove a name; recorded for slots and private files."""

        def perform() -> None:
            super(RecordingFileSystem, self).unlink(name, dir_fd)

        if self._kind(name) in {"slot", "private"}:
            self._change("unlink", name, perform)
        else:
            perform()

    def _change(self, call: str, name: str, perform: Callable[[], None], **more: Any) -> None:
        does = {"slot": "take", "record": "install"}.get(self._kind(more.get("target", "")), "remove")
        try:
            self._at("before", does)
            self._begin()
            perform()
        except OSError as error:
            self._write(call, name, failed=type(error).__name__, **more)
            raise
        self._write(call, name, failed="", **more)
        self._at("after", does)

    def _at(self, when: str, does: str) -> None:
        self._moments[when, does] += 1
        happens = self._plan.get((when, does, self._moments[when, does]))
        if happens:
            happens()

    def _plain(self, fd: int) -> int:
        self._directories.pop(fd, None)
        return fd

    def _begin(self) -> None:
        time.sleep(self._random.random() * _PAUSE)
        self._began = time.monotonic_ns()

    @staticmethod
    def _kind(name: str) -> str:
        if name == "state.json":
            return "record"
        if _SLOT.fullmatch(name):
            return "slot"
        return "private" if _PRIVATE.fullmatch(name) else ""

    def _write(self, call: str, name: str, **more: Any) -> None:
        line = {"call": call, "name": name, "began": self._began, "ended": time.monotonic_ns(), **more}
        os.write(self._trace, (json.dumps(line) + "\n").encode())


def _held(name: str, dir_fd: int) -> dict[str, Any] | None:
    """What a file holds that is about to be linked or renamed; None where it is gone."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=dir_fd)
    except FileNotFoundError:
        return None
    try:
        return _identity(fd)
    finally:
        os.close(fd)


def _identity(fd: int) -> dict[str, Any]:
    """Revision, identity, parent and operations of a record; its payload lists the operations."""
    envelope = json.loads(os.pread(fd, _MOST, 0))
    payload = envelope["payload"]
    return {
        "revision": envelope["revision"],
        "id": envelope.get("publication", {}).get("id", ""),
        "previous": envelope.get("previous", {}).get("publication"),
        "operations": payload if isinstance(payload, list) else [],  # of a new team: none
    }

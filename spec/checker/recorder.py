"""Records what a process does at the system-call port, at the grain of the specification.

A line of JSON for each call on the record, a slot or a private file, with its result, appended to a file
of the process's own: a call whose line is missing is the last one of a process that was killed.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import time
from typing import TYPE_CHECKING, Any, Final

from pi_team.record.filesystem import OsFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable

_SLOT: Final = re.compile(r"([1-9]\d*)\.json")
_PRIVATE: Final = re.compile(r"\.([0-9a-f-]{36})\..*\.tmp")
_PAUSE: Final = 0.002
_MOST: Final = 1 << 20


class RecordingFileSystem(OsFileSystem):
    """The operating system, recorded; it dawdles before each recorded call so that processes interleave.

    Args:
        path: the trace.
        seed: of the pauses.
        die_after: the kind of call after which the process kills itself, and the how manieth to succeed.
    """

    def __init__(self, path: str, *, seed: int, die_after: tuple[str, int] | None = None) -> None:
        self._trace = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._random = random.Random(seed)  # noqa: S311 - pauses, not secrets
        self._die_after = die_after
        self._made: dict[str, int] = {}
        self._directories: dict[int, str] = {}

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
        self._dawdle()
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
        self._dawdle()
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=dir_fd)
        except FileNotFoundError:
            self._write("stat", name, found=None)
            raise
        try:  # the status and the identity of one file, whatever the name means a moment later
            self._write("stat", name, found=_identity(fd))
            return os.fstat(fd)
        finally:
            os.close(fd)

    def listdir(self, fd: int) -> list[str]:
        """The names in a directory."""
        names = super().listdir(fd)
        if self._directories.get(fd) == "revisions":
            self._write("list", "revisions")
        return names

    def fsync(self, fd: int) -> None:
        """Sync; recorded for directories."""
        name = self._directories.get(fd)
        super().fsync(fd)
        if name is not None:
            self._write("fsync", name)

    def link(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        """Link, recorded."""
        self._change(
            "link",
            source,
            lambda: super(RecordingFileSystem, self).link(source, source_dir_fd, target, target_dir_fd),
            target=target,
        )

    def rename(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        """Rename, recorded."""
        self._change(
            "rename",
            source,
            lambda: super(RecordingFileSystem, self).rename(source, source_dir_fd, target, target_dir_fd),
            target=target,
        )

    def unlink(self, name: str, dir_fd: int | None = None) -> None:
        """Remove a name, recorded."""
        self._change("unlink", name, lambda: super(RecordingFileSystem, self).unlink(name, dir_fd))

    def _change(self, call: str, name: str, perform: Callable[[], None], **more: str) -> None:
        if self._kind(name) == "":
            perform()
            return
        self._dawdle()
        try:
            perform()
        except OSError as error:
            self._write(call, name, failed=type(error).__name__, **more)
            raise
        self._write(call, name, failed="", **more)

    def _plain(self, fd: int) -> int:
        self._directories.pop(fd, None)
        return fd

    def _dawdle(self) -> None:
        time.sleep(self._random.random() * _PAUSE)

    @staticmethod
    def _kind(name: str) -> str:
        if name == "state.json":
            return "record"
        if _SLOT.fullmatch(name):
            return "slot"
        return "private" if _PRIVATE.fullmatch(name) else ""

    def _write(self, call: str, name: str, **more: Any) -> None:
        os.write(self._trace, (json.dumps({"call": call, "name": name, **more}) + "\n").encode())
        if more.get("failed"):
            return
        self._made[call] = self._made.get(call, 0) + 1
        if self._die_after == (call, self._made[call]):
            os.kill(os.getpid(), signal.SIGKILL)


def _identity(fd: int) -> dict[str, Any]:
    envelope = json.loads(os.pread(fd, _MOST, 0))
    return {"revision": envelope["revision"], "id": envelope.get("publication", {}).get("id", "")}

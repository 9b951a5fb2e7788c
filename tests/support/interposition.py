"""A file system that records every call, and interrupts, fails or kills at a chosen one.

It stands where `OsFileSystem` does. With a callback at a call, another writer runs whole operations while
the first one is between two system calls: an interleaving of two processes, deterministic and in one.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import itertools
import os
import stat
import threading
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from pi_team.record.filesystem import FileSystem, OsFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

REFUSALS = (errno.ENOSPC, errno.EIO, errno.EMFILE, errno.EROFS, errno.EACCES, errno.EDQUOT)
"""What a system says when it refuses."""
CHANGING = frozenset(
    {"create", "mkdir", "write", "fsync", "close", "link", "rename", "unlink", "rmdir", "touch"}
)
"""The calls that do something; of the others it does not matter whether they were performed."""


class Killed(BaseException):
    """The process died at this call; every later call of it raises this too."""


@attrs.frozen(slots=True)
class Call:
    """One system call: `name` is the file's, `source -> target` for two, the opened name for a descriptor."""

    method: str
    name: str
    error: str

    def __str__(self) -> str:
        return f"{self.method} {self.name}" + (f": {self.error}" if self.error else "")


@attrs.define(slots=True)
class Point:
    """Where something happens: the n-th call that fits, counted from here on."""

    method: str
    name: str
    left: int
    index: int | None
    action: Callable[[Callable[[], Any]], Any] | None = None
    every: bool = False
    reached: int = 0

    def fits(self, method: str, name: str, index: int) -> bool:
        """Whether this call is the one."""
        if self.action is None or (self.reached and not self.every):
            return False
        if self.index is not None:
            return index == self.index
        if not (fnmatch.fnmatchcase(method, self.method) and fnmatch.fnmatchcase(name, self.name)):
            return False
        self.left -= 1
        return self.left == 0 or (self.every and self.left < 0)

    def before(self, callback: Callable[[], object]) -> Point:
        """Run `callback`, then the call."""

        def action(perform: Callable[[], Any]) -> Any:
            callback()
            return perform()

        return self._do(action)

    def after(self, callback: Callable[[], object]) -> Point:
        """Run the call, then `callback`."""

        def action(perform: Callable[[], Any]) -> Any:
            result = perform()
            callback()
            return result

        return self._do(action)

    def fail(self, code: int) -> Point:
        """Raise an OSError instead of the call."""

        def action(_: Callable[[], Any]) -> Any:
            raise OSError(code, os.strerror(code))

        return self._do(action)

    def fail_after(self, code: int) -> Point:
        """Raise an OSError although the call took effect."""

        def action(perform: Callable[[], Any]) -> Any:
            with contextlib.suppress(OSError):
                perform()
            raise OSError(code, os.strerror(code))

        return self._do(action)

    def kill(self) -> Point:
        """Die just before the call."""

        def action(_: Callable[[], Any]) -> Any:
            raise Killed

        return self._do(action)

    def kill_after(self) -> Point:
        """Die just after the call."""

        def action(perform: Callable[[], Any]) -> Any:
            with contextlib.suppress(OSError):
                perform()
            raise Killed

        return self._do(action)

    def always(self) -> Point:
        """Do it at every later call that fits as well."""
        self.every = True
        return self

    def _do(self, action: Callable[[Callable[[], Any]], Any]) -> Point:
        self.action = action
        return self


class UnsyncedFileSystem(OsFileSystem):
    """The operating system without the cost of syncing, which no test without a power cut can tell apart."""

    def fsync(self, fd: int) -> None:
        os.fstat(fd)


class InterposedFileSystem:
    """The port over another one, one without syncs where none is given. See the module.

    Attributes:
        calls: what was called so far.
        open_names: the descriptors that are open, and the name that each was opened by.
        longest_write: bytes that one write takes at most.
    """

    def __init__(self, inner: FileSystem | None = None) -> None:
        self.inner: FileSystem = inner or UnsyncedFileSystem()
        self.calls: list[Call] = []
        self.open_names: dict[int, str] = {}
        self.longest_write: int | None = None
        self.dead = False
        self._points: list[Point] = []

    def at(self, method: str = "*", name: str = "*", nth: int = 1) -> Point:
        """The n-th call from now on whose method and name fit these patterns."""
        point = Point(method, name, nth, None)
        self._points.append(point)
        return point

    def at_call(self, index: int) -> Point:
        """The call with that index in `calls`."""
        point = Point("", "", 0, index)
        self._points.append(point)
        return point

    def forget(self) -> bool:
        """Let nothing happen at any call any more; whether something has happened."""
        reached = any(point.reached for point in self._points)
        self._points.clear()
        self.calls.clear()
        return reached

    def names(self, method: str = "*", name: str = "*") -> list[str]:
        """The calls so far that fit, as text without the error."""
        return [
            f"{call.method} {call.name}"
            for call in self.calls
            if fnmatch.fnmatchcase(call.method, method) and fnmatch.fnmatchcase(call.name, name)
        ]

    def _call(self, method: str, name: str, perform: Callable[[], T]) -> T:
        if self.dead:
            raise Killed
        index = len(self.calls)
        self.calls.append(Call(method, name, ""))
        point = next((point for point in self._points if point.fits(method, name, index)), None)
        try:
            if point is None or point.action is None:
                return perform()
            point.reached += 1
            result: T = point.action(perform)
        except OSError as error:
            self.calls[index] = Call(method, name, errno.errorcode.get(error.errno or 0, "?"))
            raise
        except Killed:
            self.dead = True
            raise
        return result

    def _open(self, method: str, name: str, perform: Callable[[], int]) -> int:
        opened: list[int] = []

        def tracked() -> int:
            opened.append(perform())
            return opened[0]

        try:
            fd = self._call(method, name, tracked)
        except BaseException:
            for fd in opened:
                self.inner.close(fd)  # a call that failed gave nobody a descriptor
            raise
        self.open_names[fd] = name
        return fd

    def _name(self, fd: int) -> str:
        return self.open_names.get(fd, "?")

    def open_dir(self, name: str, dir_fd: int | None = None) -> int:
        return self._open("open_dir", name, lambda: self.inner.open_dir(name, dir_fd))

    def open_read(self, name: str, dir_fd: int | None = None) -> int:
        return self._open("open_read", name, lambda: self.inner.open_read(name, dir_fd))

    def create(self, name: str, dir_fd: int | None = None) -> int:
        return self._open("create", name, lambda: self.inner.create(name, dir_fd))

    def mkdir(self, name: str, dir_fd: int | None = None) -> None:
        self._call("mkdir", name, lambda: self.inner.mkdir(name, dir_fd))

    def fstat(self, fd: int) -> os.stat_result:
        return self._call("fstat", self._name(fd), lambda: self.inner.fstat(fd))

    def stat(self, name: str, dir_fd: int | None = None) -> os.stat_result:
        return self._call("stat", name, lambda: self.inner.stat(name, dir_fd))

    def read(self, fd: int, size: int) -> bytes:
        return self._call("read", self._name(fd), lambda: self.inner.read(fd, size))

    def write(self, fd: int, data: bytes | memoryview) -> int:
        part = data if self.longest_write is None else data[: self.longest_write]
        return self._call("write", self._name(fd), lambda: self.inner.write(fd, part))

    def fsync(self, fd: int) -> None:
        self._call("fsync", self._name(fd), lambda: self.inner.fsync(fd))

    def close(self, fd: int) -> None:
        # A descriptor is gone after close(2) whatever the call says; also when its process dies.
        name = self.open_names.pop(fd, "?")
        self.inner.close(fd)
        if not self.dead:
            self._call("close", name, lambda: None)

    def link(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        self._call(
            "link",
            f"{source} -> {target}",
            lambda: self.inner.link(source, source_dir_fd, target, target_dir_fd),
        )

    def rename(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        self._call(
            "rename",
            f"{source} -> {target}",
            lambda: self.inner.rename(source, source_dir_fd, target, target_dir_fd),
        )

    def unlink(self, name: str, dir_fd: int | None = None) -> None:
        self._call("unlink", name, lambda: self.inner.unlink(name, dir_fd))

    def rmdir(self, name: str, dir_fd: int | None = None) -> None:
        self._call("rmdir", name, lambda: self.inner.rmdir(name, dir_fd))

    def listdir(self, fd: int) -> list[str]:
        return self._call("listdir", self._name(fd), lambda: self.inner.listdir(fd))

    def touch(self, name: str, dir_fd: int | None = None) -> None:
        self._call("touch", name, lambda: self.inner.touch(name, dir_fd))


class ReusingFileSystem(OsFileSystem):
    """An operating system that gives a freed inode number to the next new file, as ext4 may and tmpfs won't.

    Numbers are handed out smallest first, odd ones to directories, so that one is reused as soon as it may
    be: when its file has neither a name nor an open descriptor. That is the kernel's own rule: a descriptor
    pins the number.
    """

    def __init__(self) -> None:
        self._pins: dict[tuple[int, int], int] = {}
        self._numbers: dict[tuple[int, int], int] = {}
        self._open: dict[int, tuple[int, int]] = {}

    def close_pins(self) -> None:
        """Let go of everything."""
        for fd in self._pins.values():
            os.close(fd)
        self._pins.clear()

    def _numbered(self, real: os.stat_result, pin: Callable[[], int]) -> os.stat_result:
        key = (real.st_dev, real.st_ino)
        if key not in self._numbers:
            self._pins[key] = pin()  # the real number is never reused, so that it can be the key
            for old in [old for old in self._numbers if old != key and self._is_freed(old)]:
                del self._numbers[old]
            taken = set(self._numbers.values())
            first = 1 if stat.S_ISDIR(real.st_mode) else 2
            self._numbers[key] = next(number for number in itertools.count(first, 2) if number not in taken)
        fields = list(real)
        fields[1] = self._numbers[key]
        return os.stat_result(fields, {"st_mtime_ns": real.st_mtime_ns, "st_mtime": real.st_mtime})

    def _is_freed(self, key: tuple[int, int]) -> bool:
        return os.fstat(self._pins[key]).st_nlink == 0 and key not in self._open.values()

    def _opened(self, fd: int) -> int:
        status = os.fstat(fd)
        self._open[fd] = (status.st_dev, status.st_ino)
        self._numbered(status, lambda: os.dup(fd))
        return fd

    def open_dir(self, name: str, dir_fd: int | None = None) -> int:
        return self._opened(super().open_dir(name, dir_fd))

    def open_read(self, name: str, dir_fd: int | None = None) -> int:
        return self._opened(super().open_read(name, dir_fd))

    def create(self, name: str, dir_fd: int | None = None) -> int:
        return self._opened(super().create(name, dir_fd))

    def close(self, fd: int) -> None:
        self._open.pop(fd, None)
        super().close(fd)

    def fstat(self, fd: int) -> os.stat_result:
        return self._numbered(super().fstat(fd), lambda: os.dup(fd))

    def stat(self, name: str, dir_fd: int | None = None) -> os.stat_result:
        return self._numbered(
            super().stat(name, dir_fd), lambda: os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=dir_fd)
        )


class Sleeper:
    """A writer in a thread of its own that sleeps at a point until it is woken; only one of the two runs.

    Args:
        run: what the writer does.
        point: where it falls asleep, just before the call.
    """

    def __init__(self, run: Callable[[], Any], point: Point) -> None:
        self._asleep = threading.Event()
        self._woken = threading.Event()
        self._run = run
        self._result: Any = None
        self._error: BaseException | None = None
        point.before(self._sleep)
        self._thread = threading.Thread(target=self._body, daemon=True)
        self._thread.start()
        assert self._asleep.wait(30), "the writer reached neither the point nor its end"
        assert point.reached, f"the writer ended before the point: {self._error!r}"

    def _sleep(self) -> None:
        self._asleep.set()
        assert self._woken.wait(30), "nobody woke the writer"

    def _body(self) -> None:
        try:
            self._result = self._run()
        except BaseException as error:  # noqa: BLE001 - raised again by whoever wakes it
            self._error = error
        finally:
            self._asleep.set()

    def wake(self) -> Any:
        """Let it go on to its end; its result, or its error raised."""
        self._woken.set()
        self._thread.join(30)
        assert not self._thread.is_alive()
        if self._error is not None:
            raise self._error
        return self._result

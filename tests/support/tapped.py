"""The port with a tap on it, made from the port itself: every call can be told, killed, stopped or failed.

A call that is added to the port is tapped without being listed here. What libraries do beside the port (the
stable lock's) is tapped by the interpreter's audit events, which they cannot go around.
"""

from __future__ import annotations

import contextlib
import errno
import inspect
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

import attrs

from pi_team.record.filesystem import FileSystem
from steps import Steps

if TYPE_CHECKING:
    from collections.abc import Callable

How: TypeAlias = Literal["nothing", "kill", "stop", "fail", "short", "short then full", "nothing taken"]
WRITES: Final[tuple[How, ...]] = ("short", "short then full", "nothing taken")
"""What a write that does not take all does: it takes half; half, and then the disk is full; nothing."""
_SIGNALS: Final = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
_EVENTS: Final = ("open", "os.", "fcntl.flock")
_LOOKED_UP: Final = ("os.kill", "os.putenv", "os.unsetenv", "os.fork")
"""Events of which nothing is on the disk."""


@attrs.frozen(slots=True)
class Point:
    """A system call of an operation.

    Attributes:
        source: `port`, or `library` for one that goes around the port.
        method: the port's method, or the audit event.
        name: the file's; `source -> target` for two, the opened name for a descriptor.
        step: of the protocol, see :mod:`steps`.
        error: the errno's name where the call failed.
    """

    source: str
    method: str
    name: str
    step: str
    error: str = ""

    def __str__(self) -> str:
        return f"{self.method} {self.name}" + (f": {self.error}" if self.error else "")


@attrs.frozen(slots=True)
class Plan:
    """What happens at the n-th point (from 1 on; 0: nothing anywhere), before or after its call.

    Attributes:
        how: what.
        nth: where.
        when: before the call, or when it has taken effect.
        code: the errno of a failure.
    """

    how: How = "nothing"
    nth: int = 0
    when: Literal["before", "after"] = "before"
    code: int = errno.EIO


def port_methods(port: type) -> dict[str, inspect.Signature]:
    """The system calls of a port, by introspection."""
    return {
        name: inspect.signature(member)
        for name, member in vars(port).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }


class Tap:
    """Counts the calls while it is open, and does at one of them what the plan says.

    Args:
        plan: what, and where.
        steps: told of each call, see :class:`Steps`.

    Attributes:
        points: the calls so far.
        resynced: the files that were synced again by the descriptor of a sync that had failed.
    """

    def __init__(self, plan: Plan | None = None, steps: Steps | None = None) -> None:
        self.plan = plan or Plan()
        self.steps = steps or Steps()
        self.points: list[Point] = []
        self.resynced: list[str] = []
        self.is_open = False
        self._inside = False
        self._full = False
        self._unsynced: set[int] = set()

    def port(self, inner: FileSystem, port: type = FileSystem) -> FileSystem:
        """A port whose calls go through this tap."""
        return cast("FileSystem", _Tapped(inner, self, port))

    def listen(self) -> None:
        """Tap also what goes around the port; for the rest of this process's life."""
        main = threading.get_ident()

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if not self.is_open or self._inside or not event.startswith(_EVENTS) or event in _LOOKED_UP:
                return
            text = str(arguments[0]) if arguments else ""
            if threading.get_ident() == main and not text.startswith("/proc"):
                self._event(event, text)

        sys.addaudithook(hook)

    def _event(self, event: str, name: str) -> None:
        self._inside = True
        try:
            self._come("library", event, name)
            if len(self.points) == self.plan.nth:  # nothing tells when its call is over
                self._act()
        finally:
            self._inside = False

    def call(self, method: str, name: str, fd: int | None, perform: Callable[[], Any]) -> Any:
        """One call of the port. Raises what it raises, or what the plan says."""
        if not self.is_open:
            return perform()
        self._inside = True
        try:
            self._come("port", method, name)
            if method == "fsync" and fd in self._unsynced:
                self.resynced.append(name)
            result = self._perform(method, perform)
        except OSError as error:
            self.points[-1] = attrs.evolve(self.points[-1], error=errno.errorcode.get(error.errno or 0, "?"))
            if method == "fsync" and fd is not None:
                self._unsynced.add(fd)
            self._die_after()
            raise
        finally:
            self._inside = False
            if method == "close" and fd is not None:
                self._unsynced.discard(fd)
        self.steps.done(method, name)
        self._die_after()
        return result

    def _die_after(self) -> None:
        if self._is_here("after") and self.plan.how in _SIGNALS:
            self._act()

    def _perform(self, method: str, perform: Callable[[], Any]) -> Any:
        if self._is_here("before"):
            if self.plan.how == "fail" and method == "close":
                perform()  # a descriptor is gone after close(2) whatever the call says
            self._act()
        elif self._is_here("after") and self.plan.how == "fail":
            with contextlib.suppress(OSError):
                perform()
            self._act()
        self.steps.begins(method, self.points[-1].name)
        return perform()

    def shortened(self, data: bytes | memoryview) -> bytes | memoryview:
        """What a write takes of its data at most; see :data:`WRITES`. Raises OSError."""
        if self._full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if not self.is_open or not self._is_here("before") or self.plan.how not in WRITES:
            return data
        self._full = self.plan.how == "short then full"
        return data[: 0 if self.plan.how == "nothing taken" else (len(data) + 1) // 2]

    def _come(self, source: str, method: str, name: str) -> None:
        self.points.append(Point(source, method, name, self.steps.come(method, name)))

    def _is_here(self, when: str) -> bool:
        return len(self.points) == self.plan.nth and self.plan.when == when

    def _act(self) -> None:
        if self.plan.how in _SIGNALS:
            os.kill(os.getpid(), _SIGNALS[self.plan.how])
        elif self.plan.how == "fail":
            raise OSError(self.plan.code, os.strerror(self.plan.code))


class _Tapped:
    """Has the methods of the port, each through the tap."""

    def __init__(self, inner: FileSystem, tap: Tap, port: type) -> None:
        self._names: dict[int, str] = {}
        self._inner = inner
        self._tap = tap
        for method, signature in port_methods(port).items():
            setattr(self, method, self._tapped(method, signature))

    def _tapped(self, method: str, signature: inspect.Signature) -> Callable[..., Any]:
        parameters = list(signature.parameters)[1:]
        perform = getattr(self._inner, method)
        takes_fd = "fd" in parameters
        opens = signature.return_annotation in (int, "int") and not takes_fd

        def call(*args: Any, **kwargs: Any) -> Any:
            given = dict(zip(parameters, args, strict=False)) | kwargs
            fd: int | None = given["fd"] if takes_fd else None
            name = self._name(given, fd)
            opened: list[int] = []

            def act() -> Any:
                if "data" in given:
                    given["data"] = self._tap.shortened(given["data"])
                result = perform(**given)
                opened.extend([result] if opens else [])
                return result

            try:
                result = self._tap.call(method, name, fd, act)
            except BaseException:
                for each in opened:
                    self._inner.close(each)  # a call that failed gave nobody a descriptor
                raise
            if opens:
                self._names[result] = name
            return result

        return call

    def _name(self, given: dict[str, Any], fd: int | None) -> str:
        if fd is not None:
            return self._names.get(fd, "?")
        if "target" in given:
            return f"{given['source']} -> {given['target']}"
        return str(given.get("name", "?"))

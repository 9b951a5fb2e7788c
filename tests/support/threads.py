"""Threads of one process that go on by command: each stops before the system calls that were named for it.

An order of calls of several threads is told by a test and not found by luck. A thread also stands still where
it waits for a lock of the code, which :func:`announced` locks tell; it goes on by itself then.
"""

from __future__ import annotations

import contextlib
import fnmatch
import sys
import threading
from typing import TYPE_CHECKING, Any

from interposition import InterposedFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    import pytest

_PATIENCE = 30.0
_roles: dict[int, Role] = {}
_RLock = threading.RLock


class Role:
    """What one thread does, up to the first of its stops.

    Args:
        run: what it does.
        stops: method and name of the calls before which it stops, as patterns, each once and in this order.
    """

    def __init__(self, run: Callable[[], Any], *stops: tuple[str, str]) -> None:
        self._run = run
        self._stops = list(stops)
        self._standing = threading.Event()
        self._go = threading.Semaphore(0)
        self._result: Any = None
        self._error: BaseException | None = None
        self.waited = False
        self._thread = threading.Thread(target=self._body, daemon=True)
        self._thread.start()
        self._stand()

    def step(self) -> None:
        """Let it go on to its next stop, to a lock that another thread holds, or to its end."""
        self._standing.clear()
        self._go.release()
        self._stand()

    def end(self) -> Any:
        """Let it go on to its end, past all stops; its result, or its error raised."""
        self._stops.clear()
        self._go.release()
        self._thread.join(_PATIENCE)
        assert not self._thread.is_alive(), "it waits for a thread that was not let go on"
        if self._error is not None:
            raise self._error
        return self._result

    def reached(self, method: str, name: str) -> None:
        """Stop where this is the next call to stop before."""
        if self._stops and all(map(fnmatch.fnmatchcase, (method, name), self._stops[0])):
            del self._stops[0]
            self._standing.set()
            assert self._go.acquire(timeout=_PATIENCE), "nobody let it go on"

    def waits(self) -> None:
        """Note that it stands still without having been told to."""
        self.waited = True
        self._standing.set()

    def _stand(self) -> None:
        assert self._standing.wait(_PATIENCE), "it reached neither a stop nor its end"

    def _body(self) -> None:
        _roles[threading.get_ident()] = self
        try:
            self._result = self._run()
        except BaseException as error:  # noqa: BLE001 - raised again by whoever ends it
            self._error = error
        finally:
            del _roles[threading.get_ident()]
            self._standing.set()


class StoppingFileSystem(InterposedFileSystem):
    """The port in which the threads of a test stop."""

    def _call(self, method: str, name: str, perform: Callable[[], Any]) -> Any:
        if method != "close":  # which is told after it took effect
            self.stop(method, name)
        return super()._call(method, name, perform)

    def close(self, fd: int) -> None:
        self.stop("close", self._name(fd))
        super().close(fd)

    def stop(self, method: str, name: str) -> None:
        """Let the role of this thread stop here where it is to."""
        role = _roles.get(threading.get_ident())
        if role is not None:
            role.reached(method, name)


class AnnouncedLock:
    """A reentrant lock that tells the role of a thread that it has to wait for it."""

    def __init__(self) -> None:
        self._lock = _RLock()

    def acquire(self) -> bool:
        if not self._lock.acquire(blocking=False):
            role = _roles.get(threading.get_ident())
            if role is not None:
                role.waits()
            self._lock.acquire()
        return True

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


@contextlib.contextmanager
def announced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the locks that our code makes in the block tell a role that it waits."""

    def make() -> Any:
        # Not those of libraries, which ask more of a lock.
        ours = sys._getframe(1).f_globals["__name__"].startswith("pi_team.")
        return AnnouncedLock() if ours else _RLock()

    with monkeypatch.context() as patch:
        patch.setattr(threading, "RLock", make)
        yield

"""Waking up when a team's record is replaced, instead of asking again and again.

The directory is watched by `watchdog` (inotify on Linux, FSEvents on macOS). A watch is a convenience: any
failure of it falls back to looking at short intervals, silently (docs/protocol.md, "Reading").
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING, Any, Final, Self

from pi_team.record.directory import RECORD

if TYPE_CHECKING:
    from types import TracebackType

_FALLBACK_INTERVAL: Final = 0.1
"""Seconds between two looks at the record where the directory cannot be watched."""


class Changes:
    """Notices that a team's record was replaced, or its directory moved or removed.

    Args:
        path: the path of the team's directory.
        watched: whether to watch the directory; otherwise it is looked at every 0.1 s.
    """

    def __init__(self, path: str, *, watched: bool = True) -> None:
        self._path = path
        self._changed = threading.Event()
        self._directory = _open(path)
        self._seen = self._look()
        self._observer: Any = None
        if watched:
            # No inotify instance left, a directory that is gone, a platform without a watcher: look instead.
            with contextlib.suppress(Exception):
                self._observer = _start(path, self._changed)

    def wait(self, timeout: float) -> bool:
        """Wait for a change since the last call, at most `timeout` seconds; whether there was one."""
        if self._observer is None:
            return self._poll(timeout)
        self._changed.wait(timeout)
        self._changed.clear()
        return self._moved()

    def wake(self) -> None:
        """End the present or the next wait at once, from another thread or a signal handler."""
        self._changed.set()

    def close(self) -> None:
        """Stop watching."""
        directory, self._directory = self._directory, -1
        if directory >= 0:
            os.close(directory)
        observer, self._observer = self._observer, None
        if observer is not None:
            with contextlib.suppress(Exception):
                observer.stop()
                observer.join(1.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _poll(self, timeout: float) -> bool:
        while not self._moved():
            if timeout <= 0 or self._changed.wait(min(timeout, _FALLBACK_INTERVAL)):
                self._changed.clear()
                return self._moved()
            timeout -= _FALLBACK_INTERVAL
        return True

    def _moved(self) -> bool:
        """Whether the record is another file than at the last call."""
        if self._observer is not None and not self._is_current():
            self.close()  # what is watched is no longer the team's: from here on its path is looked at
        now = self._look()
        moved, self._seen = now != self._seen, now
        return moved

    def _is_current(self) -> bool:
        with contextlib.suppress(OSError):
            return os.path.samestat(os.stat(self._path), os.fstat(self._directory))
        return False

    def _look(self) -> tuple[int, int, int] | None:
        try:
            status = os.stat(os.path.join(self._path, RECORD), follow_symlinks=False)
        except OSError:
            return None
        return (status.st_ino, status.st_size, status.st_mtime_ns)


def _open(path: str) -> int:
    """Open a directory, which keeps its inode number from being given to another; -1 where that fails."""
    with contextlib.suppress(OSError):
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    return -1


def _start(path: str, changed: threading.Event) -> Any:
    # 60 ms of imports that only a waiting process pays.
    import logging  # noqa: PLC0415

    from watchdog.events import (  # noqa: PLC0415
        DirDeletedEvent,
        DirMovedEvent,
        FileCreatedEvent,
        FileMovedEvent,
        FileSystemEvent,
        FileSystemEventHandler,
    )
    from watchdog.observers import Observer  # noqa: PLC0415

    class Handler(FileSystemEventHandler):
        def on_any_event(self, event: FileSystemEvent) -> None:
            names = {os.path.basename(os.fsdecode(name)) for name in (event.src_path, event.dest_path)}
            if RECORD in names or event.is_directory:
                changed.set()

    # What it logs when a watch is closed at the moment of an event is none of a person's business.
    logger = logging.getLogger("watchdog")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    observer = Observer()
    kinds: list[type[FileSystemEvent]] = [FileCreatedEvent, FileMovedEvent, DirDeletedEvent, DirMovedEvent]
    try:
        observer.schedule(Handler(), path, recursive=False, event_filter=kinds)
        observer.start()
    except BaseException:
        observer.stop()  # it has descriptors and a thread of its own even before it is started
        raise
    return observer

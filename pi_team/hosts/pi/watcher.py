"""A thread that waits for changes of the record, beside the loop that must not wait for them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_team.watching import Changes

_TURN: Final = 60.0
"""Seconds of one wait; nothing depends on its length."""


class Watcher:
    """Calls when the record has changed, until it is closed.

    Args:
        changes: the watch; closed together with this.
        wake: called in the watching thread.
    """

    def __init__(self, changes: Changes, wake: Callable[[], None]) -> None:
        self._changes = changes
        self._wake = wake
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._closing.is_set():
            if self._changes.wait(_TURN):
                self._wake()

    def close(self) -> None:
        """End the thread, then the watch."""
        self._closing.set()
        self._changes.wake()
        self._thread.join(1.0)
        self._changes.close()

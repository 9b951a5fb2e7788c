"""What the interpreter itself tells of its calls, which libraries cannot go around."""

from __future__ import annotations

import fnmatch
import os
import sys
from typing import Any


class Audit:
    """Counts the interpreter's audit events of files, which the library of the locks raises too.

    Events come just before their calls. What is only looked up about processes is left out: nothing of it
    is on the disk.

    Attributes:
        seen: the events since it was armed.
    """

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._pattern = ""
        self._left = self._signal = 0
        sys.addaudithook(self._hook)

    def arm(self, pattern: str, nth: int, number: int) -> None:
        """Raise the signal at the n-th event from now on that fits; 0: count only."""
        self.seen.clear()
        self._pattern, self._left, self._signal = pattern, nth, number

    def disarm(self) -> None:
        """Neither count nor signal any more."""
        self._pattern = ""

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._pattern or not (event == "open" or event.startswith("os.")) or event == "os.kill":
            return
        text = f"{event} {arguments[0] if arguments else ''}"
        if " /proc" in text:
            return
        self.seen.append(text)
        if fnmatch.fnmatchcase(text, self._pattern):
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), self._signal)

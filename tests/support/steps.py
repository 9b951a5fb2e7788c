"""Where in docs/protocol.md, "A write", a process is, told by its system calls."""

from __future__ import annotations

import mmap
import re
from typing import Final

START_UP: Final = "start-up"
BETWEEN_CALLS: Final = "between two calls"
STEPS: Final = (
    *(START_UP, BETWEEN_CALLS, "locks", "1 read the record", "2 look above it", "2 help"),
    *("3 judge the members", "4 private file", "5 link", "6 sync the link", "7 look again", "8 rename"),
    *("9 prune", "presence", "directories"),
)
"""The second is the process's own work before its next call; the numbers are the protocol's."""
_PRIVATE: Final = re.compile(r"\.[0-9a-f]{8}-[0-9a-f-]{27}\.[^.]+\.tmp")
_SLOT: Final = re.compile(r"[1-9][0-9]*\.json")
_LINK: Final = re.compile(rf"{_PRIVATE.pattern} -> {_SLOT.pattern}")
_INSTALL: Final = re.compile(rf"{_PRIVATE.pattern} -> state\.json")


class Steps:
    """Follows the calls of one process.

    Attributes:
        linked: whether this process has linked a publication, and neither begun to install nor withdrawn it.
    """

    def __init__(self) -> None:
        self.linked = False
        self._installed = False
        self._building = False

    def begin(self) -> None:
        """An operation begins."""
        self.linked = self._installed = self._building = False

    def come(self, method: str, name: str) -> str:
        """The step of a call that is about to be made."""
        if ".lock" in name or method == "fcntl.flock":
            return "locks"
        if method == "open_read" and name == "state.json":
            self._installed = False  # another attempt, or a look: pruning reads no record
        if self._is_about_directories(method, name):
            return "directories"
        return self._of_a_write(method, name) or self._of_a_look(method, name)

    def _of_a_write(self, method: str, name: str) -> str:
        step = ""
        if _LINK.fullmatch(name):
            step = "5 link"
        elif _INSTALL.fullmatch(name):
            step = "8 rename" if self.linked else "2 help"
        elif self.linked:
            step = "6 sync the link" if method == "fsync" else "7 look again"
        elif self._installed and (_SLOT.fullmatch(name) or method in {"listdir", "fsync"}):
            step = "9 prune"
        elif _PRIVATE.fullmatch(name):
            step = "4 private file"
        return step

    def _is_about_directories(self, method: str, name: str) -> bool:
        if method in {"mkdir", "rmdir"} or ".new-" in name or ".deleted-" in name:
            self._building = self._building or method == "mkdir"
            return True
        return self._building

    @staticmethod
    def _of_a_look(method: str, name: str) -> str:
        if name == "state.json":
            return "1 read the record"
        if _SLOT.fullmatch(name):
            return "2 look above it"
        if method in {"listdir", "fsync"} and name == "revisions":
            return "2 help"
        if name == "presence" or name.endswith((".json", ".tmp")):
            writes = method in {"create", "write", "fsync", "rename", "unlink"} or name.endswith(".tmp")
            return "presence" if writes else "3 judge the members"
        return "directories"

    def begins(self, method: str, name: str) -> None:
        """The call begins: up to here nothing of it can have happened."""
        if method == "rename" and _INSTALL.fullmatch(name):
            self._installed, self.linked = self.linked, False

    def done(self, method: str, name: str) -> None:
        """The call has succeeded."""
        if method == "link" and _LINK.fullmatch(name) and not self._building:
            self.linked = True
        elif method == "unlink" and _PRIVATE.fullmatch(name):
            self.linked = False
        elif method == "rename" and name.startswith(".new-"):
            self._building = False


class SharedSteps(Steps):
    """The same, kept where a parent still reads it when the process has been killed."""

    def __init__(self) -> None:
        super().__init__()
        self._shared = mmap.mmap(-1, 2)

    def clear(self) -> None:
        """Be as new, for the next process."""
        self.begin()
        self._shared[:] = bytes(2)

    def come(self, method: str, name: str) -> str:
        step = super().come(method, name)
        self._shared[0] = STEPS.index(step)
        return step

    def begins(self, method: str, name: str) -> None:
        super().begins(method, name)
        self._shared[1] = self.linked

    def done(self, method: str, name: str) -> None:
        super().done(method, name)
        self._shared[1] = self.linked
        self._shared[0] = STEPS.index(BETWEEN_CALLS)

    @property
    def step(self) -> str:
        """In which step the process is, or was when it was killed."""
        return STEPS[self._shared[0]]

    @property
    def is_linked(self) -> bool:
        """Whether its publication is linked and it has not begun to install it."""
        return bool(self._shared[1])

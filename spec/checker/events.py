"""Recorded calls as the calls of PublicationTrace: what was read where decides which step a call was."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

Calls: TypeAlias = "list[dict[str, Any]]"
Event: TypeAlias = "dict[str, int | str | tuple[int, ...]]"
Trace: TypeAlias = "dict[str, list[Event]]"
"""Per writer, what it did in its own order."""

FREE: Final = -1
GENESIS: Final = 0
_PRIVATE: Final = re.compile(r"\.([0-9a-f-]{36})\..*\.tmp")
_RECORD: Final = "state.json"


def recorded(path: Path) -> Calls:
    """The calls of one process."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Numbering:
    """Gives the publications of a trace numbers; the record that the trace begins with is the genesis.

    Args:
        revision: of the record that the trace begins with.
        genesis: its publication.
        calls: of all processes, which tell which publication was the first to hold an operation.
    """

    def __init__(self, revision: int, genesis: str, calls: Iterable[Calls]) -> None:
        self.revision = revision
        self._numbers = {genesis: GENESIS}
        self._first: dict[str, int] = {}
        for call in (call for process in calls for call in process):
            if _takes_a_slot(call) and not call["failed"]:
                for operation in call["found"]["operations"][-1:]:
                    self._first.setdefault(operation, self.of(call["found"]["id"]))

    def of(self, publication: str) -> int:
        """The number of a publication."""
        return self._numbers.setdefault(publication, len(self._numbers))

    def operation(self, name: str) -> int:
        """The number of an operation: of the publication that held it first; GENESIS where none did."""
        return self._first.get(name, GENESIS)

    def found(self, identity: dict[str, Any] | None) -> Event:
        """What a name held."""
        if identity is None:
            return {"pub": FREE, "rev": FREE}
        return {"pub": self.of(identity["id"]), "rev": identity["revision"] - self.revision}


def _takes_a_slot(call: dict[str, Any]) -> bool:
    return call["call"] in {"link", "rename"} and call["target"] != _RECORD


class _Writer:
    """Reads the calls of one process one after another."""

    def __init__(self, calls: Calls, numbers: Numbering) -> None:
        self._calls = calls
        self._at = 0
        self._numbers = numbers
        self._saw: Event = {}
        self._helped = FREE
        self._linked = False
        self._changes = True
        self.events: list[Event] = []

    def _peek(self, call: str, name: str) -> bool:
        return self._at < len(self._calls) and (
            self._calls[self._at]["call"] == call
            and re.fullmatch(name, self._calls[self._at]["name"]) is not None
        )

    def _take(self) -> dict[str, Any]:
        self._at += 1
        return self._calls[self._at - 1]

    def _emit(self, call: str, **more: int | str | tuple[int, ...]) -> None:
        self.events.append({"call": call, **more})

    def read(self) -> list[Event]:
        while self._at < len(self._calls):
            began, told = self._calls[self._at]["began"], len(self.events)
            self._step()
            for event in self.events[told:]:  # a step may have taken several calls
                event.update(began=began, ended=self._calls[self._at - 1]["ended"])
        return self.events

    def _step(self) -> None:
        call = self._take()
        name = call["name"]
        kind = "record" if name == _RECORD else "private" if name.startswith(".") else "slot"
        if call["call"] == "fsync":
            self._emit("sync" if name == "revisions" else "sync team")
        elif call["call"] == "asked":
            self._changes = call["operation"] != ""
        elif call["call"] == "told":
            self._emit(call["outcome"], pub=self._numbers.operation(call["operation"]))
        elif call["call"] == "list":
            self._listed()
        elif _takes_a_slot(call):
            self._take_slot(call)
        elif call["call"] == "rename":
            self._rename(call)
        else:
            getattr(self, f"_{call['call']}_{kind}")(call)

    def _listed(self) -> None:
        """A helper looks for the owner's private file; gone when something else than a rename follows."""
        if self._at == len(self._calls):
            return  # killed before it could tell
        if not self._linked and self._calls[self._at].get("target") != _RECORD:  # else it is about to prune
            self._emit("rename", pub=self._helped, gone=True)

    def _open_record(self, call: dict[str, Any]) -> None:
        self._saw = self._numbers.found(call["found"])
        self._linked = False
        self._emit("read", changes=self._changes, **self._saw)

    def _stat_record(self, call: dict[str, Any]) -> None:
        """Whether the record is the one that was read: by inode, else by identity; then how far it is."""
        seen = self._numbers.found(call["found"])
        if seen != self._saw and self._peek("open", r"state\.json"):
            seen = self._numbers.found(self._take()["found"])
        if seen != self._saw and self._linked and self._peek("open", r"state\.json"):
            seen = self._numbers.found(self._take()["found"])
        self._emit("look", **seen)

    def _open_slot(self, call: dict[str, Any]) -> None:
        found = self._numbers.found(call["found"])
        self._helped = int(str(found["pub"]))
        self._emit("slot", slot=self._slot(call["name"]), **found)

    def _take_slot(self, call: dict[str, Any]) -> None:
        """A link, or whatever else gives a file a slot's name."""
        found = call["found"]
        taken = bool(call["failed"])
        self._emit(
            "link",
            slot=self._slot(call["target"]),
            taken=taken,
            previous=self._numbers.of(found["previous"]),
            ops=tuple(self._numbers.operation(name) for name in found["operations"]),
            **self._numbers.found(found),
        )
        if not taken:
            self._linked = True
            return
        # It looks who holds the slot and whether its own file is there, and removes that: nobody saw it. A
        # file that is gone would say that the link took effect: that is left for the model to reject.
        while (
            self._peek("open", r"\d+\.json")
            or (self._peek("stat", r"\..*") and self._calls[self._at]["found"] is not None)
            or self._peek("unlink", r"\..*")
        ):
            self._take()

    def _rename(self, call: dict[str, Any]) -> None:
        """A private file is renamed onto the record; a call that failed otherwise did nothing."""
        if call["failed"] not in {"", "FileNotFoundError"}:
            self._look_whether_installed()
            return
        gone = bool(call["failed"])
        self._emit("rename", pub=self._publication(call), gone=gone)
        if gone and self._linked:
            self._look_whether_installed()

    def _stat_private(self, call: dict[str, Any]) -> None:
        gone = call["found"] is None
        self._emit("private", gone=gone)
        if gone:
            self._look_whether_installed()

    def _unlink_slot(self, call: dict[str, Any]) -> None:
        if self._slot(call["name"]) > 0 and not call["failed"]:
            self._emit("remove slot", slot=self._slot(call["name"]))

    def _unlink_private(self, call: dict[str, Any]) -> None:
        self._emit("remove private")
        if call["failed"]:
            self._look_whether_installed()

    def _look_whether_installed(self) -> None:
        while self._peek("stat", r"\..*") or self._peek("open", r"state\.json"):
            found = self._take()
            if found["call"] == "open":
                return

    def _slot(self, name: str) -> int:
        return int(name.removesuffix(".json")) - self._numbers.revision

    def _publication(self, call: dict[str, Any]) -> int:
        """Which publication a renamed file holds; a private name that is gone tells it too."""
        if call["found"] is not None:
            return self._numbers.of(call["found"]["id"])
        match = _PRIVATE.fullmatch(call["name"])
        if match is None:
            raise ValueError(f"not a private file of ours: {call['name']}")
        return self._numbers.of(match[1])


def events_of(processes: Mapping[str, Calls], *, revision: int, genesis: str) -> Trace:
    """What the processes did, in the words of PublicationTrace.

    Args:
        processes: per writer, its recorded calls.
        revision: of the record that all of them began with.
        genesis: the publication of that record.
    """
    numbers = Numbering(revision, genesis, processes.values())
    trace = {writer: _Writer(calls, numbers).read() for writer, calls in processes.items()}
    events = [event for events in trace.values() for event in events]
    times = sorted({int(str(event[when])) for event in events for when in ("began", "ended")})
    ranks: dict[object, int] = {time: rank for rank, time in enumerate(times)}  # TLC's numbers are small
    for event in events:
        event.update(began=ranks[event["began"]], ended=ranks[event["ended"]])
    return trace

"""Recorded calls as the calls of PublicationTrace: what was read where decides which step a call was."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from spec.checker.manifest import Config, Model
from spec.checker.tlc import Run, run

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Event: TypeAlias = "dict[str, int | str]"
FREE: Final = -1
GENESIS: Final = 0
_PRIVATE: Final = re.compile(r"\.([0-9a-f-]{36})\..*\.tmp")


def recorded(path: Path) -> list[dict[str, Any]]:
    """The calls of one process."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Numbering:
    """Gives the publications of a trace numbers; the record that the trace begins with is the genesis."""

    def __init__(self, revision: int, genesis: str) -> None:
        self.revision = revision
        self._numbers = {genesis: GENESIS}

    def of(self, publication: str) -> int:
        """The number of a publication."""
        return self._numbers.setdefault(publication, len(self._numbers))

    def found(self, identity: dict[str, Any] | None) -> int:
        """The number of what a file name held."""
        return FREE if identity is None else self.of(identity["id"])


class _Writer:
    """Reads the calls of one process one after another."""

    def __init__(self, calls: Iterable[dict[str, Any]], numbers: Numbering) -> None:
        self._calls = list(calls)
        self._at = 0
        self._numbers = numbers
        self._saw = FREE
        self._helped = FREE
        self._linked = False
        self.events: list[Event] = []

    def _peek(self, call: str, name: str) -> bool:
        return self._at < len(self._calls) and (
            self._calls[self._at]["call"] == call
            and re.fullmatch(name, self._calls[self._at]["name"]) is not None
        )

    def _take(self) -> dict[str, Any]:
        self._at += 1
        return self._calls[self._at - 1]

    def _emit(self, call: str, **more: int | str) -> None:
        self.events.append({"call": call, **more})

    def read(self) -> list[Event]:
        while self._at < len(self._calls):
            call = self._take()
            kind = (
                "record"
                if call["name"] == "state.json"
                else "private"
                if call["name"].startswith(".")
                else "slot"
            )
            if call["call"] == "fsync":
                self._synced(call["name"])
            elif call["call"] == "list":
                self._listed()
            else:
                getattr(self, f"_{call['call']}_{kind}")(call)
        return self.events

    def _synced(self, name: str) -> None:
        self._emit("sync" if name == "revisions" else "sync team")

    def _listed(self) -> None:
        """A helper looks for the owner's private file; it is gone when no rename follows."""
        if not self._linked and not self._peek("rename", r"\..*"):  # else it lists the history, to prune it
            self._emit("rename", pub=self._helped, gone=True)

    def _open_record(self, call: dict[str, Any]) -> None:
        self._saw = self._numbers.found(call["found"])
        self._linked = False
        self._emit("read", pub=self._saw)

    def _stat_record(self, call: dict[str, Any]) -> None:
        """Whether the record is the one that was read: by inode, else by identity; then how far it is."""
        seen = self._numbers.found(call["found"])
        if seen != self._saw and self._peek("open", r"state\.json"):
            seen = self._numbers.found(self._take()["found"])
        if seen != self._saw and self._linked and self._peek("open", r"state\.json"):
            seen = self._numbers.found(self._take()["found"])
        self._emit("look", pub=seen)

    def _open_slot(self, call: dict[str, Any]) -> None:
        found = self._numbers.found(call["found"])
        self._helped = found
        self._emit("slot", slot=self._slot(call["name"]), pub=found)

    def _link_private(self, call: dict[str, Any]) -> None:
        taken = bool(call["failed"])
        slot = self._slot(call["target"])
        self._emit("link", slot=slot, pub=self._publication(call["name"]), taken=taken)
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

    def _rename_private(self, call: dict[str, Any]) -> None:
        gone = bool(call["failed"])
        self._emit("rename", pub=self._publication(call["name"]), gone=gone)
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

    def _publication(self, name: str) -> int:
        match = _PRIVATE.fullmatch(name)
        if match is None:
            raise ValueError(f"not a private file of ours: {name}")
        return self._numbers.of(match[1])


def events_of(calls: Iterable[dict[str, Any]], numbers: Numbering) -> list[Event]:
    """The calls of PublicationTrace that one process made."""
    return _Writer(calls, numbers).read()


def as_tla(traces: dict[str, list[Event]]) -> str:
    """The module that TLC checks: a sequence of calls per writer."""
    writers = []
    for writer, events in traces.items():
        calls = ",\n    ".join(
            f"[{', '.join(f'{key} |-> {_value(value)}' for key, value in event.items())}]" for event in events
        )
        writers.append(f"  {writer} |-> <<\n    {calls}>>")
    return (
        "---- MODULE Recorded ----\nEXTENDS PublicationTrace\nRecordedTrace == [\n"
        + ",\n".join(writers)
        + "]\n====\n"
    )


def _value(value: int | str) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return f'"{value}"' if isinstance(value, str) else str(value)


def model(traces: dict[str, list[Event]], *, kept: int) -> Model:
    """The model of a trace: it is accepted when Unfinished fails."""
    slots = [int(event["slot"]) for events in traces.values() for event in events if "slot" in event]
    links = sum(event["call"] == "link" for events in traces.values() for event in events)
    constants = {
        "Writers": "{" + ", ".join(f'"{writer}"' for writer in traces) + "}",
        "OlderPeers": "{}",
        "Steady": "{}",
        "Revisions": str(max(slots, default=1) + 1),
        "Publications": str(links + 1),
        "Keep": str(kept),
        "PowerCuts": "0",
        "Dropped": "{}",
        "Trace": "<- RecordedTrace",
    }
    config = Config(constants, "TraceSpec", ("Unfinished",), (), None)
    return Model("trace", "Recorded", "trace", "", config, None, "Unfinished", quick=False)


def accepted(traces: dict[str, list[Event]], *, kept: int) -> Run:
    """Let TLC look for a behaviour of Publication that is this trace: found when `violated` is Unfinished."""
    return run(model(traces, kept=kept), module=as_tla(traces))

"""What the writers of a trace met, and whether the specification allows what they did."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from spec.checker.events import FREE
from spec.checker.manifest import Config, Model
from spec.checker.tlc import run

if TYPE_CHECKING:
    from spec.checker.events import Event, Trace


class ProvesNothing(ValueError):
    """In this trace no writer met another: any code would have behaved like that."""


class Unreadable(ValueError):
    """TLC could not check a trace; the message is its text."""


def contention(trace: Trace) -> Counter[str]:
    """How often the writers of a trace met, and how.

    `overlap`: another writer took a slot or installed during an attempt. `pending`: a slot above the record
    held another's publication. `help`: a writer installed it. `helped`: a writer found its own installed.
    `conflict`: a slot was taken meanwhile. `withdrawal`: a writer had slept until its slot was pruned and
    reused.
    """
    met: Counter[str] = Counter()
    for writer, events in trace.items():
        own = {event["pub"] for event in events if event["call"] == "link" and not event["taken"]}
        for event in events:
            if event["call"] == "link":
                met["conflict"] += bool(event["taken"])
            elif event["call"] == "slot":
                met["pending"] += event["pub"] not in {*own, FREE}
            elif event["call"] == "rename" and event["pub"] in own:
                met["helped"] += bool(event["gone"])
            elif event["call"] == "rename":
                met["help"] += not event["gone"]
            elif event["call"] == "private":
                met["helped" if event["gone"] else "withdrawal"] += 1
        others = [
            _began(event) for name in trace if name != writer for event in trace[name] if _changes(event)
        ]
        for began, ended in _attempts(events):
            met["overlap"] += any(began < change < ended for change in others)
    return +met


def _began(event: Event) -> int:
    return int(str(event["began"]))


def _changes(event: Event) -> bool:
    return event.get("taken") is False or (event["call"] == "rename" and event["gone"] is False)


def _attempts(events: list[Event]) -> list[tuple[int, int]]:
    """When each attempt read the record, and when it made its last call."""
    reads = [at for at, event in enumerate(events) if event["call"] == "read"]
    return [
        (_began(events[read]), _began(events[following - 1]))
        for read, following in pairwise([*reads, len(events)])
    ]


def _as_tla(trace: Trace) -> str:
    """The module that TLC checks: a sequence of calls per writer."""
    writers = []
    for writer, events in trace.items():
        calls = ",\n    ".join(
            f"[{', '.join(f'{key} |-> {_value(value)}' for key, value in event.items())}]" for event in events
        )
        writers.append(f"  {writer} |-> <<\n    {calls}>>")
    return (
        "---- MODULE Recorded ----\nEXTENDS PublicationTrace\nRecordedTrace == [\n"
        + ",\n".join(writers)
        + "]\n====\n"
    )


def _value(value: int | str | tuple[int, ...]) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, tuple):
        return f"<<{', '.join(map(str, value))}>>"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _model(trace: Trace, *, kept: int) -> Model:
    """The model of a trace: it is accepted when Unfinished fails."""
    links = [event for events in trace.values() for event in events if event["call"] == "link"]
    slots = [int(str(event["slot"])) for events in trace.values() for event in events if "slot" in event]
    constants = {
        "Writers": "{" + ", ".join(f'"{writer}"' for writer in trace) + "}",
        "OlderPeers": "{}",
        "Steady": "{}",
        "Revisions": str(max(slots, default=1) + 1),
        "Publications": str(len(links) + 1),
        "Keep": str(kept),
        "PowerCuts": "0",
        "Dropped": "{}",
        "Trace": "<- RecordedTrace",
        "Symmetry": "<- NoSymmetry",
    }
    config = Config(constants, "TraceSpec", ("Unfinished",), (), None)
    return Model("trace", "Recorded", "trace", "", config, None, "Unfinished", quick=False)


def accepts(trace: Trace, *, kept: int) -> bool:
    """Whether TLC finds a behaviour of Publication that is this trace.

    Args:
        trace: of processes that began with the same record.
        kept: the bound of the history in them.

    Raises:
        ProvesNothing: the writers never met.
        Unreadable: TLC could not check it.
        ToolMissing: Java or TLC is not installed.
    """
    if not contention(trace):
        raise ProvesNothing(f"no writer met another in {sum(map(len, trace.values()))} calls")
    found = run(_model(trace, kept=kept), module=_as_tla(trace))
    if found.error is not None:
        raise Unreadable(found.error)
    return found.violated == "Unfinished"

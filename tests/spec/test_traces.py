"""What real processes do is a behaviour of the specification, and a trace that was tampered with is not.

With PI_TEAM_TESTS=long more than a dozen processes at once, ten times over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import rehearsals
from length import LONG
from spec.checker import traces
from spec.checker.events import FREE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from spec.checker.events import Event, Trace

pytestmark = pytest.mark.slow  # each starts Java

CROWDS = [(seed, 5) for seed in range(10)] if LONG else [(0, 2)]
"""Seed and size of each."""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Four processes: one is killed, one stops until its slot is pruned, two go on."""
    return rehearsals.crowd(tmp_path_factory.mktemp("crowd"), seed=0, size=1)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("seed", "size"), CROWDS)
def test_real_processes_behave_as_specified(tmp_path: Path, seed: int, size: int) -> None:
    """Processes that are killed and stopped at their links and renames while others prune.

    TLC finds an order of all calls in which each is a step of Publication with that very result.
    """
    crowd = rehearsals.crowd(tmp_path, seed=seed, size=size)
    met = traces.contention(crowd)
    assert met["pending"] and met["help"] and met["withdrawal"], met  # noqa: PT018 - one thing: that they met
    assert _find(crowd, "remove slot")
    assert traces.accepts(crowd, kept=rehearsals.KEPT)


def _find(trace: Trace, call: str, **more: object) -> list[tuple[str, int]]:
    """Where in a trace there is such a call."""
    return [
        (writer, at)
        for writer, events in trace.items()
        for at, event in enumerate(events)
        if event["call"] == call and all(event[key] == value for key, value in more.items())
    ]


def _with(trace: Trace, writer: str, events: list[Event]) -> Trace:
    return {**trace, writer: events}


def _told(event: Event, times: Event) -> Event:
    """An event at the time of another one: no corruption is to be noticed by its times alone."""
    return {**event, "began": times["began"], "ended": times["ended"]}


def swapped(trace: Trace) -> Trace:
    """A writer replaces the record before it syncs `revisions/`."""
    writer, at = next(
        (writer, at)
        for writer, at in _find(trace, "rename", gone=False)
        if trace[writer][at - 2]["call"] == "sync"
    )
    events = list(trace[writer])
    sync, look, rename = events[at - 2 : at + 1]
    events[at - 2 : at + 1] = [_told(rename, sync), _told(sync, look), _told(look, rename)]
    return _with(trace, writer, events)


def dropped(trace: Trace) -> Trace:
    """One installation is missing."""
    writer, at = _find(trace, "rename", gone=False)[0]
    return _with(trace, writer, trace[writer][:at] + trace[writer][at + 1 :])


def forged(trace: Trace) -> Trace:
    """A slot that was free is said to have held the first publication."""
    writer, at = _find(trace, "slot", pub=FREE)[-1]
    events = list(trace[writer])
    events[at] = {**events[at], "pub": 1, "rev": 1}
    return _with(trace, writer, events)


def forged_revision(trace: Trace) -> Trace:
    """A record that was read is said to be a revision further than it was."""
    writer, at = _find(trace, "read")[-1]
    events = list(trace[writer])
    events[at] = {**events[at], "rev": int(str(events[at]["rev"])) + 1}
    return _with(trace, writer, events)


def forged_content(trace: Trace) -> Trace:
    """What a writer linked lacks the first operation: an update was lost."""
    writer, at = _find(trace, "link", taken=False)[-1]
    events = list(trace[writer])
    operations = events[at]["ops"]
    assert isinstance(operations, tuple)
    events[at] = {**events[at], "ops": operations[1:]}
    return _with(trace, writer, events)


def stale_install(trace: Trace) -> Trace:
    """A writer that slept until its slot was pruned installs what it linked there."""
    writer, at = _find(trace, "private", gone=False)[0]
    events = list(trace[writer])
    own = next(event["pub"] for event in reversed(events[:at]) if event["call"] == "link")
    drop = next(n for n, event in enumerate(events) if n > at and event["call"] == "remove private")
    install: Event = _told({"call": "rename", "pub": own, "gone": False}, events[at])
    return _with(trace, writer, [*events[:at], install, *events[drop + 1 :]])


@pytest.mark.parametrize(
    "corrupt", [swapped, dropped, forged, forged_revision, forged_content, stale_install]
)
def test_a_corrupted_trace_is_rejected(trace: Trace, corrupt: Callable[[Trace], Trace]) -> None:
    """Steps swapped, dropped or forged: no behaviour of the specification has that trace."""
    assert not traces.accepts(corrupt(trace), kept=rehearsals.KEPT)


def test_the_trace_that_is_corrupted_is_accepted_as_it_was(trace: Trace) -> None:
    """Else its corruptions would be rejected for whatever else is wrong with it."""
    assert traces.accepts(trace, kept=rehearsals.KEPT)


def test_what_follows_a_stale_install_is_not_what_it_is_rejected_for(trace: Trace) -> None:
    """With the writer's trace cut off at its look the others' is accepted; with the install it is not."""
    writer, at = _find(trace, "private", gone=False)[0]
    assert traces.accepts(_with(trace, writer, trace[writer][:at]), kept=rehearsals.KEPT)
    installed = stale_install(trace)
    assert not traces.accepts(_with(installed, writer, installed[writer][: at + 1]), kept=rehearsals.KEPT)


def test_a_trace_without_contention_proves_nothing(tmp_path: Path) -> None:
    """Two writers, one after the other: neither finds anything that the other has left behind."""
    rehearsal = rehearsals.Rehearsal(tmp_path)
    for _ in range(2):
        with rehearsal.start(rehearsals.Writer(writes=2)) as writer:
            assert writer.result() == 3
    trace = rehearsal.trace()
    assert len(_find(trace, "link", taken=False)) == 4
    with pytest.raises(traces.ProvesNothing, match="no writer met another"):
        traces.accepts(trace, kept=rehearsals.KEPT)


def test_an_empty_trace_proves_nothing() -> None:
    """Nothing was recorded."""
    with pytest.raises(traces.ProvesNothing):
        traces.accepts({"w1": [], "w2": []}, kept=rehearsals.KEPT)


def test_a_trace_that_tlc_cannot_read_is_an_error(trace: Trace) -> None:
    """A call that lacks its result is neither accepted nor rejected."""
    writer, at = _find(trace, "read")[0]
    events = list(trace[writer])
    events[at] = {key: value for key, value in events[at].items() if key != "rev"}
    with pytest.raises(traces.Unreadable):
        traces.accepts(_with(trace, writer, events), kept=rehearsals.KEPT)

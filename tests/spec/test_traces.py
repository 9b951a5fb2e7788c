"""What real processes do is a behaviour of the specification, and a trace that was tampered with is not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pi_team.clocks import SystemClock
from pi_team.mailbox import Mailbox
from pi_team.presence import owner_token, this_process
from pi_team.record.directory import TeamDirectory
from pi_team.record.locks import Patience
from pi_team.record.publication import Author, Publisher
from processes import Child
from spec.checker import traces
from spec.checker.recorder import RecordingFileSystem
from worlds import Unlocked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from spec.checker.traces import Event

pytestmark = pytest.mark.slow  # each starts Java
KEPT = 2
WRITES = 4


class Text:
    """A payload is its text."""

    def decode(self, text: str) -> str:
        return text

    def encode(self, value: str) -> str:
        return value


def author() -> Author:
    here = this_process()
    return Author(here.pid, here.start or 0, here.host, here.boot, owner_token(here))


def writer(folder: Path, number: int, *, die_after: tuple[str, int] | None = None) -> Callable[[], int]:
    """A process that publishes a few times and records what it does."""

    def body() -> int:
        fs = RecordingFileSystem(str(folder / f"w{number}"), seed=number, die_after=die_after)
        clock = SystemClock()
        locks = Unlocked(fs, clock, str(folder / "teams"), owner=str, is_dead=bool)
        publisher = Publisher(locks, author, kept=KEPT)
        for nth in range(WRITES):
            publisher.publish(
                lambda: TeamDirectory(fs, str(folder / "teams"), "t"),
                Text(),
                lambda text, nth=nth: json.dumps([number, nth, len(text)]),  # type: ignore[misc]
                Patience(clock, 60),
            )
        return WRITES

    return body


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Event]]:
    """Three processes without locks that meet anywhere; the first is killed between link and rename."""
    folder = tmp_path_factory.mktemp("trace")
    Mailbox(folder / "teams").create("t")
    first = json.loads((folder / "teams" / "t" / "state.json").read_text(encoding="utf-8"))
    with (
        Child(writer(folder, 1, die_after=("link", 1))) as killed,
        Child(writer(folder, 2)) as second,
        Child(writer(folder, 3)) as third,
    ):
        killed.wait_killed()
        assert (second.result(), third.result()) == (WRITES, WRITES)
    numbers = traces.Numbering(first["revision"], first["publication"]["id"])
    return {f"w{n}": traces.events_of(traces.recorded(folder / f"w{n}"), numbers) for n in (1, 2, 3)}


def made(events: dict[str, list[Event]], call: str, **more: object) -> list[tuple[str, int]]:
    """Where in the trace there is such a call."""
    return [
        (name, at)
        for name, calls in events.items()
        for at, event in enumerate(calls)
        if event["call"] == call and all(event[key] == value for key, value in more.items())
    ]


def test_the_trace_exercises_the_protocol(recorded: dict[str, list[Event]]) -> None:
    """A trace without publications, a help and a pruning would show nothing."""
    links = {recorded[name][at]["pub"]: name for name, at in made(recorded, "link", taken=False)}
    assert len(links) >= 2 * WRITES
    renames = made(recorded, "rename", gone=False)
    assert any(links[recorded[name][at]["pub"]] != name for name, at in renames), "nobody was helped"
    assert made(recorded, "remove slot")


def test_real_processes_behave_as_specified(recorded: dict[str, list[Event]]) -> None:
    """TLC finds an order of all calls in which each is a step of Publication with that very result."""
    found = traces.accepted(recorded, kept=KEPT)
    assert found.error is None
    assert found.violated == "Unfinished"


def swapped(events: list[Event]) -> list[Event]:
    """The record is replaced before revisions/ is synced."""
    at = next(
        n for n, event in enumerate(events) if event["call"] == "rename" and events[n - 2]["call"] == "sync"
    )
    return [*events[: at - 2], events[at], events[at - 2], events[at - 1], *events[at + 1 :]]


def dropped(events: list[Event]) -> list[Event]:
    """One installation is missing."""
    at = next(n for n, event in enumerate(events) if event["call"] == "rename" and not event["gone"])
    return [*events[:at], *events[at + 1 :]]


def forged(events: list[Event]) -> list[Event]:
    """A slot that was free is said to have been taken by the first publication."""
    at = next(n for n, event in enumerate(events) if event["call"] == "slot" and event["pub"] == traces.FREE)
    return [*events[:at], {**events[at], "pub": 1}, *events[at + 1 :]]


@pytest.mark.parametrize("corrupt", [swapped, dropped, forged])
def test_a_corrupted_trace_is_rejected(
    recorded: dict[str, list[Event]], corrupt: Callable[[list[Event]], list[Event]]
) -> None:
    """Two calls swapped, one dropped, one result forged: no behaviour of the specification has that trace."""
    found = traces.accepted({**recorded, "w2": corrupt(recorded["w2"])}, kept=KEPT)
    assert found.error is None
    assert found.violated is None

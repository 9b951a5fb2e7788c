"""Durable sends of one process: beside the floor, beside SQLite, and by the size of the record."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import sqlite3
import statistics
import time
from typing import TYPE_CHECKING, Protocol

import attrs

from bench.figures import Figure
from bench.floor import Floor
from bench.team import BenchMailbox, settled, team_of, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SECTION = "durable sends, one process"
_OF_FLOOR = {10: 0.6, 100: 0.5, 400: 0.35}
_OF_SQLITE = 1.0
_GROWTH = 5.0
"""Microseconds for each message in the record."""


@attrs.frozen
class Scale:
    """How much is measured.

    Attributes:
        sizes: messages in the record.
        rounds: rounds; each measures everything once, and the medians are over them.
        sends: sends of a round, of each contestant.
        block: sends of one contestant in a row.
        history: revisions before, so that the history is as long as it gets and sends prune it.
    """

    sizes: tuple[int, ...]
    rounds: int
    sends: int = 33
    block: int = 11
    history: int = 70


class Contestant(Protocol):
    """Something that is measured against others."""

    def once(self) -> float:
        """Do it once, and whatever makes the next time the same; the seconds that it took."""


class Ours:
    """Sends through a mailbox. Each is followed by a revision that sets the record back to its size."""

    def __init__(self, path: str, messages: int, history: int) -> None:
        self._mailbox = BenchMailbox(path)
        self._sender, _ = team_of(self._mailbox, messages)
        self._planted = settled(messages, "ann", "ben")
        self._record = os.path.join(path, "crew", "state.json")
        self._number = 0
        for _ in range(history):
            self._mailbox.plant(self._planted)

    def once(self) -> float:
        """See :class:`Contestant`."""
        self._number += 1
        subject, body = f"message {self._number}", text(self._number)
        start = time.perf_counter()
        self._mailbox.send(self._sender, "ben", kind="note", subject=subject, body=body)
        taken = time.perf_counter() - start
        self._mailbox.plant(self._planted)
        return taken

    @property
    def record_bytes(self) -> int:
        """The size of the record."""
        return os.path.getsize(self._record)

    def close(self) -> None:
        """Let go of the team."""
        self._mailbox.close()


class Sqlite:
    """Commits of one blob of the record's size, WAL and synchronous=FULL.

    Each blob is another: SQLite leaves a page alone whose bytes do not change.
    """

    def __init__(self, path: str, size: int) -> None:
        self._random = random.Random(size)
        self._size = size
        self._base = sqlite3.connect(path, isolation_level=None)
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "fullfsync=1", "checkpoint_fullfsync=1"):
            self._base.execute(f"PRAGMA {pragma}")
        self._base.execute("CREATE TABLE record (id INTEGER PRIMARY KEY, data BLOB NOT NULL)")
        self._base.execute("INSERT INTO record VALUES (1, ?)", (self._random.randbytes(size),))

    def once(self) -> float:
        """See :class:`Contestant`."""
        data = self._random.randbytes(self._size)
        start = time.perf_counter()
        self._base.execute("UPDATE record SET data = ? WHERE id = 1", (data,))
        return time.perf_counter() - start

    def close(self) -> None:
        """Close the data base."""
        self._base.close()


@attrs.frozen
class Trio:
    """The three contestants at one size, and what each of them took, send by send and round by round."""

    size: int
    ours: Ours
    floor: Floor
    sqlite: Sqlite
    times: dict[str, list[list[float]]] = attrs.field(factory=lambda: {"ours": [], "floor": [], "sqlite": []})

    def round(self, scale: Scale, turn: int) -> None:
        """One round: blocks of the three in turns, A B C, B C A, …, so that nobody always follows another."""
        contestants: list[tuple[str, Contestant]] = [
            ("ours", self.ours),
            ("floor", self.floor),
            ("sqlite", self.sqlite),
        ]
        taken: dict[str, list[float]] = {name: [] for name, _ in contestants}
        for block in range(-(-scale.sends // scale.block)):
            first = (turn + block) % len(contestants)
            for name, contestant in contestants[first:] + contestants[:first]:
                taken[name] += [contestant.once() for _ in range(scale.block)]
        for name, times in taken.items():
            self.times[name].append(times)

    def rates(self, name: str) -> list[float]:
        """Sends per second, round by round."""
        return [len(times) / sum(times) for times in self.times[name]]

    def medians(self, name: str) -> list[float]:
        """The median seconds of a send, round by round."""
        return [statistics.median(times) for times in self.times[name]]

    def ratios(self, other: str) -> list[float]:
        """Our rate as a part of another's, round by round."""
        return [ours / rate for ours, rate in zip(self.rates("ours"), self.rates(other), strict=True)]


@contextlib.contextmanager
def _contestants(path: str, scale: Scale) -> Iterator[list[Trio]]:
    with contextlib.ExitStack() as opened:
        trios = []
        for size in scale.sizes:
            ours = Ours(os.path.join(path, f"ours-{size}"), size, scale.history)
            opened.callback(ours.close)
            base = Sqlite(os.path.join(path, f"sqlite-{size}.db"), ours.record_bytes)
            opened.callback(base.close)
            floor = Floor(os.path.join(path, f"floor-{size}"), size, scale.sends, scale.history)
            trios.append(Trio(size, ours, floor, base))
        # The apparatus itself is not what a process that sends has in memory.
        gc.collect()
        gc.freeze()
        try:
            yield trios
        finally:
            gc.unfreeze()


def measure(path: str, scale: Scale) -> list[Figure]:
    """Rates, ratios and growth, the sizes and the contestants interleaved."""
    with _contestants(path, scale) as trios:
        for turn in range(scale.rounds):
            for trio in trios:
                trio.round(scale, turn)
        return [figure for trio in trios for figure in _figures(trio)] + _growth(trios)


def floor_source(path: str, messages: int) -> str:
    """The system calls of a send, as the floor makes them."""
    return Floor(os.path.join(path, "floor"), messages, period=2, history=3).example.source


def _figures(trio: Trio) -> Iterator[Figure]:
    where = f"{trio.size} messages ({trio.ours.record_bytes / 1e3:.0f} kB)"
    yield Figure.median(SECTION, f"{where}: sends", trio.rates("ours"), "/s")
    yield Figure.median(SECTION, f"{where}: the floor", trio.rates("floor"), "/s")
    yield Figure.median(SECTION, f"{where}: SQLite, WAL, FULL", trio.rates("sqlite"), "/s")
    yield Figure.median(
        SECTION, f"{where}: ratio to the floor", trio.ratios("floor"), at_least=_OF_FLOOR.get(trio.size)
    )
    yield Figure.median(SECTION, f"{where}: ratio to SQLite", trio.ratios("sqlite"), at_least=_OF_SQLITE)


def _growth(trios: Sequence[Trio]) -> list[Figure]:
    small, large = trios[0], trios[-1]
    span = large.size - small.size

    def slopes(name: str) -> list[float]:
        pairs = zip(small.medians(name), large.medians(name), strict=True)
        return [(after - before) / span * 1e6 for before, after in pairs]

    label = f"time per send and message, {small.size} to {large.size}"
    return [
        Figure.median("growth", label, slopes("ours"), "µs", below=_GROWTH),
        Figure.median("growth", f"{label}: the floor", slopes("floor"), "µs"),
    ]

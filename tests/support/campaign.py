"""The crash matrix as a whole: which cells there are, who carries them out, and what came of it."""

from __future__ import annotations

import atexit
import errno
import functools
import itertools
import json
import os
import queue
import random
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

import recipes
from interposition import REFUSALS
from tapped import WRITES, Plan, Point
from trials import CHANGING

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from grounds import Kind

Pair = tuple[str, "Kind"]
STOPS: Final = 200
"""Stops of an ordinary run: one of each operation and kind of teams, the others drawn from all."""
KILLS: Final = 600
"""Kills of an ordinary soak."""
BETWEEN: Final = 100
"""Kills between a link and its rename, at least, in a full soak."""
FULL_KILLS: Final = 10_000


class Workers:
    """Processes that carry out cells, see `cell_worker.py`.

    Args:
        count: how many side by side.
        directory: where; in memory where it is empty.
    """

    def __init__(self, count: int, directory: str = "") -> None:
        self.count = count
        self._directory = directory
        self._idle: queue.SimpleQueue[subprocess.Popen[str]] = queue.SimpleQueue()
        self._all = [self._start() for _ in range(count)]

    def _start(self) -> subprocess.Popen[str]:
        program = str(Path(__file__).with_name("cell_worker.py"))
        started = subprocess.Popen(
            [sys.executable, program, self._directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._idle.put(started)
        return started

    def close(self) -> None:
        """End them."""
        for worker in self._all:
            worker.communicate()

    def ask(self, order: dict[str, Any]) -> dict[str, Any]:
        """Have one thing done."""
        worker = self._idle.get()
        try:
            assert worker.stdin is not None
            assert worker.stdout is not None
            print(json.dumps(order), file=worker.stdin, flush=True)
            line = worker.stdout.readline()
            assert line, f"a worker died of {order}"
            told: dict[str, Any] = json.loads(line)
            return told
        finally:
            self._idle.put(worker)

    def all(self, orders: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Have all of them done, side by side; each with its answer."""
        with ThreadPoolExecutor(self.count) as pool:
            yield from zip(orders, pool.map(self.ask, orders), strict=True)

    def processor(self) -> float:
        """Seconds of processor time that they and their children have spent."""
        held = [self._idle.get() for _ in self._all]  # so that each is asked once
        for worker in held:
            self._idle.put(worker)
        return float(sum(self.ask({"do": "processor"})["seconds"] for _ in held))

    @functools.cache  # noqa: B019 - they live as long as the run
    def points(self, name: str, kind: Kind) -> tuple[Point, ...]:
        """The system calls of an operation."""
        told = self.ask({"do": "points", "name": name, "kind": kind})
        assert "points" in told, f"{name} on {kind} teams: {told}"
        return tuple(Point(*point) for point in told["points"])


@functools.cache
def shared() -> Workers:
    """The workers of this run of the tests: one where others run tests beside, else one a core."""
    workers = Workers(1 if "PYTEST_XDIST_WORKER" in os.environ else os.cpu_count() or 1)
    atexit.register(workers.close)
    return workers


@attrs.define
class Report:
    """What a part of the matrix came to.

    Attributes:
        part: which.
        cells: carried out.
        of: cells that there are.
        how: how many of each kind of harm.
        steps: in which step of the protocol (see :mod:`steps`).
        told: how the operations ended that ended.
        failures: what went wrong, each with its cell.
        seconds: that it took.
        processor: seconds of processor time that it took, of all processes together.
    """

    part: str
    cells: int = 0
    of: int = 0
    how: Counter[str] = attrs.field(factory=Counter)
    steps: Counter[str] = attrs.field(factory=Counter)
    told: Counter[str] = attrs.field(factory=Counter)
    failures: list[str] = attrs.field(factory=list)
    seconds: float = 0.0
    processor: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """The report as JSON carries it."""
        return attrs.asdict(self)


def _order(pair: Pair, plan: Plan, broken: tuple[str, str] = ("", "")) -> dict[str, Any]:
    return {"do": "cell", "name": pair[0], "kind": pair[1], "plan": attrs.asdict(plan), "broken": broken}


def _carry_out(workers: Workers, part: str, orders: Sequence[dict[str, Any]], of: int) -> Report:
    began, spent = time.monotonic(), workers.processor()
    report = Report(part, of=of)
    for order, told in workers.all(orders):
        plan = order["plan"]
        point = workers.points(order["name"], order["kind"])[plan["nth"] - 1]
        code = f" {errno.errorcode[plan['code']]}" if plan["how"] == "fail" else ""
        report.cells += 1
        report.how[plan["how"] + code] += 1
        report.steps[point.step] += 1
        if "failed" in told:
            what = f"{plan['how']}{code} {plan['when']} call {plan['nth']} ({point})"
            report.failures.append(f"{order['name']} on {order['kind']} teams: {what}: {told['failed']}")
        elif plan["how"] != "kill":
            report.told[told["code"] or "done"] += 1
    report.seconds, report.processor = time.monotonic() - began, workers.processor() - spent
    return report


# --- the parts ------------------------------------------------------------------------------------


def kills(workers: Workers, pairs: Iterable[Pair], *, full: bool = False) -> Report:
    """SIGKILL before each call, and when the last has taken effect; with `full`, after each one.

    What is on the disk after a call is what is there before the next one.
    """
    orders = []
    for pair in pairs:
        points = workers.points(*pair)
        for nth, point in enumerate(points, 1):
            orders.append(_order(pair, Plan("kill", nth)))
            if point.source == "port" and (full or nth == len(points)):
                orders.append(_order(pair, Plan("kill", nth, "after")))
    return _carry_out(workers, "kills", orders, len(orders))


def stops(workers: Workers, pairs: Iterable[Pair], *, seed: str, most: int | None = STOPS) -> Report:
    """SIGSTOP before each call, or before `most` of them that the seed draws; see :mod:`cells`."""
    drawn = random.Random(f"stops {seed}")
    chosen: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    for name, kind in dict.fromkeys(map(_with_history, pairs)):
        numbers = range(1, len(workers.points(name, kind)) + 1)
        orders = [_order((name, kind), Plan("stop", nth)) for nth in numbers]
        chosen.append(orders.pop(drawn.randrange(len(orders))))
        others += orders
    of = len(chosen) + len(others)
    left = len(others) if most is None else max(0, min(len(others), most - len(chosen)))
    return _carry_out(workers, "stops", [*chosen, *drawn.sample(others, left)], of)


def _with_history(pair: Pair) -> Pair:
    """Teams whose history is so long that it is pruned, and the victim's slot used again, while it sleeps."""
    name, kind = pair
    return (name, "long") if kind == "plain" and recipes.recipe(name).team == "crew" else pair


def errors(workers: Workers, pairs: Iterable[Pair], *, every: Container[Pair] = ()) -> Report:
    """Each call refused, before and after its effect, with one errno after the other.

    Writes also take a part of their data, that and then nothing more, or nothing.

    Args:
        workers: who does it.
        pairs: the operations and teams.
        every: those of them where each call is refused with each errno.
    """
    codes = itertools.cycle(REFUSALS)
    orders = []
    of = 0
    for pair in pairs:
        for nth, point in enumerate(workers.points(*pair), 1):
            if point.error:
                continue
            takes_effect = point.source == "port" and point.method in CHANGING
            for when in ("before", "after") if takes_effect else ("before",):
                of += len(REFUSALS)
                chosen = REFUSALS if pair in every else (next(codes),)
                orders += [_order(pair, Plan("fail", nth, when, code)) for code in chosen]
            if point.method == "write":
                of += len(WRITES)
                orders += [_order(pair, Plan(how, nth)) for how in WRITES]
    return _carry_out(workers, "errors", orders, of)


def control(workers: Workers, pair: Pair, plan: Plan, broken: tuple[str, str]) -> str:
    """Carry out one cell without a rule, of the victim's or of whoever comes after it; what was noticed."""
    told = workers.ask(_order(pair, plan, broken))
    return str(told.get("failed", ""))


def soak(workers: Workers, *, seed: str, number: int = KILLS) -> dict[str, Any]:
    """Random kills, see :mod:`soak`."""
    began, spent = time.monotonic(), workers.processor()
    shares = [number // workers.count + (each < number % workers.count) for each in range(workers.count)]
    orders = [
        {"do": "soak", "options": {"kills": share, "seed": f"{seed}-{each}"}}
        for each, share in enumerate(shares)
    ]
    total: dict[str, Any] = {"part": "soak", "failures": []}
    for _, told in workers.all(orders):
        if "failed" in told:
            total["failures"].append(told["failed"])
            continue
        for key, value in told.items():
            if isinstance(value, dict):
                total[key] = dict(Counter(total.get(key, {})) + Counter(value))
            else:
                total[key] = total.get(key, type(value)()) + value
    if number >= FULL_KILLS and total["linked"] < BETWEEN:
        total["failures"].append(f"only {total['linked']} kills between a link and its rename")
    return total | {"seconds": time.monotonic() - began, "processor": workers.processor() - spent}

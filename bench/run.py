"""Measure pi-team on one file system, in one run, and print each figure beside its target (bench/README.md).

It reports and is no gate: the exit status is 0 unless it could not measure.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from typing import TYPE_CHECKING

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)  # started as a script, only bench/ itself is on the path

import attrs  # noqa: E402 - the path first

from bench import exchange, footprint, machine, sends  # noqa: E402 - as above
from bench.machine import FileSystemFacts, Unmeasurable  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from bench.figures import Figure

README = os.path.join(ROOT, "bench", "README.md")
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


@attrs.frozen
class Effort:
    """How much is measured.

    Attributes:
        scale: of the sends.
        runs: of the contention.
        contenders: processes, and sends of each.
        deliveries: messages on their way to another process.
        looks: snapshots.
        rest: seconds that a worker waits before and after a request.
        starts: of each command.
        large: messages in the record where one size is enough.
    """

    scale: sends.Scale
    runs: int
    contenders: tuple[int, int]
    deliveries: int
    looks: int
    rest: float
    starts: int
    large: int = 400


FULL = Effort(sends.Scale((10, 100, 400), rounds=15), 5, (8, 25), 200, 5_000, 5.0, 20)
QUICK = Effort(sends.Scale((10, 100, 400), rounds=3), 1, (8, 25), 50, 1_000, 2.5, 5)
SMOKE = Effort(sends.Scale((3, 6), rounds=1, sends=2, block=1, history=2), 1, (2, 2), 2, 5, 0.1, 1, large=3)
"""Shows that everything runs; its figures mean nothing."""


def benchmarks(effort: Effort) -> Mapping[str, Callable[[str], list[Figure]]]:
    """What there is to measure, by name; each is given a directory of its own."""
    processes, each = effort.contenders
    return {
        "sends": lambda path: sends.measure(path, effort.scale),
        "contention": lambda path: exchange.contend(path, processes=processes, sends=each, runs=effort.runs),
        "snapshot": lambda path: footprint.look(
            os.path.join(path, "teams"), messages=effort.large, looks=effort.looks
        ),
        "delivery": lambda path: exchange.deliver(
            os.path.join(path, "teams"), messages=0, sends=effort.deliveries
        ),
        "memory": lambda path: footprint.remember(
            os.path.join(path, "teams"), messages=effort.large, seconds=effort.rest
        ),
        "start": lambda path: footprint.begin(path, times=effort.starts),
    }


def measured(names: Sequence[str], effort: Effort, path: str) -> Iterator[Figure]:
    """The figures of the named benchmarks, as they come."""
    known = benchmarks(effort)
    for name in names:
        directory = os.path.join(path, name)
        os.mkdir(directory, 0o700)
        yield from known[name](directory)
        shutil.rmtree(directory)


def report(facts: FileSystemFacts, figures: Iterator[Figure]) -> Iterator[str]:
    """The lines of a run, as they come."""
    yield from machine.describe()
    yield from facts.lines()
    section = ""
    for figure in figures:
        if figure.section != section:
            section = figure.section
            yield ""
            yield section
        yield f"  {figure}"


def as_json(facts: FileSystemFacts, figures: Iterator[Figure]) -> str:
    """A run as one object."""
    return json.dumps(
        {
            "machine": machine.describe(),
            "file_system": attrs.asdict(facts),
            "figures": [attrs.asdict(figure) | {"met": figure.met} for figure in figures],
        },
        indent=1,
        ensure_ascii=False,
    )


def with_block(text: str, block: str, marks: tuple[str, str] = (BEGIN, END)) -> str:
    """A text with another block between the two marks. Raises Unmeasurable where it has no marks."""
    begin, end = marks
    marked = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not marked.search(text):
        raise Unmeasurable(f"{README} has no block between {begin} and {end}")
    return marked.sub(lambda _: f"{begin}\n\n```text\n{block}\n```\n\n{end}", text)


def _parser() -> argparse.ArgumentParser:
    names = list(benchmarks(FULL))
    parser = argparse.ArgumentParser(prog="python bench/run.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats: a minute instead of several")
    parser.add_argument("--smoke", action="store_true", help="only show that everything runs, anywhere")
    parser.add_argument("--only", action="append", choices=names, help="one benchmark; may be repeated")
    parser.add_argument("--dir", default=None, help="a directory on the file system to measure")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    parser.add_argument("--write", action="store_true", help="put the run into bench/README.md as well")
    parser.add_argument("--show-floor", action="store_true", help="print the floor's system calls and end")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run the benchmarks that were asked for; the exit status."""
    asked = _parser().parse_args(words)
    effort = SMOKE if asked.smoke else QUICK if asked.quick else FULL
    names = asked.only or list(benchmarks(effort))
    where = os.path.abspath(asked.dir or os.path.join(ROOT, "bench"))
    try:
        with tempfile.TemporaryDirectory(prefix=".run-", dir=where) as path:
            if asked.show_floor:
                print(sends.floor_source(path, messages=10), end="")
                return 0
            facts = machine.examine(path, any_file_system=asked.smoke)
            figures = measured(names, effort, path)
            if asked.json:
                print(as_json(facts, figures))
                return 0
            command = " ".join(["python bench/run.py", *(sys.argv[1:] if words is None else words)])
            lines = [f"$ {command}", ""]
            print("\n".join(lines))
            for line in report(facts, figures):
                print(line, flush=True)
                lines.append(line)
            if asked.write:
                write("\n".join(lines))
    except (Unmeasurable, OSError) as error:
        print(f"cannot measure: {error}", file=sys.stderr)
        return 1
    return 0


def write(block: str, marks: tuple[str, str] = (BEGIN, END)) -> None:
    """Put a run into the README, between these marks. Raises Unmeasurable where it has none."""
    with open(README, encoding="utf-8") as file:
        text = with_block(file.read(), block, marks)
    with open(README, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main())

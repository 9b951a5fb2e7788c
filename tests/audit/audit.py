"""The command: runs the rungs that are asked for, and writes what it found."""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

import climb
import ladder
import page
import report
import screen
import surroundings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from ladder import Rung


def _arguments(argv: Sequence[str], rungs: Sequence[Rung]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python tests/audit",
        description="Run the whole ladder of evidence and print what it found. Each rung checks the one "
        "below it, and each has controls: versions made wrong on purpose that must fail.",
        epilog="Rungs: " + "; ".join(f"{rung.name}: {rung.about}" for rung in rungs),
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="about three minutes on two cores (the default)")
    size.add_argument("--full", action="store_true", help="all that there is: half an hour on two cores")
    names = [rung.name for rung in rungs]
    parser.add_argument(
        "--only", action="append", choices=names, metavar="RUNG", help=f"only this one: {', '.join(names)}"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="for what is drawn: repeats a run")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="rungs side by side")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found there")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page for people there")
    parser.add_argument("--logs", type=Path, metavar="DIR", help="where the output of the rungs goes")
    options = parser.parse_args(argv)
    for path in filter(None, (options.json, options.html)):
        if not path.absolute().parent.is_dir():
            parser.error(f"there is no directory for {path}")
    return options


def main(argv: Sequence[str] | None = None, rungs: Sequence[Rung] = ladder.RUNGS) -> int:
    """Run the command; its exit status."""
    argv = sys.argv[1:] if argv is None else argv
    options = _arguments(argv, rungs)
    logs = options.logs or Path(tempfile.mkdtemp(prefix="pi-team-audit-"))
    logs.mkdir(parents=True, exist_ok=True)
    chosen = [rung for rung in rungs if options.only is None or rung.name in options.only]
    ascents = [climb.Ascent(rung, logs / f"{rung.name}.log") for rung in chosen]
    facts, began, console = surroundings.facts(), time.monotonic(), Console()
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell began it with SIGINT ignored
        signal.signal(number, _interrupt)
    with screen.watching(console, ascents) as watch:
        climb.climb(ascents, ladder.Size(options.full, options.seed), max(1, options.jobs), watch)
    found = report.Report(
        shlex.join(["python", "tests/audit", *argv]),
        "full" if options.full else "quick",
        options.seed,
        facts,
        round(time.monotonic() - began, 1),
        [report.result(ascent) for ascent in ascents],
        round(_processor(), 1),
        len(rungs) - len(chosen),
    )
    if options.json:
        options.json.write_text(json.dumps(found.as_json(), indent=2) + "\n", encoding="utf-8")
    if options.html:
        options.html.write_text(page.rendered(found), encoding="utf-8")
    screen.conclude(console, ascents, found)
    return found.status


def _processor() -> float:
    """Seconds of the processor that what was started and has ended took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """End as by Ctrl-C."""
    raise KeyboardInterrupt

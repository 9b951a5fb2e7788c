"""The command line of spec/check."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Final, TextIO

from spec.checker import table
from spec.checker.manifest import SPEC, Model, load
from spec.checker.story import tell
from spec.checker.tlc import Run, ToolMissing, locate, run, stop

_WIDTH: Final = 58
"""Of the column with the names."""
_SIGNAL_LATENCY: Final = 0.5
"""Seconds after which a signal is acted on at the latest."""


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="spec/check",
        description="Check the models of the specification with TLC and compare them with "
        "spec/manifest.toml. Exits 0 only when each of them shows exactly what the manifest says.",
    )
    parser.add_argument("names", nargs="*", help="modules or models (any part of a model's name)")
    parser.add_argument("--quick", action="store_true", help="the small models (the default without names)")
    parser.add_argument("--all", action="store_true", help="every model; spec/README.md says how long")
    parser.add_argument(
        "--write",
        action="store_true",
        help="with --all: write the table into spec/README.md when all is right",
    )
    parser.add_argument("--list", action="store_true", help="list the models and what is expected of them")
    parser.add_argument(
        "--story", action="store_true", help="tell every counterexample, also an expected one"
    )
    parser.add_argument(
        "--cfg", action="store_true", help="print the TLC configurations instead of running them"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="models side by side")
    arguments = parser.parse_args(argv)
    if arguments.write and not arguments.all:
        parser.error("--write is for a run of --all")
    return arguments


def select(models: list[Model], arguments: argparse.Namespace) -> list[Model]:
    """The models that the command line asks for, in the order of the manifest."""
    if arguments.all:
        return models
    names: list[str] = arguments.names
    if names:
        return [
            model for model in models if any(name == model.module or name in model.name for name in names)
        ]
    return [model for model in models if model.quick]


def agrees(model: Model, found: Run) -> bool:
    """Whether a run shows exactly what the manifest says."""
    if found.error is not None or found.violated != model.fails:
        return False
    return model.states is None or found.states == model.states


def _row(model: Model, found: Run) -> str:
    mark = "ok" if agrees(model, found) else "WRONG"
    return (
        f"{mark:<6}{model.name:<{_WIDTH}}{model.expected:<30}{table.found(found):<30}"
        f"{found.states:>10,}{found.depth:>6}{found.seconds:>8.1f}"
    )


def _explain(model: Model, found: Run, out: TextIO) -> None:
    """Say what is wrong with a run, or tell its counterexample."""
    if found.error is not None:
        print(found.error, file=out)
    elif found.violated is None and model.fails is None and found.states != model.states:
        print(f"       expected {model.states} distinct states, found {found.states}", file=out)
    for line in tell(model.module, found) if found.violated else ():
        print(f"       {line}", file=out)


def check(models: list[Model], *, jobs: int, story: bool, out: TextIO) -> dict[str, Run]:
    """Run the models side by side, the large ones first, and print a table.

    Returns:
        What was found, by the name of the model.
    """
    print(
        f"{'':<6}{'model':<{_WIDTH}}{'expected':<30}{'found':<30}{'distinct':>10}{'depth':>6}{'seconds':>8}",
        file=out,
    )
    all_found: dict[str, Run] = {}
    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        runs: dict[Future[Run], Model] = {}
        try:
            for model in sorted(models, key=lambda model: -(model.states or 0)):
                runs[pool.submit(run, model)] = model
            pending = set(runs)
            while pending:
                # A signal that comes just before the wait is acted on only after it: so it has an end.
                done, pending = wait(pending, _SIGNAL_LATENCY, FIRST_COMPLETED)
                for future in done:
                    model, found = runs[future], future.result()
                    all_found[model.name] = found
                    print(_row(model, found), file=out, flush=True)
                    if story or not agrees(model, found):
                        _explain(model, found, out)
        except BaseException:  # Ctrl-C, SIGTERM, a closed pipe: nothing goes on behind a command that ended
            pool.shutdown(wait=False, cancel_futures=True)
            stop()
            raise
    return all_found


def main(argv: list[str]) -> int:
    """Run the command.

    Returns:
        0 when all is as the manifest says, 1 when not, 2 for wrong usage or a missing tool, 130 after Ctrl-C.
    """
    arguments = _arguments(argv)
    models = select(load(), arguments)
    if not models:
        print("no such model; --list shows them", file=sys.stderr)
        return 2
    if arguments.list or arguments.cfg:
        for model in models:
            if arguments.list:
                print(f"{model.name:<{_WIDTH}}{model.expected:<40}{model.about}")
            else:
                print(f"\\* {model.name}: {model.module}.tla\n{model.config.text()}")
        return 0
    try:
        locate()
    except ToolMissing as missing:
        print(missing, file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    started = time.monotonic()
    try:
        runs = check(models, jobs=arguments.jobs, story=arguments.story, out=sys.stdout)
    except KeyboardInterrupt:
        return 130
    seconds = time.monotonic() - started
    pairs = [(model, runs[model.name]) for model in models]
    right = sum(agrees(*pair) for pair in pairs)
    cpu = sum(found.cpu for found in runs.values())
    print(f"{right} of {len(models)} models as the manifest says, {seconds:.0f} s, {cpu:.0f} CPU seconds")
    if right < len(models):
        return 1
    if arguments.write:
        text = table.render(pairs, seconds=seconds, jobs=arguments.jobs, cores=os.cpu_count() or 1)
        table.replace(SPEC / "README.md", text)
    return 0

"""Explore and print what was explored: `python tests/explore/run.py [--full] [--json] [--control NAME]`.

The exit status is 1 where an invariant is broken, or a control is not caught as it has to be.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "support"), os.path.join(HERE, os.pardir, os.pardir)]

import configurations  # noqa: E402 - the line above puts it on the path
import controls  # noqa: E402
import further_controls  # noqa: E402
import replay  # noqa: E402
import scenarios  # noqa: E402
from explorer import Explorer, Report  # noqa: E402

if TYPE_CHECKING:
    from controls import Catch
    from system import Scenario

_COLUMNS = (
    ("configuration", "<30"),
    ("bound", ">6"),
    ("schedules", ">12,"),
    ("states", ">9,"),
    ("pruned", ">9,"),
    ("crash points", ">13,"),
    ("power-cut states", ">17,"),
    ("code runs", ">10,"),
    ("seconds", ">8.1f"),
    ("verdict", "<12"),
)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; its exit status."""
    parser = argparse.ArgumentParser(description="Explore all schedules of the publication code.")
    parser.add_argument("--full", action="store_true", help="the larger bounds too (some minutes)")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument(
        "--writers",
        nargs=3,
        type=_number,
        metavar=("COUNT", "WRITES", "BOUND"),
        help="only that many writers, with so many writes each, up to that many preemptions, or `all`",
    )
    parser.add_argument("--control", metavar="NAME", help="only this control, or `all`; a list with `list`")
    options = parser.parse_args(arguments)
    every = controls.CONTROLS + further_controls.CONTROLS
    names = [control.name for control in every]
    if options.control == "list":
        print("\n".join(names))
        return 0
    if options.control not in (None, "all", *names):
        parser.error(f"no control {options.control}; there are {', '.join(names)}")
    failed = False
    if options.writers is not None:
        count, writes, bound = options.writers
        if count is None or writes is None:
            parser.error("only BOUND may be `all`")
        return int(_explore((scenarios.writers(count, writes, bound=bound),), as_json=options.json))
    if options.control is None:
        wanted = configurations.ORDINARY + (configurations.THOROUGH if options.full else ())
        failed = _explore(wanted, as_json=options.json)
    chosen = [control for control in every if options.control in (None, "all", control.name)]
    return int(_control(chosen, as_json=options.json, stories=options.control is not None) or failed)


def _number(word: str) -> int | None:
    if word == "all":
        return None
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"{word!r} is neither a number nor `all`")
    return int(word)


def _explore(wanted: tuple[Scenario, ...], *, as_json: bool) -> bool:
    if not as_json:
        print("  ".join(f"{name:{spec.rstrip(',f').split('.')[0]}}" for name, spec in _COLUMNS))
    failed = False
    for scenario in wanted:
        report = Explorer(scenario).run()
        row = _row(scenario, report)
        if as_json:
            print(json.dumps(row), flush=True)
        else:
            print("  ".join(f"{row[name]:{spec}}" for name, spec in _COLUMNS), flush=True)
        if report.found is not None:
            failed = True
            _tell(scenario, report)
    return failed


def _row(scenario: Scenario, report: Report) -> dict[str, Any]:
    return {
        "configuration": scenario.name,
        "bound": "all" if scenario.bound is None else str(scenario.bound),
        "schedules": report.schedules,
        "states": report.states,
        "pruned": report.pruned,
        "crash points": report.crash_points,
        "power-cut states": report.cut_states,
        "code runs": report.runs,
        "seconds": round(report.seconds, 1),
        "verdict": report.found.invariant if report.found else "holds",
    }


def _tell(scenario: Scenario, report: Report) -> None:
    found = report.found
    assert found is not None
    short = replay.shrunk(scenario, found)
    print(f"\n{short.text}\n\nreplay(scenario, [", file=sys.stderr)
    for line in replay.story(scenario, short):
        print(f"    {json.dumps(line)},", file=sys.stderr)
    print("])\n", file=sys.stderr)


def _control(chosen: list[controls.Control], *, as_json: bool, stories: bool) -> bool:
    if not as_json:
        print(f"\n{'control':<21}{'without':<60}{'caught after':>17}  {'by':<10}{'loses nothing':<15}verdict")
    failed = False
    for control in chosen:
        catch = controls.run(control)
        failed = failed or bool(catch.fault)
        if as_json:
            print(json.dumps(_catch(catch)), flush=True)
        else:
            row = _catch(catch)
            print(
                f"{control.name:<21}{control.rule:<60}{row['schedules']:>7,} schedules  {row['by']:<10}"
                f"{row['loses nothing']:<15}{row['verdict']}",
                flush=True,
            )
        if stories and catch.report.found is not None:
            with control.dropped():
                _tell(control.scenario(), catch.report)
    return failed


def _catch(catch: Catch) -> dict[str, Any]:
    report, lossless = catch.report, catch.lossless
    return {
        "control": catch.control.name,
        "schedules": report.begun,
        "states": report.states,
        "by": report.found.invariant if report.found else "-",
        "loses nothing": "" if lossless is None else "passes" if lossless.found is None else "fails",
        "verdict": catch.fault or "caught",
    }


if __name__ == "__main__":
    sys.exit(main())

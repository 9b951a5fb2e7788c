"""Drive the processes from the command line: `python tests/stateful/drive.py [--full] [--json] [--seed N]`.

The exit status is 1 where a promise is broken, a control is not caught as it has to be, or something that has
to happen to be able to say anything did not. By itself it is the same run each time; a seed makes another
one, and the same seed the same choices.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from hypothesis import seed as seeded
from hypothesis import settings
from hypothesis.errors import Flaky

HERE: Final = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "support"), os.path.join(HERE, os.pardir, os.pardir)]

import dropped  # noqa: E402 - the line above puts it on the path
import machine  # noqa: E402
from possible import Violation  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

FULL: Final = 150
"""Examples of a full run: about ten minutes."""
ROUNDS: Final = 4
"""Times as many examples, at most, until everything has happened that has to."""
_REPEATABLE: Final[dict[str, Any]] = {"database": None, "report_multiple_bugs": False}
_CONTROLS: Final = {control.rule: control for control in dropped.CONTROLS}


class Reported(Counter[str]):
    """Counts, and says after each example how many there were."""

    def __init__(self, report: Callable[[int], None]) -> None:
        super().__init__()
        self._report = report

    def __setitem__(self, what: str, count: int) -> None:
        super().__setitem__(what, count)
        if what == "examples":
            self._report(count)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; its exit status."""
    parser = argparse.ArgumentParser(description="Let Hypothesis drive real processes against a model.")
    parser.add_argument("--full", action="store_true", help=f"{FULL} examples instead of 50, each longer")
    parser.add_argument("--examples", type=int, metavar="N", help="that many examples")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--seed", type=int, metavar="N", help="other examples; the same ones for the same N")
    parser.add_argument("--control", metavar="RULE", help="only this control, `all` or `none`")
    options = parser.parse_args(arguments)
    if options.control not in (None, "all", "none", *_CONTROLS):
        parser.error(f"no control {options.control}; there are {', '.join(_CONTROLS)}")
    failed = False
    if options.control in (None, "none"):
        # What is rare may be missing from a few drawn examples; those that nobody draws lack nothing.
        rounds = ROUNDS if options.seed is not None and options.examples is None else 1
        failed = _drive(_profile(options), options.seed, rounds, as_json=options.json)
    if options.control != "none":
        for rule, control in _CONTROLS.items():
            if options.control in (None, "all", rule):
                failed = _catch(control, as_json=options.json) or failed
    return int(failed)


def _profile(options: argparse.Namespace) -> settings:
    """A profile that repeats itself, or follows the seed, and remembers nothing of other runs."""
    base = machine.NIGHT if options.full else machine.CI
    examples = options.examples or (FULL if options.full else machine.CI.max_examples)
    return settings(base, max_examples=examples, derandomize=options.seed is None, **_REPEATABLE)


def _drive(profile: settings, seed: int | None, rounds: int, *, as_json: bool) -> bool:
    def report(count: int) -> None:
        if as_json and count <= profile.max_examples:  # more are run to shorten what was found
            _say(progress=count, of=profile.max_examples)

    happened = Reported(report)
    chosen = machine.chosen(happened)
    began, violation = time.monotonic(), ""
    try:
        for nth in range(rounds):
            machine.run(chosen if seed is None else seeded(f"{seed}-{nth}")(chosen), profile)
            if all(happened[what] for what in machine.NEEDED):
                break
    except (Violation, Flaky) as broken:
        # A race that is lost once need not be lost when it is run again; it was lost all the same.
        violation = str(chosen.found[0] if chosen.found else broken)
        print("\n".join([violation, *getattr(broken, "__notes__", [])]), file=sys.stderr, flush=True)
    lacking = [what for what in machine.NEEDED if not happened[what]]
    verdict = "broken" if violation else f"never: {', '.join(lacking)}" if lacking else "holds"
    row: dict[str, Any] = {"run": "processes", "verdict": verdict, "happened": dict(sorted(happened.items()))}
    row["seconds"] = round(time.monotonic() - began, 1)
    if as_json:
        _say(**row)
    else:
        print("; ".join(f"{what}: {count:,}" for what, count in row["happened"].items()))
        print(f"{verdict}, in {row['seconds']:.1f} s", flush=True)
    return verdict != "holds"


def _catch(control: dropped.Control, *, as_json: bool) -> bool:
    caught = dropped.catch(control)
    by = caught.found.invariant if caught.found is not None else "-"
    verdict = caught.fault or "caught"
    if as_json:
        _say(control=control.rule, by=by, steps=caught.steps, verdict=verdict)
    else:
        print(f"without {control.rule:<50} {by:<12} after {caught.steps:>5,} steps  {verdict}", flush=True)
    return bool(caught.fault)


def _say(**row: Any) -> None:
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    sys.exit(main())

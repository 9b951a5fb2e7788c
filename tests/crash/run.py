"""Carry out the crash matrix, inject errors and soak, and print what came of it.

`python tests/crash/run.py [PART …] [--full] [--json] [--output FILE] [--seed N] [--directory DIR]`, the parts
being `matrix`, `errors` and `soak`. The exit status is 1 where anything failed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, os.pardir, "support"), os.path.join(HERE, os.pardir, os.pardir)]

import campaign  # noqa: E402 - the line above puts it on the path
import recipes  # noqa: E402
from pi_team.mailbox import Mailbox  # noqa: E402
from steps import STEPS  # noqa: E402

PARTS = ("matrix", "errors", "soak")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; its exit status."""
    parser = argparse.ArgumentParser(description="Kill, stop and refuse at each system call.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--full", action="store_true", help="every cell, and 10,000 random kills")
    parser.add_argument("--json", action="store_true", help="print one JSON object a part and nothing else")
    parser.add_argument("--output", metavar="FILE", help="write a JSON object of all parts to a file too")
    parser.add_argument("--seed", default="1", help="of what is drawn")
    parser.add_argument("--directory", default="", help="where, to try a file system; by default in memory")
    options = parser.parse_args(arguments)
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    reports = []
    workers = campaign.Workers(os.cpu_count() or 1, options.directory)
    for report in _run(workers, options.parts or list(PARTS), options.seed, full=options.full):
        print(json.dumps(report) if options.json else _text(report), flush=True)
        reports.append(report)
    workers.close()
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump({"seed": options.seed, "full": options.full, "parts": reports}, file, indent=1)
    return int(any(report["failures"] for report in reports))


def _run(workers: campaign.Workers, parts: list[str], seed: str, *, full: bool) -> Any:
    """The reports, one after the other."""
    pairs = recipes.pairs(full=full)
    if "matrix" in parts:
        missing = sorted(recipes.missing(Mailbox))
        yield {
            "part": "operations",
            "operations": len(recipes.public_methods(Mailbox)),
            "pairs": len(pairs),
            "calls": sum(len(workers.points(*pair)) for pair in pairs),
            "failures": [f"no recipe for {name}" for name in missing],
        }
        yield campaign.kills(workers, pairs, full=full).to_json()
        most = None if full else campaign.STOPS
        yield campaign.stops(workers, pairs, seed=seed, most=most).to_json() | {"seed": seed}
    if "errors" in parts:
        # Every error there is on the teams of an ordinary run: on all of them, it would take an hour.
        yield campaign.errors(workers, pairs, every=recipes.pairs() if full else ()).to_json()
    if "soak" in parts:
        number = campaign.FULL_KILLS if full else campaign.KILLS
        yield campaign.soak(workers, seed=seed, number=number) | {"seed": seed}


def _text(report: dict[str, Any]) -> str:
    """A report for a person."""
    lines = [report["part"]]
    for key, value in report.items():
        if isinstance(value, dict):
            order = sorted(value, key=STEPS.index) if key == "steps" else sorted(value)
            lines.append(f"  {key}:")
            lines += [f"    {value[each]:>8,}  {each}" for each in order]
        elif isinstance(value, list):
            lines.append(f"  {key}: {len(value)}")
            lines += [f"    {each}" for each in value]
        elif key != "part":
            lines.append(f"  {key}: {value if isinstance(value, str) else format(round(value, 1), ',')}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

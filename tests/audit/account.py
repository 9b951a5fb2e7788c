"""What a rung of the ladder has explored: numbers, controls and faults, read off what its program prints.

The programs of the rungs print one JSON object a line, except the models' checker, which prints a table.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable

Reader: TypeAlias = "Callable[[Account, str], None]"
"""Takes one line of a program's standard output into account."""


@attrs.frozen
class Row:
    """One thing that a rung looked at.

    Attributes:
        name: of a model, a configuration, a case or a control.
        found: what came of it.
        sound: whether that is what has to come of it.
        control: whether it is wrong on purpose, and was to be caught.
    """

    name: str
    found: str
    sound: bool
    control: bool = False


@attrs.define
class Account:
    """What a rung has explored so far.

    Attributes:
        explored: how much of what; in the order in which it is shown.
        rows: what was looked at.
        skipped: what was not looked at, and why.
        done: how many of `of` parts are done; 0 of 0 where that is not known.
        of: parts.
    """

    explored: Counter[str] = attrs.field(factory=Counter)
    rows: list[Row] = attrs.field(factory=list)
    skipped: list[str] = attrs.field(factory=list)
    done: int = 0
    of: int = 0

    def look(self, name: str, found: str, *, sound: bool, control: bool = False) -> None:
        """Something was looked at."""
        self.rows.append(Row(name, found, sound, control))

    def controls(self) -> tuple[int, int]:
        """How many controls were caught, and how many there were."""
        controls = [row.sound for row in self.rows if row.control]
        return sum(controls), len(controls)

    def faults(self) -> list[str]:
        """What did not come out as it has to."""
        return [f"{row.name}: {row.found}" for row in self.rows if not row.sound]


def _parsed(line: str) -> dict[str, Any] | None:
    """The JSON object of a line, or None where it is for people."""
    if not line.startswith("{"):
        return None
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def rows(read: Callable[[Account, dict[str, Any]], None]) -> Reader:
    """A reader of lines from one of objects; how far the program is, any program may say."""

    def reader(account: Account, line: str) -> None:
        row = _parsed(line)
        if row is None:
            return
        if "progress" in row:
            account.done, account.of = row["progress"], row["of"]
        else:
            read(account, row)

    return reader


_MODEL: Final = re.compile(
    r"(?P<mark>ok|WRONG) +(?P<name>.+?) *(?P<expected>holds|fails \w+) +"
    r"(?P<found>holds|fails \w+|TLC failed) +(?P<states>[\d,]+) +\d+ +[\d.]+"
)
_MODELS: Final = re.compile(r"\d+ of (\d+) models as the manifest says")


def model(account: Account, line: str) -> None:
    """A line of `spec/check`. What is expected to fail is a control, a limit or a goal."""
    if (match := _MODEL.fullmatch(line)) is not None:
        expected, found = match["expected"], match["found"]
        account.explored["models"] += 1
        account.explored["distinct states"] += int(match["states"].replace(",", ""))
        account.look(match["name"], found, sound=match["mark"] == "ok", control=expected.startswith("fails"))
        account.done += 1
    elif (total := _MODELS.match(line)) is not None and int(total[1]) != account.explored["models"]:
        account.look("the table", f"{account.explored['models']} rows for {total[1]} models", sound=False)


def _dropped(account: Account, row: dict[str, Any]) -> None:
    """A control that goes without a rule."""
    verdict = row["verdict"]
    found = f"caught by {row['by']}" if verdict == "caught" else verdict
    account.look(f"without {row['control']}", found, sound=verdict == "caught", control=True)


@rows
def exploration(account: Account, row: dict[str, Any]) -> None:
    """An object of `tests/explore/run.py`: a configuration or a control."""
    if "control" in row:
        _dropped(account, row)
    else:
        account.explored["configurations"] += 1
        for what in ("schedules", "states", "power-cut states", "crash points"):
            account.explored[what] += row[what]
        bound = "any number of" if row["bound"] == "all" else row["bound"]
        name = f"{row['configuration']}, {bound} preemptions"
        account.look(
            name, f"{row['verdict']}; {row['schedules']:,} schedules", sound=row["verdict"] == "holds"
        )


_SHOWN: Final = ("examples", "steps", "processes", "killed", "killed midway", "stopped")


@rows
def processes(account: Account, row: dict[str, Any]) -> None:
    """An object of `tests/stateful/drive.py`: the run, or a control."""
    if "control" in row:
        _dropped(account, row)
    else:
        happened = row["happened"]
        account.explored.update({what: happened[what] for what in _SHOWN if what in happened})
        account.look("processes", row["verdict"], sound=row["verdict"] == "holds")


@rows
def matrix(account: Account, row: dict[str, Any]) -> None:
    """An object of `tests/crash/run.py`: a part of the crash matrix."""
    part, failures = row["part"], row["failures"]
    if "cells" in row:  # kills, stops or errors
        account.explored[part] += row["cells"]
        account.look(part, f"{row['cells']:,} of {row['of']:,} places", sound=row["cells"] > 0)
        for step, count in sorted(row["steps"].items()):
            account.look(f"{part}, {step}", f"{count:,}", sound=True)
    else:  # the operations of the matrix, or a soak
        counts = {what: count for what, count in row.items() if isinstance(count, int)}
        account.explored.update(counts)
        account.look(part, ", ".join(f"{count:,} {what}" for what, count in counts.items()), sound=True)
    for failure in failures:
        account.look(part, failure, sound=False)


def cases(controls: str = "") -> Reader:
    """A reader of what the plugin `tally` prints: tests.

    Args:
        controls: which of them are controls, as a regular expression; "" for none.
    """

    def case(account: Account, row: dict[str, Any]) -> None:
        outcome = row["outcome"]
        account.explored["cases"] += 1
        if outcome == "skipped":
            account.skipped.append(f"{row['case']}: {row['reason']}")
            return
        control = bool(controls) and re.search(controls, row["case"]) is not None
        account.look(row["case"], outcome, sound=outcome == "passed", control=control)

    return rows(case)

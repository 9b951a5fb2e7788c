"""Controls: processes that do without one rule, and by what each has to be caught."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any, Final

import attrs
from hypothesis import Phase, settings
from hypothesis.errors import Flaky

from machine import CI, chosen, run
from possible import Violation

FIRST: Final = settings(CI, phases=[Phase.generate], report_multiple_bugs=False)
"""No longer than the run that has to find nothing, and no shorter story is looked for."""


@attrs.frozen
class Control:
    """A rule that every process does without, and what is broken then: what is seen of it first."""

    rule: str
    breaks: tuple[str, ...]
    options: dict[str, Any] = attrs.field(factory=dict)


CONTROLS: Final = (
    Control("helping", ("Unstuck",), {"patience": 0.5}),
    # In the record, or by the answer to somebody who should have been refused: the processes race.
    Control("the owner's token", ("Fenced", "Answered")),
    Control("whose claim is swept", ("SweepExact",)),
    Control("whose claim is settled", ("ClaimOwner", "Answered", "Fenced")),
    Control("interrupting what the last holder claimed", ("ClaimOwner", "Answered", "Fenced")),
)


@attrs.frozen
class Catch:
    """What came of a control: what was noticed first, if anything, and in how many steps."""

    control: Control
    found: Violation | None
    steps: int

    @property
    def fault(self) -> str:
        """Why the control is none, or ""."""
        if self.found is None:
            return "nothing was caught"
        if self.found.invariant not in self.control.breaks:
            return f"caught by {self.found.invariant} and not by {' or '.join(self.control.breaks)}"
        return ""


def catch(control: Control) -> Catch:
    """Run the machine without the rule until it notices."""
    happened: Counter[str] = Counter()
    machine = chosen(happened, broken=control.rule, **control.options)
    # A race that is lost once need not be lost when it is run again.
    with contextlib.suppress(Violation, Flaky):
        run(machine, FIRST)
    return Catch(control, machine.found[0] if machine.found else None, happened["steps"])

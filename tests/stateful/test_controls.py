"""Controls: processes that do without one rule are caught, by what the rule is there for.

Each runs no longer than the run that has to find nothing.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any

import attrs
import pytest
from hypothesis import Phase, settings
from hypothesis.errors import Flaky

from machine import CI, chosen, run
from possible import Violation

FIRST = settings(CI, phases=[Phase.generate], report_multiple_bugs=False)


@attrs.frozen
class Control:
    """A rule that every process does without, and what is broken then: what is seen of it first."""

    rule: str
    breaks: tuple[str, ...]
    options: dict[str, Any] = attrs.field(factory=dict)


CONTROLS = (
    Control("helping", ("Unstuck",), {"patience": 0.5}),
    # In the record, or by the answer to somebody who should have been refused: the processes race.
    Control("the owner's token", ("Fenced", "Answered")),
    Control("whose claim is swept", ("SweepExact",)),
    Control("whose claim is settled", ("ClaimOwner",)),
    Control("interrupting what the last holder claimed", ("ClaimOwner",)),
)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.rule)
def test_a_dropped_rule_is_noticed(control: Control) -> None:
    """The machine finds it, and by name."""
    machine = chosen(Counter(), broken=control.rule, **control.options)
    # A race that is lost once need not be lost when it is run again.
    with contextlib.suppress(Violation, Flaky):
        run(machine, FIRST)
    assert machine.found, "nothing was noticed"
    assert machine.found[0].invariant in control.breaks, machine.found[0]

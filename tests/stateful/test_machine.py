"""Real processes do as Hypothesis pleases, and every promise is kept (`machine`, `possible`, `plain`).

By itself it is the same run each time. `PI_TEAM_TESTS=long` makes it another one each time, for hours; what
fails is kept in `.hypothesis` and comes first the next time. `drive.py` is the same as a command.
"""

from __future__ import annotations

from collections import Counter

import pytest

from length import LONG
from machine import CI, NEEDED, NIGHT, SMOKE, chosen, run


def test_a_few_steps() -> None:
    """Whatever a few processes do in a few steps, nothing acknowledged is lost and nothing happens twice."""
    happened: Counter[str] = Counter()
    run(chosen(happened), SMOKE)
    assert happened["killed"]


@pytest.mark.slow
@pytest.mark.timeout(12 * 3_600 if LONG else 600)
def test_everything_that_may_happen(happened: Counter[str]) -> None:
    """The same at length; and all that may befall a process has befallen one, else the run says nothing."""
    run(chosen(happened), NIGHT if LONG else CI)
    assert [what for what in NEEDED if not happened[what]] == []


def test_a_run_in_which_nothing_happens_says_so() -> None:
    """Control: a run without kills, stops and steps of the clock lacks what a run needs."""
    happened: Counter[str] = Counter()
    run(chosen(happened, calm=True), SMOKE)
    lacking = {what for what in NEEDED if not happened[what]}
    assert {"killed midway", "killed between link and rename", "stopped", "continued"} <= lacking

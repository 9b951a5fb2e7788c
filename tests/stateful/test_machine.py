"""Real processes do as Hypothesis pleases, and every promise is kept (`machine`, `possible`, `plain`)."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from machine import NEEDED, Machine

COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}
CI = settings(max_examples=70, stateful_step_count=30, derandomize=True, database=None, **COMMON)
NIGHT = settings(max_examples=20_000, stateful_step_count=60, **COMMON)
SMOKE = settings(max_examples=5, stateful_step_count=15, derandomize=True, database=None, **COMMON)


def report(happened: Counter[str]) -> str:
    return "\n".join(f"{count:8} {what}" for what, count in sorted(happened.items()))


def run(profile: settings, **options: object) -> Counter[str]:
    class Fresh(Machine):
        pass

    Fresh.happened, Fresh.options = Counter(), dict(options)
    run_state_machine_as_test(Fresh, settings=profile)
    return Fresh.happened


def test_a_few_steps() -> None:
    """Whatever a few processes do in a few steps, nothing acknowledged is lost and nothing happens twice."""
    assert run(SMOKE)["killed"]


@pytest.mark.slow
@pytest.mark.timeout(36_000)
def test_everything_that_may_happen() -> None:
    """The same at length, and everything that may befall a process has befallen one."""
    happened = run(NIGHT if os.environ.get("PI_TEAM_STATEFUL") == "night" else CI)
    print(report(happened))
    assert [what for what in NEEDED if not happened[what]] == []

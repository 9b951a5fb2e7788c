"""The operating system's clocks."""

from __future__ import annotations

import sys
import time

import pytest

from pi_team import clocks
from pi_team.clocks import SystemClock


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ((), "CLOCK_BOOTTIME" if sys.platform == "linux" else "CLOCK_MONOTONIC_RAW"),
        (("CLOCK_BOOTTIME",), "CLOCK_MONOTONIC_RAW"),
        (("CLOCK_BOOTTIME", "CLOCK_MONOTONIC_RAW"), "CLOCK_MONOTONIC"),
    ],
)
def test_the_running_clock_counts_a_suspension(
    monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...], expected: str
) -> None:
    """A session does not notice that the lid was closed, because its clock stood still as well."""
    for name in missing:
        monkeypatch.delattr(time, name, raising=False)
    assert clocks._running_clock_id() == getattr(time, expected)


def test_the_clocks_are_the_systems() -> None:
    """A clock in other units, or one for the other."""
    clock = SystemClock()
    assert abs(clock.wall() - time.time()) < 60
    before = clock.running(), clock.monotonic()
    clock.sleep(0.01)
    assert clock.running() - before[0] >= 0.01
    assert clock.monotonic() - before[1] >= 0.01


@pytest.mark.parametrize("seconds", [0, -1])
def test_no_time_to_sleep_is_no_error(seconds: float) -> None:
    """A wait whose time is over already ends the operation with an error."""
    SystemClock().sleep(seconds)

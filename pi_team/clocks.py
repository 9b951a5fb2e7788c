"""The clocks that everything which measures time is handed, so that tests can move them.

Three clocks, because each lies in its own way: the wall clock is the only one that two processes
share and it can be set; a monotonic clock may stand still while the machine sleeps; a running clock
goes on through that sleep, and has no meaning outside this boot (docs/lifecycles.md, "Judging").
"""

from __future__ import annotations

import time
from typing import Final, Protocol


class Clock(Protocol):
    """What is asked of time; all values and durations in seconds."""

    def wall(self) -> float:
        """Seconds since 1970; jumps when somebody sets the clock."""

    def running(self) -> float:
        """Seconds from an arbitrary start; never set, and goes on while the machine is suspended."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never set, and may stand still during a suspension."""

    def sleep(self, seconds: float) -> None:
        """Return after at least that many seconds."""


def _running_clock_id() -> int:
    # Linux: CLOCK_MONOTONIC and its RAW form leave a suspension out, CLOCK_BOOTTIME counts it. macOS:
    # CLOCK_MONOTONIC_RAW counts it (mach_continuous_time), and there is no CLOCK_BOOTTIME. So BOOTTIME
    # is looked for first; a system that has neither gets the best it has.
    for name in ("CLOCK_BOOTTIME", "CLOCK_MONOTONIC_RAW"):
        clock_id = getattr(time, name, None)
        if isinstance(clock_id, int):
            return clock_id
    return time.CLOCK_MONOTONIC


_RUNNING: Final = _running_clock_id()


class SystemClock:
    """The operating system's clocks."""

    __slots__ = ()

    def wall(self) -> float:
        """Seconds since 1970, from the real-time clock."""
        return time.time()

    def running(self) -> float:
        """CLOCK_BOOTTIME on Linux, CLOCK_MONOTONIC_RAW on macOS."""
        return time.clock_gettime(_RUNNING)

    def monotonic(self) -> float:
        """CLOCK_MONOTONIC, or what the platform has for it."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleep for that many seconds of the monotonic clock; zero and below return at once."""
        if seconds > 0:
            time.sleep(seconds)

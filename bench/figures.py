"""What a benchmark prints: one figure a line, beside its target, with the spread that it was taken from."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Sequence

_LABEL_WIDTH = 58
_VALUE_WIDTH = 40
_TARGET_WIDTH = 12


@attrs.frozen
class Figure:
    """One measured number.

    Attributes:
        section: what it belongs to.
        label: what was measured.
        value: the number.
        unit: its unit; "" for a ratio or a count.
        low: the smallest of the numbers that the value is the median of; None where there is one only.
        high: the largest.
        at_least: the target, where more is better.
        below: the target, where less is better.
    """

    section: str
    label: str
    value: float
    unit: str = ""
    low: float | None = None
    high: float | None = None
    at_least: float | None = None
    below: float | None = None

    @classmethod
    def median(
        cls,
        section: str,
        label: str,
        values: Sequence[float],
        unit: str = "",
        *,
        at_least: float | None = None,
        below: float | None = None,
    ) -> Figure:
        """The median of some numbers, with the smallest and the largest of them."""
        return cls(section, label, statistics.median(values), unit, min(values), max(values), at_least, below)

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if self.at_least is not None:
            return self.value >= self.at_least
        if self.below is not None:
            return self.value < self.below
        return None

    def __str__(self) -> str:
        value = f"{number(self.value)} {self.unit}".rstrip()
        if self.low is not None and self.high is not None:
            value += f" ({number(self.low)} … {number(self.high)})"
        target, verdict = "", ""
        if self.at_least is not None:
            target = f"≥ {number(self.at_least)}"
        elif self.below is not None:
            target = f"< {number(self.below)}"
        if self.met is not None:
            verdict = "met" if self.met else "NOT MET"
        line = f"{self.label:<{_LABEL_WIDTH}} {value:<{_VALUE_WIDTH}} {target:<{_TARGET_WIDTH}} {verdict}"
        return line.rstrip()


def number(value: float) -> str:
    """A number with three significant digits and no exponent."""
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest of the values that is no smaller than `percent` % of them (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]

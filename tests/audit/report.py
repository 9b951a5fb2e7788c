"""What an audit found, as one value: for a table, for JSON and for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from climb import FAILED, HOLDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from account import Row
    from climb import Ascent


@attrs.frozen
class Result:
    """How a rung ended; as :class:`climb.Ascent`, in what does not change any longer.

    Attributes:
        explored: how much of what.
        caught, controls: how many controls were caught, of how many.
    """

    name: str
    title: str
    about: str
    verdict: str
    reason: str
    explored: Mapping[str, int]
    caught: int
    controls: int
    seconds: float
    commands: Sequence[Sequence[str]]
    log: str
    rows: Sequence[Row]

    @property
    def numbers(self) -> str:
        """What was explored, in a line."""
        return ", ".join(f"{count:,} {what}" for what, count in self.explored.items())


@attrs.frozen
class Report:
    """An audit.

    Attributes:
        command: that repeats it.
        size: "quick" or "full".
        seed: for what is drawn; None for the programs' own.
        facts: about the machine.
        seconds: by the clock.
        results: from the bottom up.
        processor: seconds of all cores together.
        others: rungs that nobody asked for.
    """

    command: str
    size: str
    seed: int | None
    facts: Mapping[str, str]
    seconds: float
    results: Sequence[Result]
    processor: float = 0.0
    others: int = 0

    @property
    def status(self) -> int:
        """The exit status: 0 where every rung was run and holds."""
        return int(any(result.verdict != HOLDS for result in self.results) or not self.results)

    @property
    def verdict(self) -> str:
        """The whole in a sentence."""
        failed = [result.title for result in self.results if result.verdict == FAILED]
        missing = [result.title for result in self.results if result.verdict not in (HOLDS, FAILED)]
        if failed:
            return f"{_listed(failed)} failed."
        if missing:
            return f"What was run holds. Not run: {_listed(missing)}."
        if self.others:
            rungs = "rungs were" if self.others > 1 else "rung was"
            return f"What was asked for holds; {self.others} {rungs} not."
        return "All rungs hold, and every control was caught."

    def as_json(self) -> dict[str, Any]:
        """A value for `json.dumps`."""
        return {**attrs.asdict(self), "status": self.status, "verdict": self.verdict}


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def result(ascent: Ascent) -> Result:
    """How a rung ended, or stands."""
    caught, controls = ascent.account.controls()
    return Result(
        ascent.rung.name,
        ascent.rung.title,
        ascent.rung.about,
        ascent.verdict,
        ascent.reason,
        dict(ascent.account.explored),
        caught,
        controls,
        round(ascent.seconds, 1),
        ascent.commands,
        str(ascent.log) if ascent.commands else "",
        tuple(ascent.account.rows),
    )

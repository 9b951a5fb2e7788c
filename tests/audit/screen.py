"""What somebody sees of an audit: a table that lives on a terminal, plain lines in a pipe."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

import report
from climb import FAILED, HOLDS, NOT_RUN, RUNNING, WAITING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from climb import Ascent
    from report import Report

_STYLES: Final = {HOLDS: "green", FAILED: "bold red", NOT_RUN: "yellow", RUNNING: "cyan", WAITING: "dim"}
_MARKS: Final = {HOLDS: "✓", FAILED: "✗", NOT_RUN: "○", RUNNING: "▸", WAITING: "·"}


def table(ascents: Sequence[Ascent]) -> Table:
    """The rungs as they stand."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
    made.add_column("rung", no_wrap=True)
    made.add_column("explored", ratio=1)
    made.add_column("controls caught", justify="right", no_wrap=True)
    made.add_column("seconds", justify="right", no_wrap=True)
    made.add_column("verdict", no_wrap=True)
    for ascent in ascents:
        result = report.result(ascent)
        made.add_row(
            result.title,
            result.numbers or "-",
            f"{result.caught} of {result.controls}" if result.controls else "-",
            f"{result.seconds:,.0f}" if result.commands else "-",
            Text(f"{_MARKS[result.verdict]} {_verdict(ascent)}", style=_STYLES[result.verdict]),
        )
    return made


def _verdict(ascent: Ascent) -> str:
    """The verdict; of a rung on its way, how far it is."""
    if ascent.verdict == RUNNING and ascent.account.of:
        return f"running, {ascent.account.done} of {ascent.account.of}"
    return ascent.verdict


def reasons(results: Sequence[report.Result]) -> Iterator[Text]:
    """A line for each rung that does not hold: why, and where its output is."""
    for result in results:
        if result.reason:
            where = f"  (output: {result.log})" if result.log else ""
            yield Text(
                f"{_MARKS[result.verdict]} {result.title}: {result.verdict}: {result.reason}{where}",
                style=_STYLES[result.verdict],
            )


@contextlib.contextmanager
def watching(console: Console, ascents: Sequence[Ascent]) -> Iterator[Callable[[], None]]:
    """Show how the rungs stand; within it, what is to be called whenever that may have changed."""
    if not console.is_terminal:
        yield _lines(console, ascents)
        return
    with Live(console=console, transient=True, auto_refresh=False) as live:

        def show() -> None:
            hint = Text("Ctrl-C ends what is running and tells what was found so far.", style="dim")
            live.update(Group(table(ascents), hint), refresh=True)

        yield show


def _lines(console: Console, ascents: Sequence[Ascent]) -> Callable[[], None]:
    """In a pipe: a line when a rung begins, and one when it has ended."""
    told: dict[str, str] = {}

    def show() -> None:
        for ascent in ascents:
            if ascent.verdict in (told.get(ascent.rung.name), WAITING):
                continue
            told[ascent.rung.name] = ascent.verdict
            result = report.result(ascent)
            numbers = f" {result.numbers}" if result.numbers and result.verdict != RUNNING else ""
            took = f", {result.seconds:.0f} s" if result.verdict != RUNNING and result.commands else ""
            line = f"{ascent.rung.name}: {result.verdict}{took}{numbers}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)

    return show


def conclude(console: Console, ascents: Sequence[Ascent], found: Report) -> None:
    """The table at the end, what does not hold, and the whole in a sentence."""
    console.print(table(ascents))
    for line in reasons(found.results):
        console.print(line, soft_wrap=True, highlight=False)
    seed = "" if found.seed is None else f", seed {found.seed}"
    facts = ", ".join((found.facts["code"], f"Python {found.facts['Python']}", found.facts["file system"]))
    took = f"{found.seconds:.0f} s, {found.processor:.0f} s of the processors"
    plain = f"{found.size}{seed}, {took}; {facts}, {found.facts['cores']} cores"
    console.print(found.verdict, style="bold", highlight=False, markup=False, soft_wrap=True)
    console.print(plain, style="dim", highlight=False, markup=False, soft_wrap=True)

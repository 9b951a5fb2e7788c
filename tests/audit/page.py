"""A report as a page: one file that needs nothing else, in the reader's colours."""

from __future__ import annotations

import shlex
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Final

from climb import FAILED, HOLDS, NOT_RUN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from account import Row
    from report import Report, Result

_TEMPLATE: Final = Template(Path(__file__).with_name("page.html").read_text("utf-8"))
_CLASSES: Final = {HOLDS: "holds", FAILED: "failed", NOT_RUN: "open"}
_MARKS: Final = {HOLDS: "✓", FAILED: "✗", NOT_RUN: "○"}
_SHOWN: Final = 400
"""Rows of a rung that the page lists; those that are not sound always."""


def rendered(found: Report) -> str:
    """The page."""
    longest = max((result.seconds for result in found.results), default=0.0)
    return _TEMPLATE.substitute(
        verdict=escape(found.verdict),
        size=found.size,
        begun=escape(found.facts["begun"]),
        sums=_sums(found),
        rungs="".join(_rung(result, longest) for result in found.results),
        facts=_pairs(_facts(found)),
        command=escape(found.command),
    )


def _sums(found: Report) -> str:
    held = sum(result.verdict == HOLDS for result in found.results)
    caught = sum(result.caught for result in found.results)
    controls = sum(result.controls for result in found.results)
    return (
        _figure("rungs hold", f"{held}&#8239;<small>of {len(found.results)}</small>")
        + _figure("controls caught", f"{caught:,}&#8239;<small>of {controls:,}</small>")
        + _figure("by the clock", _duration(found.seconds))
        + _figure("of the processors", _duration(found.processor))
    )


def _facts(found: Report) -> Mapping[str, str]:
    seed = "each program's own" if found.seed is None else str(found.seed)
    return {**{name: fact for name, fact in found.facts.items() if name != "begun"}, "seed": seed}


def _pairs(pairs: Mapping[str, str]) -> str:
    return "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs.items())


def _figure(name: str, value: str) -> str:
    return f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>"


def _duration(seconds: float) -> str:
    """As a person would say it."""
    if seconds < 60:
        return f"{seconds:.0f}&#8239;<small>s</small>"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}&#8239;<small>min</small> {rest}&#8239;<small>s</small>"
    return f"{minutes // 60}&#8239;<small>h</small> {minutes % 60}&#8239;<small>min</small>"


def _rung(result: Result, longest: float) -> str:
    kind = _CLASSES[result.verdict]
    time = f'<span class="time">{_duration(result.seconds)}</span>' if result.commands else ""
    parts = [
        f'<span class="mark {kind}" aria-hidden="true">{_MARKS[result.verdict]}</span>',
        f'<div class="card"><div class="top"><h3>{escape(result.title)}</h3>',
        f'<span class="verdict {kind}">{escape(result.verdict)}</span>{time}</div>',
        f'<p class="about">{escape(result.about)}</p>',
        _reason(result, kind),
        _figures(result.explored),
        _controls(result),
        _clock(result, longest),
        _details(result),
        "</div>",
    ]
    return f'<li class="rung" id="{escape(result.name)}">{"".join(parts)}</li>'


def _reason(result: Result, kind: str) -> str:
    if not result.reason:
        return ""
    where = f"<br>Its output: <code>{escape(result.log)}</code>" if result.log else ""
    return f'<p class="reason {kind}">{escape(result.reason)}{where}</p>'


def _figures(explored: Mapping[str, int]) -> str:
    figures = "".join(_figure(what, f"{count:,}") for what, count in explored.items())
    return f'<dl class="figures">{figures}</dl>' if figures else ""


def _controls(result: Result) -> str:
    if not result.controls:
        return ""
    pips = "".join("<i></i>" if row.sound else '<i class="missed"></i>' for row in result.rows if row.control)
    text = f"{result.caught} of {result.controls} controls caught"
    return f'<p class="controls"><span class="pips" aria-hidden="true">{pips}</span>{text}</p>'


def _clock(result: Result, longest: float) -> str:
    if not result.commands or not longest:
        return ""
    share = max(0.5, 100 * result.seconds / longest)
    return f'<div class="clock" aria-hidden="true"><span style="width:{share:.1f}%"></span></div>'


def _details(result: Result) -> str:
    if not result.commands:
        return ""
    unsound = [row for row in result.rows if not row.sound]
    shown = [*unsound, *(row for row in result.rows if row.sound)][: max(_SHOWN, len(unsound))]
    more = len(result.rows) - len(shown)
    note = f'<p class="about">And {more:,} more, which the JSON report lists.</p>' if more else ""
    summary = f"What it looked at ({len(result.rows):,})" if result.rows else "What was run"
    commands = "\n".join(shlex.join(("python", *command[1:])) for command in result.commands)
    table = _table(result, shown)
    return f"<details><summary>{summary}</summary>{table}{note}<pre>{escape(commands)}</pre></details>"


def _table(result: Result, rows: Iterable[Row]) -> str:
    body = "".join(
        f'<tr><th scope="row">{escape(row.name)}</th><td>{"control" if row.control else ""}</td>'
        f'<td class="{"sound" if row.sound else "unsound"}">{escape(row.found)}</td></tr>'
        for row in rows
    )
    if not body:
        return ""
    label = f"What {result.title} looked at"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}"><table><thead><tr>'
        f'<th scope="col">what</th><th scope="col">kind</th><th scope="col">found</th></tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )

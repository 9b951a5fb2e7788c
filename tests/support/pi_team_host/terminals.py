"""Pi in a terminal with the extension of pi-team: what a person in front of it does and sees."""

from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING, Any

from pi_team_host.team_pi import EXTENSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pi_host.terminal import StartTerminal, TerminalPi


def seat(start: StartTerminal, model: str | None, *words: str, **options: Any) -> TerminalPi:
    """A terminal in which Pi runs with the extension and waits for a person; `words` go to Pi."""
    env = {"PI_TEAM_PYTHON": sys.executable, **options.pop("env", {})}
    pi = start(*words, extensions=[EXTENSION], model=model, env=env, **options)
    pi.until("[Extensions]")  # the editor is there before they are loaded
    return pi


def seat_member(start: StartTerminal, model: str, alias: str, **options: Any) -> TerminalPi:
    """The same, as a member of `crew`."""
    pi = seat(start, model, **options)
    pi.submit(f"/team join crew {alias}")
    pi.until(lambda _: widget(pi).startswith(f"crew · {alias} · receiving"))
    return pi


def widget(pi: TerminalPi) -> str:
    """The text above the editor, unwrapped and without its mark; "" where there is none."""
    lines = [line.strip() for line in pi.lines()]
    borders = [number for number, line in enumerate(lines) if line.startswith("──")]
    if len(borders) < 2:
        return ""  # a question stands where the editor was
    above = " ".join(reversed([*itertools.takewhile(bool, reversed(lines[: borders[-2]]))]))
    return above[1:].strip() if above.startswith("●") else ""


def shows(pi: TerminalPi, *texts: str) -> str:
    """The screen on which the line above the editor has all of these in it."""
    return pi.until(lambda _: all(text in widget(pi) for text in texts))


def in_order(screen: str, *texts: str) -> None:
    """Assert that the screen has these lines' parts one below, or behind, the other."""
    at = 0
    for text in texts:
        found = screen.find(text, at)
        assert found >= 0, f"{text!r} is missing or out of order:\n{screen}"
        at = found + len(text)


def assert_fits(lines: Sequence[str], columns: int) -> None:
    """Assert that no line is longer than the terminal is wide and none shows what a terminal acts on."""
    for line in lines:
        assert len(line) <= columns, line
        assert line.isprintable(), repr(line)

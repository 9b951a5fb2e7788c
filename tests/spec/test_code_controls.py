"""The code without one of its rules, in real processes: the specification rejects what they do.

The rules are taken out as the explorer takes them out (tests/explore/controls.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

import controls
import rehearsals
from spec.checker import traces

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from spec.checker.events import Trace

pytestmark = pytest.mark.slow  # each starts Java

VISIBLE: Final[dict[str, Callable[..., Trace]]] = {
    "overwriting-link": rehearsals.overtaken,
    "no-step-7": rehearsals.left_behind,
    "copying-rename": rehearsals.helped,
    "no-helping": rehearsals.killed,
    "withdrawing": rehearsals.failing,
    "no-step-6": rehearsals.overtaken,
    "helper-without-fsync": rehearsals.killed,
    "no-step-9-fsync": rehearsals.left_behind,
}
"""By the control, a run of two processes that shows it in their calls."""
INVISIBLE: Final = {
    "any-parent": "only a power cut leaves a slot whose parent is lost",
    "no-adopting": "only a power cut loses a private file whose slot stays",
    "silent-adoption": "there is nothing to adopt without a power cut",
    "unpinned": "it takes a file system that gives a number again at the very moment",
    "by-path": "a trace is of one directory, which keeps its name",
}


def test_each_rule_is_visible_or_it_is_said_why_not() -> None:
    """A control that is added to the explorer's has to be placed here too."""
    assert {*VISIBLE, *INVISIBLE} == {control.name for control in controls.CONTROLS}
    assert not set(VISIBLE) & set(INVISIBLE)


@pytest.mark.parametrize("run", dict.fromkeys(VISIBLE.values()))
def test_with_all_rules_the_run_is_accepted(tmp_path: Path, run: Callable[..., Trace]) -> None:
    """The same processes stop, die or fail at the same calls, and do as specified."""
    assert traces.accepts(run(tmp_path), kept=rehearsals.KEPT)


@pytest.mark.parametrize("name", VISIBLE)
def test_without_a_rule_the_run_is_rejected(tmp_path: Path, name: str) -> None:
    """A call that should not have been made, or had another result, or is missing."""
    control = next(control for control in controls.CONTROLS if control.name == name)
    trace = VISIBLE[name](tmp_path, control.dropped)
    assert not traces.accepts(trace, kept=rehearsals.KEPT)

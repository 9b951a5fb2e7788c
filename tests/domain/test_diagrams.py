"""What a document shows of a lifecycle says the same as its data."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from pi_team.domain import diagrams
from pi_team.domain.lifecycles import MEMBERSHIP, MESSAGE, Lifecycle


@pytest.mark.parametrize("lifecycle", [MESSAGE, MEMBERSHIP], ids=lambda lifecycle: lifecycle.name)
def test_the_arrows_are_the_transitions(lifecycle: Lifecycle) -> None:
    """No transition is missing from the picture, and none is invented."""
    drawn = {
        (label.partition(" ")[0], source, dest)
        for source, dest, labels in re.findall(
            r"^    (\w+) --> (\w+): (.+)$", diagrams.diagram(lifecycle), re.MULTILINE
        )
        for label in re.split(r", (?![^(]*\))", labels)
    }
    assert drawn == {
        (row.trigger, source, row.dest) for row in lifecycle.transitions for source in row.sources
    }
    ends = set(re.findall(r"^    (\w+) --> \[\*\]$", diagrams.diagram(lifecycle), re.MULTILINE))
    assert ends == set(lifecycle.finals)


@pytest.mark.parametrize("lifecycle", [MESSAGE, MEMBERSHIP], ids=lambda lifecycle: lifecycle.name)
def test_the_table_has_a_row_for_each(lifecycle: Lifecycle) -> None:
    """In the order of the data, and every row has as many cells as the head."""
    head, _, *rows = diagrams.table(lifecycle).splitlines()
    assert [row.split("`")[1] for row in rows] == [row.trigger for row in lifecycle.transitions]
    assert {row.count("|") for row in rows} == {head.count("|")}


def test_the_module_prints_both() -> None:
    """For who wants to see them without the documents."""
    printed = subprocess.run(
        [sys.executable, "-m", "pi_team.domain.diagrams"], capture_output=True, text=True, check=True
    )
    assert printed.stdout == f"{diagrams.part(MESSAGE)}\n\n{diagrams.part(MEMBERSHIP)}\n"

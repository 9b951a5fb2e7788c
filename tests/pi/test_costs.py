"""What a membership costs, measured by the benchmark at a small size and judged loosely."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench import pi as benchmark

if TYPE_CHECKING:
    from pathlib import Path

    from bench.figures import Figure
    from pi_host.installation import Installation

SMALL = benchmark.Effort(deliveries=10, starts=2, rest=4.0)


@pytest.fixture
def directory(tmp_path: Path, pi_installation: Installation) -> str:
    """A directory for the benchmark, which installs Pi itself: here it is there by now."""
    assert pi_installation.directory
    return str(tmp_path)


def figure(figures: list[Figure], section: str, label: str) -> float:
    (found,) = (each for each in figures if section in each.section and label in each.label)
    print(found.section, "|", found)
    return found.value


def test_a_request_reaches_the_other_model_soon(directory: str) -> None:
    """A recipient looked only when its next poll was due, or the sender's turn had to end first."""
    assert figure(benchmark.deliver(directory, SMALL), "", "p50") < 500


def test_starting_costs_next_to_nothing(directory: str) -> None:
    """A Pi that is in no team waited for Python, or a member waited for its team before it answered."""
    figures = benchmark.begin(directory, SMALL)
    assert figure(figures, "processor time", "ours in no team") < 60
    assert figure(figures, "processor time", "ours in a member") < 100
    assert figure(figures, "start of a member", "back in its team") < 8_000


def test_a_member_at_rest_is_small_and_still(directory: str) -> None:
    """The Python side loaded what it does not need, or something polled without pause."""
    figures = benchmark.rest(directory, SMALL)
    assert figure(figures, "Python side", "resident at its highest") < 40
    assert figure(figures, "at rest", "the Python side") < 1.5
    assert figure(figures, "at rest", "added by the membership") < 2.0

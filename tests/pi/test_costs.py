"""What a membership costs, measured by the benchmark at a small size and judged loosely."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from bench import pi as benchmark
from bench.run import README, with_block

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


def test_the_benchmark_runs_as_a_user_starts_it(directory: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It failed where it was started by hand, or left something behind."""
    assert benchmark.main(["--smoke", "--json", "--only", "delivery", "--dir", directory]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [figure["label"] for figure in printed["figures"]] == ["p50", "p99"]
    assert os.listdir(directory) == []
    with open(README, encoding="utf-8") as file:
        assert "\nnew\n" in with_block(file.read(), "new", benchmark.MARKS)

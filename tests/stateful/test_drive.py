"""The command for auditors: what it says, and that it fails where it has to."""

from __future__ import annotations

import json
import re

import pytest

import drive
import dropped
import machine


@pytest.mark.slow
def test_too_short_a_run_says_what_never_happened(capsys: pytest.CaptureFixture[str]) -> None:
    """Two examples break nothing, and in two examples not everything happens: that is no success."""
    assert drive.main(["--json", "--examples", "2", "--control", "none"]) == 1
    *progress, row = map(json.loads, capsys.readouterr().out.splitlines())
    assert progress[-1] == {"progress": 2, "of": 2}
    assert row["verdict"].startswith("never: ")
    assert row["happened"]["steps"] > 2


@pytest.mark.slow
def test_a_broken_promise_fails_and_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes that do without a rule, as if that were the code: the invariant's name, and the story."""
    real = machine.chosen
    monkeypatch.setattr(machine, "CI", dropped.FIRST)  # a shorter story would take a minute
    monkeypatch.setattr(machine, "chosen", lambda counts: real(counts, broken="whose claim is settled"))
    assert drive.main(["--json", "--control", "none", "--seed", "1"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out.splitlines()[-1])["verdict"] == "broken"
    assert printed.err.startswith(("ClaimOwner: ", "Answered: ", "Fenced: "))


@pytest.mark.slow
def test_a_control_that_is_caught_by_something_else_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A control that finds nothing, or another invariant than its own, is none."""
    rule = "whose claim is settled"
    wrong = dropped.Control(rule, ("History",))
    monkeypatch.setattr(drive, "_CONTROLS", {rule: wrong})
    assert drive.main(["--json", "--control", rule]) == 1
    assert re.search("caught by (ClaimOwner|Answered|Fenced) and not by History", capsys.readouterr().out)

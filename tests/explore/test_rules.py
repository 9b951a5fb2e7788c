"""Each rule of the protocol is needed: without it the explorer finds the harm."""

from __future__ import annotations

import json
import re
from pathlib import Path

import attrs
import pytest

import controls
import further_controls
import run
from controls import CONTROLS, Control

PROTOCOL = Path(__file__).parents[2] / "docs" / "protocol.md"


@pytest.mark.parametrize("control", CONTROLS + further_controls.CONTROLS, ids=lambda control: control.name)
def test_code_without_a_rule_is_caught(control: Control) -> None:
    """By the invariant that the rule is for; and, where a power cut is to show it, by nothing but that."""
    assert not controls.run(control).fault


def test_every_row_of_the_protocol_has_a_control() -> None:
    """docs/protocol.md, "What each rule prevents": no row without one, none for a rule that is not there."""
    section = PROTOCOL.read_text().partition("## What each rule prevents")[2].partition("\n## ")[0]
    rules = re.findall(r"^\| (.+?) \|", section, re.MULTILINE)[2:]
    assert {control.rule for control in CONTROLS} == set(rules)


def test_command_tells_how_a_control_was_caught(capsys: pytest.CaptureFixture[str]) -> None:
    """For auditors: the row of the table, and the schedule to replay."""
    assert run.main(["--control", "no-step-6"]) == 0
    printed = capsys.readouterr()
    assert re.search(r"no-step-6 .* schedules  Shown +passes +caught", printed.out)
    assert '"a until rename .a1.a.tmp -> state.json",' in printed.err


@pytest.mark.parametrize(("bound", "schedules"), [("1", 344), ("all", 39_036_472)])
def test_command_explores_what_is_asked_for(
    capsys: pytest.CaptureFixture[str], bound: str, schedules: int
) -> None:
    """For auditors: any number of writers and writes, up to any bound or without one."""
    assert run.main(["--json", "--writers", "2", "1", bound]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["configuration"], row["bound"], row["schedules"]) == ("2 writers, 1 each", bound, schedules)


@pytest.mark.parametrize(
    "words", [("2", "1", "most"), ("all", "1", "1"), ("2", "all", "1"), ("2", "1", "-1")]
)
def test_command_says_what_it_cannot_explore(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    """And explores nothing instead."""
    with pytest.raises(SystemExit):
        run.main(["--writers", *words])
    assert "`all`" in capsys.readouterr().err


def test_command_fails_where_a_control_is_not_caught(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A control that finds nothing, or another invariant than its own, is none."""
    expected = next(control for control in CONTROLS if control.name == "no-step-6")
    wrong = attrs.evolve(expected, invariant="Writable")
    monkeypatch.setattr(controls, "CONTROLS", (wrong,))
    assert run.main(["--control", "no-step-6"]) == 1
    assert "caught by Shown and not by Writable" in capsys.readouterr().out

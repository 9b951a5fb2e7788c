"""Each rule of the protocol is needed: without it the explorer finds the harm."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import controls
from controls import CONTROLS, Control

PROTOCOL = Path(__file__).parents[2] / "docs" / "protocol.md"


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_code_without_a_rule_is_caught(control: Control) -> None:
    """By the invariant that the rule is for; and, where a power cut is to show it, by nothing but that."""
    assert not controls.run(control).fault


def test_every_row_of_the_protocol_has_a_control() -> None:
    """docs/protocol.md, "What each rule prevents": no row without one, none for a rule that is not there."""
    section = PROTOCOL.read_text().partition("## What each rule prevents")[2].partition("\n## ")[0]
    rules = re.findall(r"^\| (.+?) \|", section, re.MULTILINE)[2:]
    assert {control.rule for control in CONTROLS} == set(rules)

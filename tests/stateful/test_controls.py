"""Controls: processes that do without one rule are caught, by what the rule is there for.

Each runs no longer than the run that has to find nothing.
"""

from __future__ import annotations

import pytest

import dropped
from dropped import CONTROLS, Control


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.rule)
def test_a_dropped_rule_is_noticed(control: Control) -> None:
    """The machine finds it, and by name."""
    assert not dropped.catch(control).fault

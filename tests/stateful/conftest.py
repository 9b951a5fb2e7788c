"""Counts what happens over the run, and says so at its end."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

_COUNTS = pytest.StashKey[Counter[str]]()
_SHOWN = (
    *("examples", "steps", "processes", "killed", "killed midway", "killed between link and rename"),
    *("stopped", "stopped between link and rename", "continued", "told that nobody knows"),
    *("died midway, and it had happened", "died midway, and it never happened", "clock set", "look"),
)


@pytest.fixture
def happened(request: pytest.FixtureRequest) -> Counter[str]:
    """What happens in the run of which a summary is shown."""
    return request.config.stash.setdefault(_COUNTS, Counter())


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Say what happened to how many processes."""
    happened = terminalreporter.config.stash.get(_COUNTS, None)
    if happened is not None:
        terminalreporter.section("stateful")
        terminalreporter.write_line("; ".join(f"{what}: {happened[what]:,}" for what in _SHOWN))
        carried_out = {what: count for what, count in sorted(happened.items()) if what not in _SHOWN}
        terminalreporter.write_line("; ".join(f"{what}: {count:,}" for what, count in carried_out.items()))

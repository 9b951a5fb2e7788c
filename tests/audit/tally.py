"""A plugin of pytest that prints one JSON object for each test: `-p tally`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter


class Tally:
    """Prints what became of each test where the terminal's reporter prints.

    Args:
        reporter: of the terminal, which knows where standard output is while tests are captured.
    """

    def __init__(self, reporter: TerminalReporter) -> None:
        self._reporter = reporter
        self._outcomes: dict[str, tuple[str, str]] = {}
        self._of = 0
        self._done = 0

    def _say(self, **row: Any) -> None:
        # On a line of its own, also after a dot.
        self._reporter.write(f"\n{json.dumps(row)}\n", flush=True)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Say how many there are."""
        self._of = len(session.items)
        self._say(progress=0, of=self._of)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that cannot be read has tests that nobody runs."""
        if not report.passed:
            self._say(case=report.nodeid, outcome=report.outcome, reason=str(report.longrepr)[-500:])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A phase of a test is over; the worst of them counts."""
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        before, why = self._outcomes.get(report.nodeid, ("passed", ""))
        if before == "passed":
            before, why = report.outcome, reason
        self._outcomes[report.nodeid] = before, why
        if report.when == "teardown":
            self._done += 1
            self._say(case=report.nodeid.rpartition("/")[2], outcome=before, reason=why)
            self._say(progress=self._done, of=self._of)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Begin once there is a reporter."""
    config.pluginmanager.register(Tally(config.pluginmanager.getplugin("terminalreporter")))

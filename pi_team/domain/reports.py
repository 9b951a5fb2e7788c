"""What a result may say, and how much of it (docs/limits.md)."""

from __future__ import annotations

from typing import get_args

from pi_team.domain.codec import is_report
from pi_team.domain.model import Outcome, Report
from pi_team.errors import ReportInvalid
from pi_team.json_text import canonical, well_paired
from pi_team.limits import (
    REPORT_BYTES,
    REPORT_FILE_CHARACTERS,
    REPORT_FILES,
    REPORT_TESTS,
    STORED_BODY_CHARACTERS,
)


def require_report(report: Report) -> Report:
    """The report as it is stored.

    Raises:
        ReportInvalid: an unknown outcome, or more than the limits allow.
    """
    if report.outcome not in get_args(Outcome):
        raise ReportInvalid(
            f"the outcome is {report.outcome!r}", hint=f"Use one of {', '.join(get_args(Outcome))}."
        )
    if not is_report(report.to_json()):
        raise ReportInvalid("a report's body is a string, and its files and tests are lists of strings")
    report = Report(
        report.outcome,
        well_paired(report.body),
        tuple(well_paired(file) for file in report.files),
        tuple(well_paired(test) for test in report.tests),
    )
    _require(len(report.body), STORED_BODY_CHARACTERS, "characters in its body")
    _require(len(report.files), REPORT_FILES, "files")
    _require(len(report.tests), REPORT_TESTS, "tests")
    _require(max(map(len, report.files), default=0), REPORT_FILE_CHARACTERS, "characters in a file's name")
    _require(report_bytes(report), REPORT_BYTES, "bytes as JSON")
    return report


def report_bytes(report: Report) -> int:
    """The size of a report serialized as JSON, in bytes."""
    return len(canonical(report.to_json()).encode())


def _require(amount: int, limit: int, what: str) -> None:
    if amount > limit:
        raise ReportInvalid(
            f"the report has {amount:,} {what}; {limit:,} is the limit",
            hint="Shorten it; put long material into a file and name that.",
        )

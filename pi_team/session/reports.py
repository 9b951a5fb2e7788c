"""What a turn's end makes of the result: outcome, text and files, within their limits (docs/limits.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pi_team.domain.model import Report
from pi_team.domain.reports import report_bytes
from pi_team.limits import (
    AUTOMATIC_RESULT_CHARACTERS,
    REPORT_FILE_CHARACTERS,
    REPORT_FILES,
    REPORT_FIT_BYTES,
)
from pi_team.phrases import plural
from pi_team.session import bounds
from pi_team.text import cut

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pi_team.domain.model import Outcome
    from pi_team.session.events import Settled

_TAKEN_OVER: Final = (
    "The user of this session took over while it worked on the request. Some of the work may have been done. "
    "What happened afterwards is not part of this result. Nothing is retried by itself."
)
_STOPPED: Final = (
    "The user of this session stopped the work on the request. Some of it may have been done. "
    "Nothing is retried by itself."
)
_NO_TEXT: Final = "The turn ended without a final text."
_CUT_BY_MODEL: Final = "(The answer was cut off by the model's limit of output; more may have been meant.)"


def of_turn(settled: Settled) -> Report:
    """The report of a turn that ran to its end, or that the person aborted."""
    if settled.stop == "aborted":
        return fitted("interrupted", _STOPPED, settled.files)
    text = cut(settled.text or "", AUTOMATIC_RESULT_CHARACTERS)
    body = text if text.strip() else _NO_TEXT
    if settled.stop == "error":
        said = cut(settled.error or "no reason was given", bounds.ERROR_CHARACTERS)
        return fitted("failed", f"The turn failed: {said}\nIts last text: {body}", settled.files)
    if settled.stop == "length":
        body = f"{body}\n\n{_CUT_BY_MODEL}"
    return fitted("completed", body, settled.files)


def of_takeover(files: Iterable[str]) -> Report:
    """The report of work during which a person typed; nothing of what followed is in it."""
    return fitted("interrupted", _TAKEN_OVER, files)


def fitted(outcome: Outcome, body: str, files: Iterable[str]) -> Report:
    """A report with as many files as fit; how many are missing is said in its body.

    Args:
        outcome: how the work ended.
        body: what it says; far below the limit of a report.
        files: absolute paths, in the order in which they were changed.
    """
    distinct = list(dict.fromkeys(files))
    kept = [name for name in distinct if len(name) <= REPORT_FILE_CHARACTERS][:REPORT_FILES]
    while True:
        missing = len(distinct) - len(kept)
        note = f"\n\n[{plural(missing, 'more file')} changed, not listed here]" if missing else ""
        report = Report(outcome, body + note, tuple(kept))
        if report_bytes(report) <= REPORT_FIT_BYTES or not kept:
            return report
        kept.pop()

"""What has to hold of a teams directory, whatever befell those who wrote there."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import evidence
import team_invariants
from pi_team.domain.codec import TeamCodec

if TYPE_CHECKING:
    from pathlib import Path

    from pi_team.mailbox import Mailbox

_SWEPT: Final = {"LEFTOVER", "LOCK"}


def revisions(path: Path) -> dict[str, int]:
    """The revision of each record that can be read."""
    found = {}
    for team in path.glob("[a-z]*"):
        with contextlib.suppress(ValueError):
            found[team.name] = evidence.revision(team)
    return found


def grown(before: dict[str, int], after: dict[str, int]) -> int:
    """By how many revisions the record grew that grew the most; below 0 where one was put back."""
    by = [after[team] - revision for team, revision in before.items() if team in after]
    return min(by) if min(by, default=0) < 0 else max(by, default=0)


def strays(path: Path) -> list[str]:
    """What has no business there; a record that was damaged is kept on purpose."""
    return [name for name in evidence.strays(path) if ".damaged-" not in name]


def check_teams(path: Path) -> None:
    """Assert that each record and each slot is sound, and that the invariants hold."""
    for team in path.glob("[a-z]*"):
        text = evidence.javascript_text(evidence.payload(team))
        team_invariants.check(TeamCodec(team.name).decode(text), ())
        newest = evidence.revision(team)
        for number in evidence.history(team):
            assert number <= newest, "a publication is not installed"
            sealed = evidence.sealed((team / "revisions" / f"{number}.json").read_bytes())
            assert sealed["revision"] == number


def check_swept(bystander: Mailbox, path: Path) -> None:
    """Assert that `doctor` finds nothing but what the next join or creation sweeps, or takes."""
    findings = bystander.doctor()
    for team in sorted({finding.team for finding in findings}):
        if team:
            bystander.join(team, "sweeper")
        else:
            bystander.create("swept")
    if findings:
        assert {finding.code for finding in findings} <= _SWEPT, findings
        findings = bystander.doctor()
        assert findings == []
    assert strays(path) == []

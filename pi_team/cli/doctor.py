"""`pi-team doctor` and `recover`: what is wrong, and putting an intact revision back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from pi_team.cli.confirm import confirmed
from pi_team.cli.output import Cell, Column
from pi_team.cli.parameters import any_team_argument, json_option, team_argument, yes_option
from pi_team.errors import RecordCorrupt, RecordMissing, RecordUnsafe, StorageError
from pi_team.hosts.pi import checkup
from pi_team.hosts.pi.installation import Installation
from pi_team.mailbox import Mailbox
from pi_team.record.recovery import intact, obstacles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pi_team.cli.output import Output
    from pi_team.doctor import Finding
    from pi_team.domain.model import JsonObject, TeamState
    from pi_team.record.recovery import SlotReport

__all__ = ["doctor", "recover"]

_HISTORY_COLUMNS: Final = (
    Column("REVISION", rigid=True),
    Column("STATE", rigid=True),
    Column("MEMBERS", rigid=True),
    Column("MESSAGES", rigid=True),
    Column("LATEST MESSAGE, OR FAULT"),
)


@click.command(short_help="Check files, permissions and locks; say what mends them.")
@any_team_argument
@json_option
@click.pass_obj
def doctor(output: Output, *, team: str | None) -> int:
    """Check the teams directory and TEAM, or every team and the extension in Pi; change nothing.

    Says of each fault which command mends it. Exit status 1 when there is one.
    """
    mailbox = Mailbox(notice=output.remark)
    findings = mailbox.doctor(team)
    if team is None:
        findings += checkup.examine(Installation())
    output.json({"path": mailbox.path, "findings": [finding.to_json() for finding in findings]})
    for finding in findings:
        _print(output, finding)
    if not findings:
        output.line(f"Nothing is wrong in {mailbox.path}.")
    return 1 if findings else 0


def _print(output: Output, finding: Finding) -> None:
    where = f"{finding.team}: " if finding.team else ""
    output.line(f"{finding.code}  {where}{finding.message}", "bold")
    output.line(f"    mend it with: {finding.command}" if finding.command else "    see for yourself")


@click.command(short_help="Restore an intact revision of a damaged record.")
@team_argument
@click.option("--revision", metavar="N", type=click.IntRange(min=1), help="By default the newest intact one.")
@yes_option
@json_option
@click.pass_obj
def recover(output: Output, *, team: str, revision: int | None, yes: bool) -> int:
    """Show which revisions of TEAM are intact, and restore one after confirmation.

    What the revision held is published anew; a record that cannot be read is kept beside it. While the
    record is intact, or a newer revision could not be read, name the REVISION to go back to: later changes
    are undone then.
    """
    mailbox = Mailbox(notice=output.remark)
    history = mailbox.revisions(team)
    output.table(_HISTORY_COLUMNS, [_history_row(report) for report in history])
    if revision is None and _is_readable(mailbox, team):
        output.json({"team": team, "revisions": [_history_object(report) for report in history]})
        output.remark(f"The record of {team} is intact. --revision N goes back to an earlier one.")
        return 0
    chosen = revision if revision is not None else _newest(history)
    if chosen is not None and not confirmed(output, f"Restore revision {chosen} of {team}?", yes=yes):
        return 1
    restored = mailbox.recover(team, revision)
    output.json({"team": team, "restored": chosen, "revision": restored})
    output.line(f"restored revision {chosen} of {team} as revision {restored}")
    return 0


def _is_readable(mailbox: Mailbox, team: str) -> bool:
    try:
        mailbox.look(team)
    except (RecordCorrupt, RecordMissing, RecordUnsafe):
        return False
    except StorageError as error:
        error.hint = f"{error.hint} If it stays so, --revision N goes back to an intact one."
        raise
    return True


def _newest(history: Sequence[SlotReport[TeamState]]) -> int | None:
    """The revision that is restored where none is named, or None where that is refused."""
    if obstacles(history):
        return None
    return max((version.revision for version in intact(history)), default=None)


def _history_row(report: SlotReport[TeamState]) -> Sequence[Cell]:
    if report.version is None:
        return (
            Cell(str(report.revision)),
            Cell("damaged" if report.unread is None else "not read", style="red"),
            Cell(""),
            Cell(""),
            Cell(report.fault),
        )
    state = report.version.value
    latest = state.messages[-1].subject if state.messages else ""
    return (
        Cell(str(report.revision), style="bold"),
        Cell("intact", style="green"),
        Cell(str(len(state.members))),
        Cell(str(len(state.messages))),
        Cell(latest, style="dim"),
    )


def _history_object(report: SlotReport[TeamState]) -> JsonObject:
    return {"revision": report.revision, "intact": report.version is not None, "fault": report.fault}

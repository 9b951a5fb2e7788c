"""Members, owed results and messages as rows of tables and as blocks of text, for looks and live views.

A row has both forms of a value: a pipe gets whole ids and milliseconds, a terminal short ids and ages.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from pi_team.cli.output import Cell, Column, styled_status
from pi_team.phrases import ago, clock_time
from pi_team.text import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pi_team.domain.model import Message
    from pi_team.domain.views import FlowEntry, TeamView

__all__ = [
    "FLOW_COLUMNS",
    "MEMBER_COLUMNS",
    "MESSAGE_COLUMNS",
    "flow_rows",
    "member_rows",
    "message_block",
    "message_rows",
    "state_of",
]

MEMBER_COLUMNS: Final = (
    Column("ALIAS"),
    Column("STATUS", rigid=True),
    Column("JOINED", rigid=True, rank=2),
    Column("PID", rigid=True, rank=3),
    Column("DIRECTORY", rank=1),
)
FLOW_COLUMNS: Final = (
    Column("FROM"),
    Column("OWED BY"),
    Column("STATE", rigid=True, rank=2),
    Column("SINCE", rigid=True, rank=1),
    Column("ID", rigid=True, rank=3),
    Column("SUBJECT"),
)
MESSAGE_COLUMNS: Final = (
    Column("TIME", rigid=True, rank=4),
    Column("FROM"),
    Column("TO"),
    Column("KIND", rigid=True, rank=3),
    Column("STATE", rigid=True, rank=1),
    Column("ID", rigid=True, rank=2),
    Column("SUBJECT"),
)
_HOME: Final = os.path.expanduser("~")


def state_of(message: Message) -> str:
    """The state of a message; of a result that was not taken yet, or taken, what it says."""
    return message.state if message.report is None else message.report.outcome


def member_rows(view: TeamView, now: float) -> list[Sequence[Cell]]:
    """One row for each member. `now` is in seconds since 1970."""
    return [
        (
            Cell(entry.member.alias, style="bold"),
            Cell(entry.displayed, style=styled_status(entry.displayed)),
            Cell(f"{entry.member.seen:.0f}", shown=ago(entry.member.seen, now)),
            Cell(str(entry.member.pid)),
            Cell(entry.member.cwd, shown=_short_path(entry.member.cwd), style="dim"),
        )
        for entry in view.members
    ]


def flow_rows(flow: Iterable[FlowEntry], short: dict[str, str], now: float) -> list[Sequence[Cell]]:
    """One row for each request that has no result yet. `now` is in seconds since 1970."""
    return [
        (
            Cell(entry.sender),
            Cell(entry.recipient, style="bold"),
            Cell(entry.state, style=styled_status(entry.state)),
            Cell(f"{entry.created:.0f}", shown=ago(entry.created, now)),
            Cell(entry.id, shown=short.get(entry.id, entry.id), style="dim"),
            Cell(entry.subject),
        )
        for entry in flow
    ]


def message_rows(messages: Iterable[Message], short: dict[str, str]) -> list[Sequence[Cell]]:
    """One row for each message."""
    return [
        (
            Cell(f"{message.created:.0f}", shown=clock_time(message.created), style="dim"),
            Cell(message.sender),
            Cell(message.recipient),
            Cell(message.kind),
            Cell(state_of(message), style=styled_status(state_of(message))),
            Cell(message.id, shown=short.get(message.id, message.id), style="dim"),
            Cell(message.subject),
        )
        for message in messages
    ]


def message_block(message: Message, identifier: str) -> str:
    """A message with its text, several lines; the reader's terminal is not yet safe from it."""
    said = f" ({state_of(message)})" if message.kind == "result" else ""
    ends = f"from {message.sender} to {message.recipient}"
    head = f"{clock_time(message.created)}  {message.kind}{said} {ends}  {identifier}"
    # On one line, lest a subject of several lines passes for another message.
    lines = [head, "  " + harmless(message.subject, multiline=False)]
    lines += [f"    {line}".rstrip() for line in message.body.splitlines() if message.body != message.subject]
    if message.report is not None and message.report.files:
        lines.append("    files: " + ", ".join(message.report.files))
    return "\n".join(lines)


def _short_path(path: str) -> str:
    """The path with the home directory as a tilde."""
    return "~" + path[len(_HOME) :] if path == _HOME or path.startswith(_HOME + os.sep) else path

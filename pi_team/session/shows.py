"""What is put into a person's transcript, outside the model's context. Every text in it is harmless."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pi_team.phrases import ago, clock_time, plural, short_ids
from pi_team.session import bounds
from pi_team.session.peer_text import bounded, identifier, line, tail

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pi_team.domain.model import Message, MessageState, Outcome
    from pi_team.domain.views import RosterEntry, Snapshot

_TAKEN: Final[dict[MessageState, str]] = {
    "pending": "not delivered yet",
    "processing": "being looked at",
    "completed": "delivered",
    "interrupted": "delivered, not looked at to the end",
    "seen": "discarded",
}
"""What became of a result."""


def entry(kind: str, title: str, lines: Iterable[str] = (), body: str | None = None) -> dict[str, Any]:
    """An entry for the transcript."""
    shown: dict[str, Any] = {
        "kind": kind,
        "title": line(title),
        "lines": [line(text, bounds.NOTICE_CHARACTERS) for text in lines],
    }
    if body is not None:
        shown["body"] = bounded(body, bounds.SHOWN_CHARACTERS)
    return shown


def note(message: Message) -> dict[str, Any]:
    """A note that came."""
    return _whole("note", f"Note from {message.sender}: {message.subject}", message)


def sent(message: Message) -> dict[str, Any]:
    """A message that was queued."""
    title = f"{message.kind.capitalize()} queued for {message.recipient}: {message.subject}"
    return _whole("sent", title, message) | {"message": message.kind}


def _whole(kind: str, title: str, message: Message) -> dict[str, Any]:
    """A message with its text, and its parts for hosts that do better than title and lines."""
    parts = {
        "id": identifier(message.id),
        "from": message.sender,
        "alias": message.recipient,
        "subject": line(message.subject),
        "created": message.created,
    }
    return entry(kind, title, [f"{clock_time(message.created)} · {message.id}"], message.body) | parts


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """A line for each row; cells below each other begin in the same column.

    Only the last cell of a row may have characters that are not one terminal cell wide.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def capped(lines: Sequence[str], entries: int) -> list[str]:
    """The first lines, and how many are left out."""
    if len(lines) <= entries:
        return list(lines)
    return [*lines[:entries], f"… {len(lines) - entries:,} more, left out here"]


def _member_row(place: RosterEntry) -> tuple[str, str, str]:
    displayed = place.displayed if place.alive is not None else "not known yet"
    mark = "○" if displayed == "offline" else "●"
    directory = tail(place.member.cwd, bounds.DIRECTORY_CHARACTERS)
    return f"{mark} {place.member.alias}", displayed, directory


def roster(snapshot: Snapshot) -> dict[str, Any]:
    """The teammates, without the session itself."""
    others = [place for place in snapshot.members if place.member.alias != snapshot.alias]
    title = f"Team {snapshot.team}: {plural(len(others), 'teammate')} of {snapshot.alias}"
    lines = aligned([_member_row(place) for place in others]) or [
        f"Nobody else yet. In another session: /team join {snapshot.team} ALIAS"
    ]
    return entry("roster", title, capped(lines, bounds.ROSTER_ENTRIES))


def _message_row(message: Message, short_id: str, outcome: Outcome | None) -> tuple[str, ...]:
    """A message on one line; `outcome` is that of its result, where it is a request that has one."""
    said: str = outcome or message.state
    if message.report is not None:
        said = f"{message.report.outcome}, {_TAKEN[message.state]}"
    return (
        clock_time(message.created),
        identifier(short_id),
        message.kind,
        f"{message.sender} → {message.recipient}",
        f"{said}: {line(message.subject)}",
    )


def inbox(snapshot: Snapshot) -> dict[str, Any]:
    """The last messages from and to the member; nothing is taken."""
    messages = snapshot.messages[-bounds.LIST_ENTRIES :]
    short = short_ids(message.id for message in snapshot.messages)
    earlier = len(snapshot.messages) - len(messages)
    title = f"The last {plural(len(messages), 'message')} of {snapshot.alias} in {snapshot.team}"
    outcomes = {
        message.parent_id: message.report.outcome
        for message in snapshot.messages
        if message.report is not None
    }
    lines = aligned([_message_row(each, short[each.id], outcomes.get(each.id)) for each in messages])
    if not messages:
        title = f"No messages of {snapshot.alias} in {snapshot.team} yet"
    if earlier:
        lines.insert(0, f"… {earlier:,} earlier, left out here; `pi-team log {snapshot.team}` shows all")
    return entry("inbox", title, lines)


def status(snapshot: Snapshot, doing: str, turns: int, cap: int, now: float) -> dict[str, Any]:
    """What the session does, and who owes whom. `now` is in seconds since 1970."""
    lines = [f"Now: {doing}"]
    lines.append(f"Automatic turns since your last prompt: {turns}" + (f" of {cap}" if cap else ", no cap"))
    flow = [
        (
            f"{each.sender} → {each.recipient}",
            f"{each.state} for {ago(each.created, now)}: {line(each.subject)}",
        )
        for each in snapshot.flow
    ]
    lines.append(f"Requests without a result: {len(flow) or 'none'}")
    return entry(
        "status",
        f"{snapshot.alias} in {snapshot.team}",
        [*lines, *capped(aligned(flow), bounds.LIST_ENTRIES)],
    )

"""What is put into a person's transcript, outside the model's context. Every text in it is harmless."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pi_team.limits import IDENTIFIER_CHARACTERS
from pi_team.phrases import ago, clock_time, plural, short_ids
from pi_team.session import bounds
from pi_team.session.deliveries import line, tail
from pi_team.text import cut, harmless

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pi_team.domain.model import Message, MessageState
    from pi_team.domain.views import RosterEntry, Snapshot

_LEFT_OUT: Final = "\n[… {left_out:,} more characters, left out here]"

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
        shown["body"] = cut(harmless(body, multiline=True), bounds.SHOWN_CHARACTERS, mark=_LEFT_OUT)
    return shown


def note(message: Message) -> dict[str, Any]:
    """A note that came."""
    return entry(
        "note",
        f"Note from {message.sender}: {message.subject}",
        [f"{clock_time(message.created)} · {message.id}"],
        message.body,
    )


def sent(message: Message) -> dict[str, Any]:
    """A message that was queued."""
    return entry(
        "sent",
        f"{message.kind.capitalize()} queued for {message.recipient}: {message.subject}",
        [f"{clock_time(message.created)} · {message.id}"],
        message.body,
    )


def capped(lines: Sequence[str], entries: int) -> list[str]:
    """The first lines, and how many are left out."""
    if len(lines) <= entries:
        return list(lines)
    return [*lines[:entries], f"… {len(lines) - entries:,} more, left out here"]


def member_line(place: RosterEntry) -> str:
    """A teammate on one line."""
    directory = tail(place.member.cwd, bounds.DIRECTORY_CHARACTERS)
    status = place.displayed if place.alive is not None else "not known yet"
    return f"{place.member.alias} · {status} · {directory}"


def roster(snapshot: Snapshot) -> dict[str, Any]:
    """The teammates, without the session itself."""
    others = [place for place in snapshot.members if place.member.alias != snapshot.alias]
    title = f"Team {snapshot.team}: {plural(len(others), 'teammate')} of {snapshot.alias}"
    return entry("roster", title, capped([member_line(place) for place in others], bounds.ROSTER_ENTRIES))


def message_line(message: Message, identifier: str) -> str:
    """A message on one line."""
    said = message.state if message.report is None else f"{message.report.outcome}, {_TAKEN[message.state]}"
    return (
        f"{clock_time(message.created)} {message.kind} {message.sender} → {message.recipient}, {said}: "
        f"{line(message.subject)} ({line(identifier, IDENTIFIER_CHARACTERS)})"
    )


def inbox(snapshot: Snapshot) -> dict[str, Any]:
    """The last messages from and to the member; nothing is taken."""
    messages = snapshot.messages[-bounds.LIST_ENTRIES :]
    short = short_ids(message.id for message in snapshot.messages)
    earlier = len(snapshot.messages) - len(messages)
    title = f"The last {plural(len(messages), 'message')} of {snapshot.alias} in {snapshot.team}"
    lines = [message_line(message, short[message.id]) for message in messages]
    if earlier:
        lines.insert(0, f"… {earlier:,} earlier, left out here; `pi-team log {snapshot.team}` shows all")
    return entry("inbox", title, lines)


def status(snapshot: Snapshot, doing: str, turns: int, cap: int, now: float) -> dict[str, Any]:
    """What the session does, and who owes whom. `now` is in seconds since 1970."""
    lines = [f"{snapshot.alias} is {doing}"]
    lines.append(f"Automatic turns since you last typed: {turns}" + (f" of {cap}" if cap else ", no cap"))
    flow = [
        f"{each.sender} → {each.recipient}, {each.state} for {ago(each.created, now)}: {line(each.subject)}"
        for each in snapshot.flow
    ]
    lines.append(f"Requests without a result: {len(flow) or 'none'}")
    return entry("status", f"Team {snapshot.team}", [*lines, *capped(flow, bounds.LIST_ENTRIES)])

"""The model's three tools. They create, join, rename and remove nothing: those are a person's commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pi_team.errors import MembershipLost, PiTeamError
from pi_team.phrases import ago
from pi_team.session import bounds, wording
from pi_team.session.heartbeats import GONE
from pi_team.session.peer_text import identifier, line, tail

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pi_team.domain.model import JsonObject, Message
    from pi_team.domain.views import FlowEntry
    from pi_team.session.attachment import Attachment
    from pi_team.session.context import Context
    from pi_team.session.events import ToolCall

_FIELDS: Final = ("to", "kind", "subject", "body")
_NOT_JOINED: Final = "This session is in no team. Only the user can join one: /team join TEAM ALIAS."


class Refused(ValueError):
    """The parameters make no sense; the text is for the model."""


class Tools:
    """Answers the model's calls.

    Args:
        context: what the parts share.
        attachment: the way out of the team.
    """

    def __init__(self, context: Context, attachment: Attachment) -> None:
        self._context = context
        self._attachment = attachment
        self._by_name = {"team_members": self._members, "team_send": self._send, "team_status": self._status}

    def run(self, event: ToolCall) -> None:
        """Answer a call."""
        self._context.answer(event.call, self._result(event))

    def _result(self, event: ToolCall) -> JsonObject:
        try:
            text, details = self._answer(event)
        except Refused as refused:
            return {"text": str(refused), "details": {}, "isError": True}
        except PiTeamError as error:
            renamed = isinstance(error, GONE) and self._attachment.lose(error)
            if renamed and isinstance(error, MembershipLost):
                return self._result(event)  # nothing was done under the old alias
            return self._refusal(error)
        return {"text": text, "details": details, "isError": False}

    def _refusal(self, error: PiTeamError) -> JsonObject:
        told = wording.refusal_for_model(error, joined=self._context.is_joined)
        text = line(told, bounds.NOTICE_CHARACTERS)
        return {"text": text, "details": {"code": error.code}, "isError": True}

    def _answer(self, event: ToolCall) -> tuple[str, JsonObject]:
        tool = self._by_name.get(event.name)
        if tool is None:
            raise Refused(f"There is no tool {line(event.name, 40)}.")
        if not self._context.is_joined:
            raise Refused(_NOT_JOINED)
        return tool(event.params if isinstance(event.params, dict) else {})

    # --- team_members

    def _members(self, _params: dict[str, Any]) -> tuple[str, JsonObject]:
        snapshot = self._context.mailbox.snapshot(self._context.owner)
        others = [place for place in snapshot.members if place.member.alias != snapshot.alias]
        members = [
            {
                "alias": place.member.alias,
                "status": place.displayed if place.alive is not None else "not known yet",
                "directory": tail(place.member.cwd, bounds.DIRECTORY_CHARACTERS),
            }
            for place in others[: bounds.ROSTER_ENTRIES]
        ]
        omitted = len(others) - len(members)
        lines = [f"- {each['alias']}: {each['status']}, in {each['directory']}" for each in members]
        text = f"You are {snapshot.alias} in team {snapshot.team}. Teammates:\n" + "\n".join(
            lines or ["none yet"]
        )
        if omitted:
            text += f"\n{omitted} more are left out here."
        return text, {"team": snapshot.team, "alias": snapshot.alias, "members": members, "omitted": omitted}

    # --- team_send

    def _send(self, params: dict[str, Any]) -> tuple[str, JsonObject]:
        unknown = sorted(set(params) - set(_FIELDS))
        if unknown:
            raise Refused(f"team_send takes {', '.join(_FIELDS)}, not {line(', '.join(map(str, unknown)))}.")
        missing = [name for name in _FIELDS if not isinstance(params.get(name), str)]
        if missing:
            raise Refused(f"team_send needs {', '.join(missing)} as text.")
        kind = params["kind"]
        if kind not in {"request", "note"}:
            raise Refused('The kind is "request" (work, which brings a result) or "note" (information).')
        parent = self._parent()
        message = self._context.mailbox.send(
            self._context.owner,
            params["to"],
            kind=kind,
            subject=params["subject"],
            body=params["body"],
            parent=parent,
        )
        text = f"Queued {kind} {message.id} for {message.recipient}. Queued is not done."
        if kind == "request":
            text += " Its result will start a turn of its own: do not wait for it."
        details = {"id": message.id, "to": message.recipient, "kind": kind, "subject": line(message.subject)}
        return text, details | {"parent": parent}

    def _parent(self) -> str | None:
        """The message whose turn calls; none for a turn that is not a delivery's, or is not any more."""
        work = self._context.work
        if work is None or work.message is None or not work.started or work.report is not None:
            return None
        return work.message.id

    # --- team_status

    def _status(self, _params: dict[str, Any]) -> tuple[str, JsonObject]:
        snapshot = self._context.mailbox.snapshot(self._context.owner)
        now = self._context.clock.wall()
        me = snapshot.alias
        mine = [message for message in snapshot.messages if message.recipient == me]
        pending = [message for message in mine if message.state == "pending"]
        lists = {
            "emitted": _flow((each for each in snapshot.flow if each.sender == me), now),
            "queuedForMe": _queue((each for each in pending if each.kind != "result"), now),
            "resultsToReview": _queue((each for each in pending if each.kind == "result"), now),
            "otherTeamWork": _flow(
                (each for each in snapshot.flow if me not in {each.sender, each.recipient}), now
            ),
        }
        details: JsonObject = {"team": snapshot.team, "alias": me, "state": self._context.machine.state}
        lines = [f"You are {me} in team {snapshot.team}: {self._context.doing}. As of this moment:"]
        for name, items in lists.items():
            shown = items[: bounds.LIST_ENTRIES]
            omitted = len(items) - len(shown)
            details[name] = {"items": shown, "omitted": omitted}
            lines.append(f"{_HEADINGS[name]}: {len(items) or 'none'}")
            lines += [f"- {_told(item)}" for item in shown]
            if omitted:
                lines.append(f"- {omitted} more, left out here (the newest)")
        return "\n".join(lines), details


_HEADINGS: Final = {
    "emitted": "Your requests without a result",
    "queuedForMe": "Queued for you",
    "resultsToReview": "Results that wait for your review",
    "otherTeamWork": "Work among others",
}


def _flow(entries: Iterable[FlowEntry], now: float) -> list[JsonObject]:
    return [
        {
            "id": identifier(each.id),
            "from": each.sender,
            "to": each.recipient,
            "kind": "request",
            "state": each.state,
            "age": ago(each.created, now),
            "subject": line(each.subject),
        }
        for each in entries
    ]


def _queue(messages: Iterable[Message], now: float) -> Sequence[JsonObject]:
    return [
        {
            "id": identifier(each.id),
            "from": each.sender,
            "to": each.recipient,
            "kind": each.kind,
            "state": each.state if each.report is None else each.report.outcome,
            "age": ago(each.created, now),
            "subject": line(each.subject),
        }
        for each in messages
    ]


def _told(item: JsonObject) -> str:
    return (
        f"{item['kind']} from {item['from']} to {item['to']}, {item['state']}, {item['age']} old: "
        f'"{item["subject"]}" ({item["id"]})'
    )

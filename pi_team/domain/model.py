"""The team as immutable values, and their plain JSON forms.

A member and a message keep the canonical text that they have in the record (docs/record-format.md,
"Payload"): it carries what the fields do not, which is the order of the keys and the keys that only
a newer peer knows. A changed copy is made from that text, so nothing of it is lost, and the text of
what did not change is written again without being made again. Fields are read from the text or the
text is made from the fields, here only, so the two cannot differ.

Nothing here checks its input: :mod:`pi_team.domain.codec` checks what is read from a record, the
operations check what a caller gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, cast

import attrs

from pi_team import json_text

Kind: TypeAlias = Literal["request", "note", "result"]
MessageState: TypeAlias = Literal["pending", "processing", "completed", "interrupted", "seen"]
Status: TypeAlias = Literal["idle", "busy", "paused", "offline"]
Outcome: TypeAlias = Literal["completed", "failed", "interrupted"]
Verdict: TypeAlias = Literal["alive", "dead", "unknown"]

Judge: TypeAlias = Callable[[str, str], Verdict]
"""Says of an (alias, token) pair whether its session is alive, dead or unknown; never of an alias alone."""

NewId: TypeAlias = Callable[[], str]
"""Gives a new message id, unique for ever."""

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object with the record's keys."""


@attrs.frozen
class Membership:
    """What a joined caller holds: who it is, proven by the token; worthless once the pair is not current."""

    team: str
    alias: str
    session: str
    token: str = attrs.field(repr=False)


@attrs.frozen
class Report:
    """What a result says: its outcome, its text, the files and the tests that were observed."""

    outcome: Outcome
    body: str
    files: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Report:
        """Read a checked ``result`` object."""
        return cls(value["outcome"], value["body"], tuple(value["files"]), tuple(value["tests"]))

    def to_json(self) -> JsonObject:
        """The ``result`` object, with its keys in the record's order."""
        return {
            "outcome": self.outcome,
            "body": self.body,
            "files": list(self.files),
            "tests": list(self.tests),
        }


@attrs.frozen
class Member:
    """One entry of the roster. ``seen`` is in milliseconds since 1970; ``text`` is its canonical JSON."""

    team: str
    alias: str
    session: str
    token: str = attrs.field(repr=False)
    cwd: str
    pid: int
    seen: float
    status: Status
    text: str = attrs.field(eq=False, repr=False)

    @classmethod
    def from_json(cls, value: JsonObject) -> Member:
        """Read a checked member object."""
        return cls(
            value["team"],
            value["alias"],
            value["session"],
            value["token"],
            value["cwd"],
            int(value["pid"]),
            value["seen"],
            value["status"],
            json_text.canonical(value),
        )

    def to_json(self) -> JsonObject:
        """The member object as it is in the record, unknown keys included."""
        return cast("JsonObject", json_text.parse(self.text))


@attrs.frozen
class Message:
    """One request, note or result. ``created`` is in milliseconds since 1970; ``text`` is its canonical JSON.

    ``sender``, ``recipient`` and ``report`` are ``from``, ``to`` and ``result`` in the record.
    """

    id: str
    team: str
    sender: str
    recipient: str
    subject: str
    body: str
    kind: Kind
    state: MessageState
    created: float
    root_id: str
    parent_id: str | None
    claim: str | None = attrs.field(repr=False)
    report: Report | None
    text: str = attrs.field(eq=False, repr=False)

    @classmethod
    def from_json(cls, value: JsonObject) -> Message:
        """Read a checked message object."""
        report = value.get("result")
        return cls(
            value["id"],
            value["team"],
            value["from"],
            value["to"],
            value["subject"],
            value["body"],
            value["kind"],
            value["state"],
            value["created"],
            value["rootId"],
            value.get("parentId"),
            value.get("claim"),
            None if report is None else Report.from_json(report),
            json_text.canonical(value),
        )

    def to_json(self) -> JsonObject:
        """The message object as it is in the record, unknown keys included."""
        return cast("JsonObject", json_text.parse(self.text))


@attrs.frozen(eq=False)
class TeamState:
    """A team at one revision, compared by identity: what changed nothing answers the same object.

    Attributes:
        team: its name, which every member and message bears too.
        members: the roster, in the order in which the aliases first joined.
        messages: every message ever sent, in record order; none is ever removed.
        frame: the payload's keys in order, each with its canonical text; ``members`` and ``messages``
            stand in it with an empty text.
    """

    team: str
    members: tuple[Member, ...]
    messages: tuple[Message, ...]
    frame: tuple[tuple[str, str], ...]

    def member(self, alias: str) -> Member | None:
        """The member of that alias, if there is one."""
        for member in self.members:
            if member.alias == alias:
                return member
        return None

    def message(self, message_id: str) -> Message | None:
        """The message of that id, if there is one."""
        for message in self.messages:
            if message.id == message_id:
                return message
        return None

    def result_of(self, request_id: str) -> Message | None:
        """The result of a request, once there is one; there is never a second."""
        for message in self.messages:
            if message.kind == "result" and message.parent_id == request_id:
                return message
        return None

    def member_with_token(self, token: str) -> Member | None:
        """The member that holds a token, whatever its alias is by now."""
        for member in self.members:
            if member.token == token:
                return member
        return None

    def member_of_session(self, session: str) -> Member | None:
        """The member that a session joined as, whatever its alias is by now."""
        for member in self.members:
            if member.session == session:
                return member
        return None


FRAME: tuple[tuple[str, str], ...] = (("version", "1"), ("members", ""), ("messages", ""))
"""The keys of a payload that we begin."""


def changed_member(member: Member, **changes: str | float) -> Member:
    """A copy with other values, under the record's keys; every key keeps its place."""
    return Member.from_json(member.to_json() | changes)


def changed_message(message: Message, **changes: str | None) -> Message:
    """A copy with other values, under the record's keys; ``None`` removes a key, a new key comes last."""
    value = message.to_json() | changes
    return Message.from_json(
        {key: item for key, item in value.items() if item is not None or key not in changes}
    )

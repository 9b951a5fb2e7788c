"""Between a payload's text and a :class:`~pi_team.domain.model.TeamState` (docs/record-format.md, "Payload").

Reading is incremental. A record is read again after nearly every write, and nearly all of it is as
it was: an element whose text stands unchanged at its place is the object that it was before, found
by comparing text and not by parsing it. Writing joins the texts that the elements carry.

Lengths and counts bind what we write, not what we read: a peer that counts other characters, or
that overfilled a team, has not made the record corrupt. Unknown keys are kept everywhere.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast, get_args

from pi_team import json_text
from pi_team.domain.model import JsonObject, Kind, Member, Message, MessageState, Outcome, Status, TeamState
from pi_team.json_text import NotJson, Reader
from pi_team.limits import JSON_DEPTH, NAME_PATTERN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NAME = re.compile(NAME_PATTERN)
_VERSION = 1
_GROUP = 32
"""Elements compared at a time, at most; larger groups gain nothing and need large copies."""

_Element = TypeVar("_Element", Member, Message)


class PayloadNotJson(NotJson):
    """The payload's text is not one JSON value."""


class SchemaBroken(ValueError):
    """The payload is JSON, but breaks the schema or names another team."""


# --- the schema -----------------------------------------------------------------------------------


def is_name(value: object) -> bool:
    """Whether a value is a team name or an alias: the whole string, without a final line break."""
    return type(value) is str and _NAME.fullmatch(value) is not None


def _is_filled(value: object) -> bool:
    return type(value) is str and value != ""


def _is_text(value: object) -> bool:
    return type(value) is str


def _is_time(value: object) -> bool:
    return (type(value) is int or type(value) is float) and value >= 0


def _is_process(value: object) -> bool:
    return (type(value) is int or type(value) is float) and value >= 1 and value == int(value)


def _is_texts(value: object) -> bool:
    return type(value) is list and all(type(item) is str for item in value)


def is_report(value: object) -> bool:
    """Whether a value is a ``result`` object: an outcome, a text, files and tests."""
    return type(value) is dict and all(key in value and accepts(value[key]) for key, accepts, _, _ in _REPORT)


def _one_of(literal: Any) -> Callable[[object], bool]:
    allowed = frozenset(get_args(literal))
    return lambda value: type(value) is str and value in allowed


class _Field(NamedTuple):
    """A key of an object: what is accepted there, in code and in words."""

    key: str
    accepts: Callable[[object], bool]
    meaning: str
    optional: bool = False


_REPORT = (
    _Field("outcome", _one_of(Outcome), "an outcome"),
    _Field("body", _is_text, "a string"),
    _Field("files", _is_texts, "a list of strings"),
    _Field("tests", _is_texts, "a list of strings"),
)
_MEMBER = (
    _Field("team", is_name, "a name"),
    _Field("alias", is_name, "a name"),
    _Field("session", _is_filled, "a non-empty string"),
    _Field("token", _is_filled, "a non-empty string"),
    _Field("cwd", _is_text, "a string"),
    _Field("pid", _is_process, "a positive integer"),
    _Field("seen", _is_time, "a number of milliseconds"),
    _Field("status", _one_of(Status), "a status"),
)
_MESSAGE = (
    _Field("id", _is_filled, "a non-empty string"),
    _Field("team", is_name, "a name"),
    _Field("from", is_name, "a name"),
    _Field("to", is_name, "a name"),
    _Field("subject", _is_filled, "a non-empty string"),
    _Field("body", _is_text, "a string"),
    _Field("kind", _one_of(Kind), "a kind of message"),
    _Field("state", _one_of(MessageState), "a state of a message"),
    _Field("created", _is_time, "a number of milliseconds"),
    _Field("rootId", _is_filled, "a non-empty string"),
    _Field("parentId", _is_filled, "a non-empty string", optional=True),
    _Field("claim", _is_filled, "a non-empty string", optional=True),
    _Field("result", is_report, "a report", optional=True),
)


def _require(value: Any, fields: tuple[_Field, ...], where: str, team: str) -> JsonObject:
    if type(value) is not dict:
        raise SchemaBroken(f"{where} is not an object")
    for key, accepts, meaning, optional in fields:
        if key not in value:
            if not optional:
                raise SchemaBroken(f"{where} has no {key}")
        elif not accepts(value[key]):
            raise SchemaBroken(f"{key} of {where} is not {meaning}")
    if value["team"] != team:
        raise SchemaBroken(f"{where} names the team {value['team']!r}, not {team!r}")
    return value


# --- the codec ------------------------------------------------------------------------------------


class TeamCodec:
    """Reads and writes the payload of one team, and remembers the last one so that most of it is reused.

    Args:
        team: the name that the payload has to bear.
    """

    def __init__(self, team: str) -> None:
        self.team = team
        self._last: tuple[str, TeamState | None] = ("", None)  # one value, so that threads see it whole

    def decode(self, text: str) -> TeamState:
        """Read a payload's text, however it is formatted.

        Raises:
            PayloadNotJson: the text is not one JSON value.
            SchemaBroken: it is one, but not a payload of this team.
        """
        known_text, known = self._last
        if known is not None and text == known_text:
            return known
        try:
            state = self._read(text, known)
        except NotJson as error:
            raise PayloadNotJson(str(error)) from error
        except SchemaBroken:
            # Damage is passed over and a broken schema is not, so the answer must not depend on which
            # of the two stands first in the text.
            try:
                json_text.parse(text)
            except NotJson as error:
                raise PayloadNotJson(str(error)) from error
            raise
        self._last = (text, state)
        return state

    def encode(self, state: TeamState) -> str:
        """Write a state as the canonical payload text."""
        if state.team != self.team:
            raise ValueError(f"a state of {state.team!r} is not a payload of {self.team!r}")
        lists: dict[str, tuple[Member, ...] | tuple[Message, ...]]
        lists = {"members": state.members, "messages": state.messages}
        pieces: list[str] = []  # joined once: a copy of a large text costs more than all the rest
        for key, kept in state.frame:
            pieces.append(f"{',' if pieces else '{'}{json_text.canonical(key)}:{kept}")
            if key in lists:
                pieces.append("[")
                for element in lists[key]:
                    pieces += (element.text, ",")
                pieces[-1] = "]" if lists[key] else "[]"
        pieces.append("}")
        text = "".join(pieces)
        self._last = (text, state)
        return text

    def _read(self, text: str, known: TeamState | None) -> TeamState:
        reader = Reader(text)
        if not text.startswith("{", reader.position):
            raise SchemaBroken("the payload is not an object")
        reader.enter("{")
        frame: dict[str, str] = {}
        members: tuple[Member, ...] = ()
        messages: tuple[Message, ...] = ()
        while reader.more("}"):
            key = reader.key()
            if key in frame:
                raise NotJson(f"duplicate key {key!r}")
            frame[key] = ""
            if key == "members":
                before = known.members if known else ()
                members = self._elements(reader, key, before, _MEMBER, Member.from_json)
            elif key == "messages":
                earlier = known.messages if known else ()
                messages = self._elements(reader, key, earlier, _MESSAGE, Message.from_json)
            else:
                value = reader.span(key, JSON_DEPTH - 1).value
                if key == "version" and (isinstance(value, bool) or value != _VERSION):
                    raise SchemaBroken(
                        f"the payload has version {json_text.canonical(value)}, not {_VERSION}"
                    )
                frame[key] = json_text.canonical(value)
        reader.finish()
        for key in ("version", "members", "messages"):
            if key not in frame:
                raise SchemaBroken(f"the payload has no {key}")
        ordered = tuple((key, frame[key]) for key in json_text.ordered(frame))
        return TeamState(self.team, members, messages, ordered)

    def _elements(
        self,
        reader: Reader,
        name: str,
        known: Sequence[_Element],
        fields: tuple[_Field, ...],
        build: Callable[[JsonObject], _Element],
    ) -> tuple[_Element, ...]:
        if not reader.text.startswith("[", reader.position):
            raise SchemaBroken(f"{name} is not a list")
        elements: list[_Element] = []

        def read(value: object) -> None:
            elements.append(build(_require(value, fields, f"{name}[{len(elements)}]", self.team)))

        if not known:  # nothing to compare with, so the list is read at once
            for value in cast("list[object]", reader.span(levels=JSON_DEPTH - 1).value):
                read(value)
            return tuple(elements)
        reader.enter("[")
        while reader.more("]"):
            following = known[len(elements)] if len(elements) < len(known) else None
            if following is not None and reader.text.startswith(following.text, reader.position):
                elements.append(following)
                reader.passed(reader.position + len(following.text))
            else:
                read(reader.span(levels=JSON_DEPTH - 2).value)
            _reuse(reader, known, elements)
        return tuple(elements)


def _reuse(reader: Reader, known: Sequence[_Element], elements: list[_Element]) -> None:
    """Take over the elements that follow unchanged, comparing ever larger groups up to the next change."""
    text, position = reader.text, reader.position
    size = 1
    while size and len(elements) < len(known):
        group = known[len(elements) : len(elements) + size]
        joined = f",{','.join([element.text for element in group])}"
        if text.startswith(joined, position):
            elements.extend(group)
            position += len(joined)
            size = min(2 * size, _GROUP)
        else:
            size //= 2
    if position != reader.position:
        reader.passed(position)

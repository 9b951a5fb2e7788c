"""The envelope of a record: bytes ↔ revision, hash, publication, parent and payload text.

docs/record-format.md, "Envelope". The payload stays text here: it is hashed and kept exactly as it
stands in the file, and only a codec (the domain's) looks inside.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final, Literal

import attrs

from pi_team import json_text
from pi_team.errors import RecordCorrupt, UnsupportedSchema
from pi_team.limits import IDENTIFIER_CHARACTERS, REVISION_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pi_team.json_text import JsonValue

SCHEMA_VERSION: Final = 1
_HEAD: Final = b'{"schemaVersion":1,"revision":'
_PAYLOAD: Final = b',"payload":'
_TAIL: Final = 8_192
"""Bytes at the end of a payload that are always hashed anew: where messages are added and change."""
_IDENTIFIER: Final = re.compile(rf"[0-9A-Za-z-]{{1,{IDENTIFIER_CHARACTERS}}}")
_KNOWN: Final = frozenset({"schemaVersion", "revision", "contentHash", "publication", "previous", "payload"})
Identity = tuple[Literal["publication", "content"], str]
"""What a record or slot is known by: its publication id; an older peer's: its content hash."""


class Damaged(ValueError):
    """The bytes were read and are not a record: not JSON, a wrong hash, or a wrong revision.

    Only this makes a slot one to skip (docs/protocol.md, "A write", step 2).
    """


@attrs.frozen(slots=True)
class Publication:
    """One attempt to publish: an id of its own, and the process that made it.

    Attributes:
        id: a UUID unique to the attempt.
        pid: the writer's process id.
        start: its start, counted from boot (the unit is the system's).
        host: the node name.
        boot: the boot id.
    """

    id: str
    pid: int
    start: float
    host: str
    boot: str

    def to_json(self) -> dict[str, JsonValue]:
        """The object in the envelope."""
        return {"id": self.id, "pid": self.pid, "start": self.start, "host": self.host, "boot": self.boot}


@attrs.frozen(slots=True)
class Previous:
    """The record that a publication was based on.

    Attributes:
        revision: its revision; 0 for nothing and for a record without an envelope.
        content_hash: the SHA-256 of its payload text; of nothing for a new team.
        publication: its publication id, or None where an older peer wrote it.
    """

    revision: int
    content_hash: str
    publication: str | None

    @property
    def identity(self) -> Identity:
        """The identity that the parent is known by."""
        if self.publication is not None:
            return ("publication", self.publication)
        return ("content", self.content_hash)


NOTHING: Final = Previous(0, hashlib.sha256(b"").hexdigest(), None)
"""The parent of a new team's first record."""


@attrs.frozen(slots=True)
class Envelope:
    """A decoded record.

    Attributes:
        revision: 1 … 2^53-1, or 0 for a record without an envelope.
        content_hash: the SHA-256 of the payload text, lower-case hexadecimal.
        payload: the payload text, exactly as it stands in the file.
        publication: who published it, or None (an older peer, or no envelope).
        previous: its parent, or None with no publication.
        extra: keys of the envelope that this release does not know, kept when it is rewritten.
    """

    revision: int
    content_hash: str
    payload: str
    publication: Publication | None = None
    previous: Previous | None = None
    extra: Mapping[str, JsonValue] = attrs.field(factory=dict)

    @property
    def identity(self) -> Identity:
        """What this record is known by."""
        if self.publication is not None:
            return ("publication", self.publication.id)
        return ("content", self.content_hash)

    def as_previous(self) -> Previous:
        """This record as the parent of the next one."""
        return Previous(self.revision, self.content_hash, self.publication.id if self.publication else None)


class _Hasher:
    """SHA-256 of payloads most of which is as it was: goes on from where the last one began to differ.

    The beginning of a payload, all but its last kilobytes, is kept with the state of its hash. Where the next
    payload begins with the very same bytes, found by comparing them, only the rest is hashed.
    """

    def __init__(self) -> None:
        self._beginning = (b"", hashlib.sha256())  # one value, so that threads see it whole

    def digest(self, data: bytes, start: int, end: int) -> str:
        """The hash of `data[start:end]`, lower-case hexadecimal."""
        beginning, state = self._beginning
        if not data.startswith(beginning, start, end):
            beginning, state = b"", hashlib.sha256()
        rest = start + len(beginning)
        state = state.copy()
        if end - rest > 2 * _TAIL:
            state.update(memoryview(data)[rest : end - _TAIL])
            self._beginning = (data[start : end - _TAIL], state.copy())
            rest = end - _TAIL
        state.update(memoryview(data)[rest:end])
        return state.hexdigest()


_hasher: Final = _Hasher()


def content_hash(payload: str) -> str:
    """The SHA-256 of a payload text, lower-case hexadecimal."""
    return hashlib.sha256(payload.encode()).hexdigest()


_recent: Final[list[tuple[bytes, Envelope]]] = []
"""The record that was encoded or decoded last, if any: nearly always the one that is read next."""


def encode(
    revision: int, payload: str, publication: Publication, previous: Previous, extra: Mapping[str, JsonValue]
) -> tuple[bytes, str]:
    """The bytes of a record and the hash of its payload.

    Args:
        revision: its number.
        payload: its canonical text.
        publication: who publishes it.
        previous: its parent.
        extra: unknown keys of the envelope, to keep.
    """
    data = payload.encode()
    digest = _hasher.digest(data, 0, len(data))
    parent: JsonValue = {
        "revision": previous.revision,
        "contentHash": previous.content_hash,
        "publication": previous.publication,
    }
    head = json_text.canonical(
        {
            "schemaVersion": SCHEMA_VERSION,
            "revision": revision,
            "contentHash": digest,
            "publication": publication.to_json(),
            "previous": parent,
            **extra,
        }
    )
    record = b"".join((head[:-1].encode(), _PAYLOAD, data, b"}"))
    _recent[:] = [(record, Envelope(revision, digest, payload, publication, previous, extra))]
    return record, digest


def decode(data: bytes) -> Envelope:
    """Decode the bytes of a record; the payload is hashed, and not looked into where the hash fits.

    Bytes that are, to the last one, those of the record before need no second look.

    Raises:
        Damaged: not JSON, a payload whose hash is wrong, or a revision that is none.
        UnsupportedSchema: another schema version.
        RecordCorrupt: a `publication` or `previous` of a wrong shape.
    """
    for known, envelope in _recent:
        if data == known:
            return envelope
    envelope = _decode_own(data) or _decode_any(data)
    _recent[:] = [(data, envelope)]
    return envelope


def _decode_any(data: bytes) -> Envelope:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Damaged(f"it is not UTF-8 text ({error.reason} at byte {error.start})") from error
    try:
        entries = json_text.members_of(text)
    except json_text.NotJson as error:
        raise Damaged(f"it is not JSON: {error}") from error
    values = {entry.key: entry.value for entry in entries}
    if "schemaVersion" not in values:
        return Envelope(0, content_hash(text), text)
    _check_version(values["schemaVersion"])
    span = next((entry for entry in entries if entry.key == "payload"), None)
    if span is None:
        raise Damaged("it has no payload")
    payload = text[span.start : span.end]
    expected = values.get("contentHash")
    if content_hash(payload) != expected:
        # A record that somebody formatted anew is good when its canonical text is.
        payload = json_text.canonical(span.value)
        if content_hash(payload) != expected:
            raise Damaged("its content hash does not fit its payload")
    return _envelope(values, payload)


def _decode_own(data: bytes) -> Envelope | None:
    """The common case: the payload is the last key of a compact envelope and its hash fits; else None."""
    if not data.startswith(_HEAD) or not data.endswith(b"}"):
        return None
    cut = data.find(_PAYLOAD)
    if cut < 0:
        return None
    start, end = cut + len(_PAYLOAD), len(data) - 1
    try:
        values = json_text.parse(data[:cut].decode() + "}")
        payload = str(memoryview(data)[start:end], "utf-8")
    except (json_text.NotJson, UnicodeDecodeError):
        return None  # the first `,"payload":` stood inside a value, or it is no text: the slow way tells
    if not isinstance(values, dict) or "payload" in values:
        return None  # a second payload, its key written with an escape: the slow way refuses it
    if _hasher.digest(data, start, end) != values.get("contentHash"):
        return None
    return _envelope(values, payload)


def _check_version(version: JsonValue) -> None:
    if version != SCHEMA_VERSION or isinstance(version, bool):
        raise UnsupportedSchema(f"the record has schema version {json_text.canonical(version)}, not 1")


def _envelope(values: Mapping[str, Any], payload: str) -> Envelope:
    revision = values.get("revision")
    if not isinstance(revision, int) or isinstance(revision, bool) or not 1 <= revision <= REVISION_MAX:
        raise Damaged("its revision is not a positive integer")
    publication, previous = values.get("publication"), values.get("previous")
    extra = {key: value for key, value in values.items() if key not in _KNOWN}
    if publication is None:
        return Envelope(revision, values["contentHash"], payload, extra=extra)
    return Envelope(
        revision, values["contentHash"], payload, _publication(publication), _previous(previous), extra
    )


def _publication(value: object) -> Publication:
    if (
        isinstance(value, dict)
        and _is_identifier(value.get("id"))
        and isinstance(value.get("pid"), int)
        and isinstance(value.get("start"), int | float)
        and isinstance(value.get("host"), str)
        and isinstance(value.get("boot"), str)
    ):
        return Publication(value["id"], value["pid"], value["start"], value["host"], value["boot"])
    raise RecordCorrupt("the record's `publication` has a wrong shape")


def _previous(value: object) -> Previous:
    if (
        isinstance(value, dict)
        and isinstance(value.get("revision"), int)
        and isinstance(value.get("contentHash"), str)
        and (value.get("publication") is None or _is_identifier(value["publication"]))
    ):
        return Previous(value["revision"], value["contentHash"], value.get("publication"))
    raise RecordCorrupt("the record's `previous` has a wrong shape")


def _is_identifier(value: object) -> bool:
    # An id becomes part of a file name: nothing that could leave the directory or hide a field.
    return isinstance(value, str) and _IDENTIFIER.fullmatch(value) is not None

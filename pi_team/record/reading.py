"""Reading a record or a slot: safe opening, decoding, and what makes one damaged.

Shared by writers (docs/protocol.md, "A write", steps 1 and 2) and by readers, which need nothing else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

import attrs

from pi_team import json_text
from pi_team.errors import RecordCorrupt, RecordMissing, TeamMoved
from pi_team.limits import RECORD_BYTES, REVISION_MAX
from pi_team.record import envelope
from pi_team.record.directory import RECORD, TeamDirectory, has_moved, moved
from pi_team.record.envelope import Damaged, Envelope, Identity, Previous
from pi_team.record.filesystem import (
    close_quietly,
    open_private_file,
    read_all,
    same_file,
    storage_error,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from pi_team.json_text import JsonValue
    from pi_team.record.filesystem import FileSystem

T = TypeVar("T")

_SLOT: Final = re.compile(r"([1-9][0-9]{0,15})\.json")


class Codec(Protocol[T]):
    """Payload text ↔ value. The record layer knows no more of a payload than this."""

    def decode(self, text: str) -> T:
        """The value of a payload text.

        Raises:
            json_text.NotJson: the text is not one JSON value.
            ValueError: it is, and breaks the payload's schema.
        """

    def encode(self, value: T) -> str:
        """The canonical text of a value."""


@attrs.frozen(slots=True)
class Version(Generic[T]):
    """One revision of a record, decoded.

    Attributes:
        revision: its number; 0 for a record without an envelope.
        previous: this version as the parent of the next one.
        value: the decoded payload.
        extra: unknown keys of its envelope.
    """

    revision: int
    previous: Previous
    value: T
    extra: Mapping[str, JsonValue]


@attrs.frozen(slots=True)
class Pinned(Generic[T]):
    """A record that was read, and its open descriptor, which keeps its inode number from being reused.

    Attributes:
        fd: the descriptor.
        status: the state of the file when it was read.
        identity: what the record is known by.
        version: what it says.
    """

    fd: int
    status: os.stat_result
    identity: Identity
    version: Version[T]


def slot_name(revision: int) -> str:
    """The name of a slot in `revisions/`."""
    return f"{revision}.json"


def slot_number(name: str) -> int | None:
    """The revision of a slot's name, or None for any other name."""
    match = _SLOT.fullmatch(name)
    number = int(match[1]) if match else 0
    return number if 1 <= number <= REVISION_MAX else None


def read_bytes(fs: FileSystem, name: str, dir_fd: int, shown: str) -> bytes:
    """The bytes of a file that must be ours alone.

    Raises:
        FileNotFoundError, RecordUnsafe, OSError: see :func:`open_private_file`.
    """
    fd, _ = open_private_file(fs, name, dir_fd, shown, RECORD_BYTES)
    try:
        return _read_checked(fs, fd)
    finally:
        close_quietly(fs, fd)


def _read_checked(fs: FileSystem, fd: int) -> bytes:
    data = read_all(fs, fd, RECORD_BYTES)
    if len(data) > RECORD_BYTES:
        raise Damaged(f"it grew beyond {RECORD_BYTES:,} bytes while it was read")
    return data


def decode_version(codec: Codec[T], decoded: Envelope, shown: str) -> Version[T]:
    """Decode the payload of an envelope.

    Raises:
        Damaged: the payload is not JSON.
        RecordCorrupt: it is, and breaks the schema, or names another team.
    """
    try:
        value = codec.decode(decoded.payload)
    except json_text.NotJson as error:
        raise Damaged(f"its payload is not JSON: {error}") from error
    except ValueError as error:
        raise RecordCorrupt(f"{shown} breaks the schema: {error}") from error
    return Version(decoded.revision, decoded.as_previous(), value, decoded.extra)


def pin_record(directory: TeamDirectory, codec: Codec[T]) -> Pinned[T]:
    """Open, read and decode the record; the caller closes the descriptor.

    Raises:
        RecordMissing: the directory has none, and is still the team's.
        TeamMoved: the directory has none, or one that cannot be understood, and is the team's no longer.
        RecordUnsafe, RecordCorrupt, UnsupportedSchema: it cannot be trusted or understood.
        StorageError: the system refused.
    """
    fs, shown = directory.fs, directory.shown(RECORD)
    try:
        fd, status = open_private_file(fs, RECORD, directory.fd, shown, RECORD_BYTES)
    except FileNotFoundError as error:
        raise missing(directory) from error
    except OSError as error:
        raise storage_error(error, f"cannot read {shown}") from error
    try:
        decoded = envelope.decode(_read_checked(fs, fd))
        version = decode_version(codec, decoded, shown)
    except BaseException as error:
        close_quietly(fs, fd)
        if isinstance(error, Damaged | RecordCorrupt) and has_moved(directory):
            raise moved(directory.name) from error  # it may bear its new name already
        if isinstance(error, Damaged):
            raise RecordCorrupt(f"{shown} is damaged: {error}") from error
        if isinstance(error, OSError):
            raise storage_error(error, f"cannot read {shown}") from error
        raise
    return Pinned(fd, status, decoded.identity, version)


def missing(directory: TeamDirectory) -> RecordMissing | TeamMoved:
    """Why an open team directory has no record."""
    if has_moved(directory):
        return moved(directory.name)
    return RecordMissing(f"team {directory.name} has no record ({directory.shown(RECORD)})")


def read_envelope(directory: TeamDirectory) -> Envelope | None:
    """The record as it is now, without its payload decoded, or None where there is none.

    Raises:
        Damaged, RecordUnsafe, UnsupportedSchema, RecordCorrupt, OSError: as for :func:`pin_record`.
    """
    try:
        data = read_bytes(directory.fs, RECORD, directory.fd, directory.shown(RECORD))
    except FileNotFoundError:
        return None
    return envelope.decode(data)


def is_unchanged(directory: TeamDirectory, pinned: Pinned[T]) -> bool:
    """Whether the record still is the one that was read.

    The pinned inode is the shortcut; where it differs the identity decides, since some file systems give
    two links of one file different numbers. Raises as :func:`read_envelope`.
    """
    try:
        if same_file(directory.fs.stat(RECORD, directory.fd), pinned.status):
            return True
    except FileNotFoundError:
        return False
    now = read_envelope(directory)
    return now is not None and now.identity == pinned.identity and now.revision == pinned.version.revision


def read_slot(directory: TeamDirectory, revision: int) -> Envelope | None:
    """The envelope in a slot, or None where the slot is free.

    Raises:
        Damaged: it was read and is not a record of that revision: a slot to skip.
        RecordUnsafe, UnsupportedSchema, RecordCorrupt, OSError: an error of the operation, never a reason
            to skip: two writers that disagree on whether a slot counts would both publish.
    """
    name = slot_name(revision)
    shown = directory.shown(f"revisions/{name}")
    try:
        data = read_bytes(directory.fs, name, directory.revisions_fd, shown)
    except FileNotFoundError:
        return None
    decoded = envelope.decode(data)
    if decoded.revision != revision:
        raise Damaged(f"its revision is {decoded.revision} and not {revision}")
    return decoded

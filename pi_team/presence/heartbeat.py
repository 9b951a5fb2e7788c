"""The presence files of a team: `presence/ALIAS.json`, one per member, rewritten at every heartbeat.

Presence is a hint and no record: it is replaced atomically, but never synced, and what is missing,
unsafe or malformed is no error of an operation (docs/record-format.md, "Presence"). Three rules matter:

- a heartbeat never creates a directory, and writes only while the path of the team still names the
  directory that was opened when the session joined: it cannot resurrect a team, nor reach into
  another one that took the name;
- a presence is removed only by its own token;
- whoever could not look has seen nothing: that is told apart from a presence that is not there.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias, cast

import attrs

from pi_team.errors import RecordUnsafe
from pi_team.json_text import parse
from pi_team.limits import IDENTIFIER_CHARACTERS, PRESENCE_BYTES
from pi_team.presence.process import Process, owner_token, this_process
from pi_team.record.directory import PRESENCE
from pi_team.record.filesystem import (
    close_quietly,
    open_private_dir,
    open_private_file,
    read_all,
    same_file,
    unlink_quietly,
    write_all,
)

if TYPE_CHECKING:
    import os
    from types import TracebackType

    from pi_team.domain.model import Status
    from pi_team.record.directory import TeamDirectory

Fault: TypeAlias = Literal["", "missing", "unsafe", "malformed", "unreadable"]
Version: TypeAlias = tuple[int, int, int]

_STATUSES: Final = frozenset({"idle", "busy", "paused", "offline"})
_MILLISECONDS_END: Final = 1e16
"""No clock shows a time beyond it; comparisons with it are false for what is not a number."""
_HOST_CHARACTERS: Final = 255
_HOST_BYTES: Final = 2_042
"""What is left for a host's name beside the longest token."""
_ESCAPED: Final = 12
"""Bytes of the longest escape of a character, which is of two surrogates."""
_attempts: Final = itertools.count()


@attrs.frozen(slots=True)
class Presence:
    """What a member last said about itself.

    Attributes:
        token: its ownership token.
        status: `idle`, `busy` or `paused` (or, from an older peer, `offline`).
        seen: when it said so, in milliseconds since 1970 by its wall clock.
        start, host, boot, pidns: as in :class:`Process`; None and "" from an older peer.
    """

    token: str
    status: Status
    seen: float
    start: int | None = None
    host: str = ""
    boot: str = ""
    pidns: str = ""

    def process(self, pid: int) -> Process | None:
        """The member's process; its pid stands in the record. None: an older peer, which does not name it."""
        if not (self.host or self.boot):
            return None
        return Process(pid, self.start, self.host, self.boot, self.pidns)


@attrs.frozen(slots=True)
class Sighting:
    """What a look at a presence file found.

    Attributes:
        presence: what it says; None where there is a fault.
        fault: `missing`, `unsafe` and `malformed` count as missing: a living member's next heartbeat puts a
            good file there. `unreadable`: the look itself failed, and is evidence of nothing.
        detail: the fault in words, for `pi-team doctor`.
        version: inode, size and time of change, which tell an unchanged file; None where there is none.
    """

    presence: Presence | None
    fault: Fault = ""
    detail: str = ""
    version: Version | None = None


_MISSING: Final = Sighting(None, "missing", "is not there")


def _version(status: os.stat_result) -> Version:
    # The time of change, not of modification: it moves with mode and owner too, and nobody can set it.
    return (status.st_ino, status.st_size, status.st_ctime_ns)


def _unreadable(error: Exception) -> Sighting:
    return Sighting(None, "unreadable", str(error))


# --- bytes ----------------------------------------------------------------------------------------


def encode(presence: Presence) -> bytes:
    """A presence as it stands in its file: one line of JSON, ASCII; a long host's name is cut."""
    host = presence.host[:_HOST_CHARACTERS]
    if len(json.dumps(host)) > _HOST_BYTES:
        host = host[: _HOST_BYTES // _ESCAPED]
    fields = {
        "token": presence.token,
        "status": presence.status,
        "seen": presence.seen,
        "start": presence.start,
        "host": host,
        "boot": presence.boot,
        "pidns": presence.pidns,
    }
    return json.dumps(fields, separators=(",", ":")).encode("ascii")


def decode(data: bytes) -> Presence:
    """Read a presence of ours or of an older peer (token, status and seen only); unknown keys are ignored.

    Raises:
        ValueError: it is not one.
    """
    if len(data) > PRESENCE_BYTES:
        raise ValueError(f"has more than {PRESENCE_BYTES:,} bytes")
    value = parse(data.decode("utf-8"))
    if not isinstance(value, dict):
        raise ValueError("is not a JSON object")  # noqa: TRY004 - the text is wrong, not a caller's type
    token, status, seen = value.get("token"), value.get("status"), value.get("seen")
    if not isinstance(token, str) or not 1 <= len(token) <= IDENTIFIER_CHARACTERS:
        raise ValueError("has no token")
    if not isinstance(status, str) or status not in _STATUSES:
        raise ValueError("has no status")
    if not isinstance(seen, int | float) or isinstance(seen, bool) or not 0 <= seen < _MILLISECONDS_END:
        raise ValueError("does not say when its member was seen")
    start = value.get("start")
    host, boot, pidns = value.get("host"), value.get("boot"), value.get("pidns")
    return Presence(
        token,
        cast("Status", status),
        seen,
        start if isinstance(start, int) and not isinstance(start, bool) else None,
        host if isinstance(host, str) else "",
        boot if isinstance(boot, str) else "",
        pidns if isinstance(pidns, str) else "",
    )


# --- files ----------------------------------------------------------------------------------------


class PresenceDirectory:
    """The `presence/` of an open team, used by descriptor; opened at its first use.

    Args:
        team: the open team. A joined session keeps it open from its join on: the open descriptor is what
            tells its team from one that takes the same name later.
    """

    def __init__(self, team: TeamDirectory) -> None:
        self._team = team
        self._fs = team.fs
        self._fd = -1

    def _descriptor(self) -> int:
        """Raises FileNotFoundError, RecordUnsafe, OSError."""
        if self._fd < 0:
            self._fd = open_private_dir(self._fs, PRESENCE, self._team.fd, self._team.shown(PRESENCE))
        return self._fd

    def _was_replaced(self) -> bool:
        """Whether the team has another `presence/`, or none, by now. Raises OSError."""
        try:
            there = self._fs.stat(PRESENCE, self._team.fd)
        except FileNotFoundError:
            return True
        return not same_file(there, self._fs.fstat(self._fd))

    def read(self, alias: str, known: Sighting | None = None) -> Sighting:
        """Look at a member's presence. Never raises OSError.

        Args:
            alias: a valid name.
            known: an earlier sighting; returned itself, after one `stat`, where the file is unchanged.
        """
        name = f"{alias}.json"
        try:
            fd = self._descriptor()
            try:
                version = _version(self._fs.stat(name, fd))
            except FileNotFoundError:
                if not self._was_replaced():
                    return _MISSING
                # No heartbeat reaches the directory that is open here. The next look opens the new one.
                self.close()
                return Sighting(None, "unreadable", f"{self._team.shown(PRESENCE)} was removed or replaced")
        except (OSError, RecordUnsafe) as error:
            return _unreadable(error)
        if known is not None and known.version == version:
            return known
        return self._load(name, fd, version)

    def _load(self, name: str, fd: int, version: Version) -> Sighting:
        try:
            file, status = open_private_file(self._fs, name, fd, name, PRESENCE_BYTES)
            try:
                data = read_all(self._fs, file, PRESENCE_BYTES)
            finally:
                self._fs.close(file)
        except FileNotFoundError:
            return _MISSING
        except RecordUnsafe as error:
            return Sighting(None, "unsafe", error.message, version)
        except PermissionError:
            return Sighting(None, "unsafe", f"{name} may not be read", version)
        except OSError as error:
            return _unreadable(error)
        try:
            return Sighting(decode(data), version=_version(status))
        except ValueError as error:
            return Sighting(None, "malformed", f"{name}: {error}", _version(status))

    def make(self) -> None:
        """Make the directory where an older peer has not made it yet; for a join, never for a heartbeat.

        Raises:
            OSError: the system refused.
        """
        with contextlib.suppress(FileExistsError):
            self._fs.mkdir(PRESENCE, self._team.fd)

    def write(self, alias: str, token: str, status: Status, *, process: Process, now: float) -> bool:
        """Say that a member is there. Replaces what stood under the alias, atomically and unsynced.

        Args:
            alias: its alias, a valid name.
            token: its ownership token.
            status: what it is doing.
            process: the member's process, which need not be the calling one.
            now: the wall clock, in seconds since 1970.

        Returns:
            False: the team was renamed, deleted or created anew, or has no `presence/`; nothing was
            written to any team that the path names now. No error: the session finds out from the record.

        Raises:
            RecordUnsafe: `presence/` is not ours alone.
            OSError: the system refused.
        """
        if not self._team.is_current():
            return False
        presence = Presence(
            token, status, round(now * 1_000), process.start, process.host, process.boot, process.pidns
        )
        try:
            if self._fd >= 0 and self._was_replaced():
                self.close()
            self._replace(alias, encode(presence), self._descriptor())
        except FileNotFoundError:
            return False
        return self._team.is_current()

    def _replace(self, alias: str, data: bytes, fd: int) -> None:
        # The number keeps two threads of one process apart; the owner tells a sweep whose file it is.
        temporary = f".{alias}-{next(_attempts)}.{owner_token(this_process())}.tmp"
        try:
            # Within: a create that is refused may have made the file, where its mode cannot be set.
            file = self._fs.create(temporary, fd)
            try:
                write_all(self._fs, file, data)
            finally:
                self._fs.close(file)
            self._fs.rename(temporary, fd, f"{alias}.json", fd)
        except BaseException:
            unlink_quietly(self._fs, temporary, fd)
            raise

    def remove(self, alias: str, token: str) -> bool:
        """Remove a member's presence where it bears this token; whether it was removed.

        Whoever takes the alias between the look and the removal is without presence until its next
        heartbeat, which is sooner than anybody takes that for its end.

        Raises:
            OSError: the system refused.
        """
        presence = self.read(alias).presence
        if presence is None or presence.token != token:
            return False
        try:
            self._fs.unlink(f"{alias}.json", self._descriptor())
        except FileNotFoundError:
            return False
        return True

    def close(self) -> None:
        """Close the descriptor of `presence/`; the team's stays its owner's."""
        fd, self._fd = self._fd, -1  # forgotten first: closed again, its number may be another file's
        if fd >= 0:
            close_quietly(self._fs, fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

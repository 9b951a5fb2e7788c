"""The lines between a host and the bridge, and what stands in them (docs/session.md, "The bridge").

One JSON object a line, at most a million bytes. A line that is none is answered, never fatal.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from pi_team import json_text
from pi_team.errors import Busy, PiTeamError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LINE_BYTES: Final = 1_000_000
"""Of a line, its end not counted."""
UNANSWERED: Final = 64
"""Requests of the host that may wait for their answer at once."""
HAPPENED: Final = frozenset({"typed", "settled", "shutdown"})
"""Methods that tell what has happened, and will not be told again: these are never too many."""
HELD_BYTES: Final = 4_000_000
"""Of lines that were read and not yet looked at; then no more is read."""
_CHUNK: Final = 65_536
_HELD_POLL: Final = 50
"""Milliseconds between two looks at a pipe that is not read for the moment."""

Identifier: TypeAlias = int | str


@attrs.frozen
class Request:
    """The host asks for something."""

    id: Identifier
    method: str
    params: dict[str, Any]


@attrs.frozen
class Notice:
    """The host tells something."""

    method: str
    params: dict[str, Any]


@attrs.frozen
class Reply:
    """The host answers; `result` is None where it answered with an error."""

    id: Identifier
    result: dict[str, Any] | None


@attrs.frozen
class Refused:
    """What gets an error for an answer, whatever it was."""

    id: Identifier | None
    error: PiTeamError


Incoming: TypeAlias = Request | Notice | Reply | Refused


def understood(line: bytes) -> Incoming:
    """What a line says."""
    identifier: Identifier | None = None
    try:
        value = json_text.parse(line.decode("utf-8"))
        if not isinstance(value, dict):
            return Refused(None, ProtocolError("the line is not a JSON object"))
        identifier = _identifier(value)
        return _message(value, identifier)
    except ProtocolError as error:
        return Refused(identifier, error)
    except ValueError:  # not UTF-8, or not JSON
        return Refused(None, ProtocolError("the line is not one JSON value in UTF-8"))


def _identifier(value: dict[str, Any]) -> Identifier | None:
    given = value.get("id")
    if given is None or (isinstance(given, int | str) and not isinstance(given, bool)):
        return given
    raise ProtocolError("the id is neither an integer nor text")


def _message(value: dict[str, Any], identifier: Identifier | None) -> Incoming:
    method, params = value.get("method"), value.get("params", {})
    if method is None and identifier is not None and ("result" in value or "error" in value):
        result = value.get("result")
        return Reply(identifier, result if isinstance(result, dict) else None)
    if not isinstance(method, str):
        raise ProtocolError("a message has a method, or an id and a result or an error")
    if not isinstance(params, dict):
        raise ProtocolError(f"the params of {method[:40]!r} are not an object")
    if identifier is None:
        return Notice(method, params)
    return Request(identifier, method, params)


class Splitter:
    """Cuts a stream of bytes into lines; one that is too long becomes None."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """The lines that this chunk completes."""
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            self._add(piece)
            yield self._taken()
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= LINE_BYTES:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def _taken(self) -> bytes | None:
        line = b"".join(self._pieces) if self._size <= LINE_BYTES else None
        self._pieces, self._size = [], 0
        return line


class Inbox:
    """Reads lines in a thread of its own, and holds a bounded amount of them for the one who works.

    Args:
        fd: where the host writes.
        ended: called in the reading thread when the host has closed it.
    """

    def __init__(self, fd: int, ended: Callable[[], None]) -> None:
        self._fd = fd
        self._ended = ended
        self._ready = threading.Condition()
        self._held: deque[tuple[Incoming, int]] = deque()
        self._bytes = 0
        self._woken = False
        self._unanswered = 0

    def start(self) -> None:
        """Begin to read."""
        threading.Thread(target=self._read, name="reader", daemon=True).start()

    def wake(self) -> None:
        """End the present or the next :meth:`take` at once; from any thread."""
        with self._ready:
            self._woken = True
            self._ready.notify()

    def take(self, seconds: float) -> tuple[Incoming | None, bool]:
        """The next line, if one comes in that time, and whether somebody has woken."""
        with self._ready:
            if not self._held and not self._woken:
                self._ready.wait(seconds)
            woken, self._woken = self._woken, False
            if not self._held:
                return None, woken
            incoming, size = self._held.popleft()
            self._bytes -= size
            return incoming, woken

    def answered(self) -> None:
        """A request of the host has its answer."""
        with self._ready:
            self._unanswered -= 1

    def _read(self) -> None:
        splitter = Splitter()
        try:
            while chunk := self._chunk():
                for line in splitter.feed(chunk):
                    self._look_at(line)
        finally:  # whatever happens here: a bridge that cannot read must not stay
            self._ended()

    def _look_at(self, line: bytes | None) -> None:
        if line is None:
            what = f"the line has more than {LINE_BYTES:,} bytes and was skipped"
            self._hold(Refused(None, ProtocolError(what)), 0)
        elif line.strip():
            self._hold(understood(line), len(line))

    def _chunk(self) -> bytes:
        try:
            if self._is_closed_while_full():
                return b""
            return os.read(self._fd, _CHUNK)
        except OSError:
            return b""

    def _is_closed_while_full(self) -> bool:
        """Wait for room; whether the host closed its end meanwhile, which is not read from then."""
        while self._bytes > HELD_BYTES:
            poll = select.poll()
            poll.register(self._fd, 0)
            if poll.poll(_HELD_POLL):
                return True
        return False

    def _hold(self, incoming: Incoming, size: int) -> None:
        with self._ready:
            if isinstance(incoming, Request):
                if self._unanswered >= UNANSWERED and incoming.method not in HAPPENED:
                    busy = Busy(
                        f"{UNANSWERED} requests wait for their answer",
                        hint="Wait for an answer before you ask.",
                    )
                    incoming = Refused(incoming.id, busy)
                else:
                    self._unanswered += 1
            self._held.append((incoming, size))
            self._bytes += size
            self._ready.notify()


class Outlet:
    """Writes lines. Where the host does not read, it waits: nothing piles up here.

    Args:
        fd: where the host reads.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        with contextlib.suppress(OSError):
            os.set_blocking(fd, True)

    def send(self, message: dict[str, Any]) -> None:
        """Write one line. Raises OSError where the host is gone."""
        # ASCII only: some readers of lines take U+2028 for the end of one.
        left = memoryview(json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n")
        while left:
            left = left[os.write(self._fd, left) :]

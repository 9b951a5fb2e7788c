"""What the model says in a test: text, tool calls, and points where it stops until the test goes on."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import threading
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

PATIENCE: Final = 20.0
_USAGE: Final = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


class Hold:
    """A point that a reply does not pass before the test releases it."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._waiting, self._gate = os.pipe()
        self._released = False

    def wait_reached(self, patience: float = PATIENCE) -> None:
        """Return when a reply has come to this point."""
        assert self._reached.wait(patience), "no reply has come to the hold"

    def release(self) -> None:
        """Let everything pass from now on."""
        if not self._released:
            self._released = True
            os.close(self._gate)

    def stop(self, connection: socket.socket) -> bool:
        """Wait for the release; whether the other side is still there."""
        self._reached.set()
        other = connection.fileno()
        ready, _, _ = select.select([self._waiting, other], [], [])
        return other not in ready

    def close(self) -> None:
        self.release()
        with contextlib.suppress(OSError):
            os.close(self._waiting)


@attrs.frozen
class Call:
    """The model calls a tool."""

    tool: str
    arguments: dict[str, Any]


Part: TypeAlias = "str | Call | Hold"


class Reply:
    """One answer of the model, its parts streamed in their order.

    A reply with a call lets the agent run the tool and ask again.
    """

    def __init__(self, *parts: Part, finish: str | None = None, status: int = 200) -> None:
        """An HTTP status other than 200 makes it an error whose message are the texts."""
        self.parts = parts
        self.status = status
        calls = any(isinstance(part, Call) for part in parts)
        self._finish = finish or ("tool_calls" if calls else "stop")

    @property
    def error(self) -> bytes:
        """The body of an error."""
        message = "".join(part for part in self.parts if isinstance(part, str))
        return json.dumps({"error": {"message": message, "type": "scripted"}}).encode()

    def chunks(self, model: str) -> Iterator[bytes | Hold]:
        """The events of the stream, and where it holds."""
        calls = itertools.count()
        yield _chunk(model, {"role": "assistant", "content": ""})
        for part in self.parts:
            if isinstance(part, Hold):
                yield part
            elif isinstance(part, str):
                yield _chunk(model, {"content": part})
            else:
                yield _chunk(model, {"tool_calls": [_tool_call(next(calls), part)]})
        yield _chunk(model, {}, finish=self._finish)
        yield _event({**_frame(model), "choices": [], "usage": _USAGE})
        yield b"data: [DONE]\n\n"


_NUMBERS: Final = itertools.count(1)


def _tool_call(index: int, call: Call) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
    return {"index": index, "id": f"call_{next(_NUMBERS)}", "type": "function", "function": function}


def _frame(model: str) -> dict[str, Any]:
    return {"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 0, "model": model}


def _chunk(model: str, delta: dict[str, Any], *, finish: str | None = None) -> bytes:
    return _event({**_frame(model), "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"

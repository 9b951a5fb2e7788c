"""A model endpoint on the loopback interface that says what a test tells it and keeps what it was asked."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
import traceback
from collections import defaultdict, deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, Self

import attrs

from pi_host.replies import PATIENCE, Call, Hold, Reply

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pi_host.replies import Part

__all__ = ["Call", "Hold", "ModelServer", "Reply", "Request"]

_PATH: Final = "/v1/chat/completions"


@attrs.define(eq=False)
class Request:
    """One request for a completion. Times are of the monotonic clock, in seconds."""

    number: int
    model: str
    body: dict[str, Any]
    at: float
    over: float | None = None
    aborted: bool = False

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body["messages"])

    @property
    def system(self) -> str:
        """The system prompt."""
        return "\n".join(self.texts("system", "developer"))

    @property
    def last(self) -> str:
        """The text of the last message."""
        return text_of(self.messages[-1])

    @property
    def context(self) -> str:
        """Everything that the model is told, in one text."""
        return json.dumps(self.body, ensure_ascii=False)

    @property
    def tools(self) -> set[str]:
        """The tools that are declared to the model."""
        return {tool["function"]["name"] for tool in self.body.get("tools", ())}

    def texts(self, *roles: str) -> list[str]:
        """The texts of the messages of these roles."""
        return [text_of(message) for message in self.messages if message["role"] in roles]


def text_of(message: dict[str, Any]) -> str:
    """The text of a message, whichever of its two forms it has."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if part["type"] == "text")


class ModelServer:
    """The endpoint: replies are scripted for a model name, or made by a function of the request.

    A request that nothing answers gets an error, which `check` reports.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._scripts: dict[str, deque[Reply]] = defaultdict(deque)
        self._holds: list[Hold] = []
        self._errors: list[str] = []
        self._server: _Server | None = None
        self.answer: Callable[[Request], Reply | None] = lambda _: None
        """Asked where the script of the model is at its end."""
        self.requests: list[Request] = []
        self._socket = _bound(0)
        self.port: int = self._socket.getsockname()[1]
        self.up()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- what a test tells it

    def script(self, model: str, *replies: Reply | str) -> None:
        """Say these things one after the other when that model is asked; a string is a reply of text."""
        with self._changed:
            self._scripts[model] += [Reply(each) if isinstance(each, str) else each for each in replies]

    def held(self, model: str, *before: Part) -> Hold:
        """Script a reply that says `before` and then holds; the released rest is empty."""
        hold = self.hold()
        self.script(model, Reply(*before, hold))
        return hold

    def hold(self) -> Hold:
        """A hold that is released at the latest when the server closes."""
        self._holds.append(Hold())
        return self._holds[-1]

    def down(self) -> None:
        """Refuse connections, as an endpoint that nobody runs; the port stays taken."""
        if self._server is not None:
            self._server.stop()
            self._server = None
            self._socket = _bound(self.port)

    def up(self) -> None:
        """Listen (again)."""
        if self._server is None:
            self._server = _Server(self, self._socket)

    # --- what a test asks it

    def asked(self, model: str, number: int = 1, *, patience: float = PATIENCE) -> Request:
        """The n-th request for that model, once it has come."""

        def found() -> Request | None:
            of_model = [request for request in self.requests if request.model == model]
            return of_model[number - 1] if len(of_model) >= number else None

        return self._wait(found, patience, f"{model} was not asked {number} times")

    def ended(self, request: Request, *, patience: float = PATIENCE) -> Request:
        """Return when that request was answered or given up."""
        return self._wait(
            lambda: request if request.over is not None else None, patience, "the request is still open"
        )

    def check(self) -> None:
        """Fail where a request came that no reply was scripted for, or the server went wrong."""
        with self._changed:
            assert not self._errors, "\n".join(self._errors)

    def forget_errors(self) -> None:
        """For a test that has looked at them."""
        with self._changed:
            self._errors.clear()

    def close(self) -> None:
        for hold in self._holds:
            hold.release()
        if self._server is None:
            self._socket.close()
        else:
            self._server.stop()
            self._server = None
        for hold in self._holds:
            hold.close()

    def _wait(self, found: Callable[[], Request | None], patience: float, missing: str) -> Request:
        with self._changed:
            self._changed.wait_for(lambda: found() is not None, patience)
            request = found()
            asked = [(each.model, each.last[:80]) for each in self.requests]
        assert request is not None, f"{missing}; asked: {asked}; errors: {self._errors}"
        return request

    # --- what the handlers tell it

    def take(self, body: dict[str, Any]) -> tuple[Request, Reply]:
        """Keep a request; what to answer."""
        at = time.monotonic()
        with self._changed:
            request = Request(len(self.requests) + 1, body["model"], body, at)
            script = self._scripts[request.model]
            reply = script.popleft() if script else self.answer(request)
            if reply is None:
                self._errors.append(f"no reply is scripted for {request.model} to {request.last!r}")
                reply = Reply(self._errors[-1], status=400)
            self.requests.append(request)
            self._changed.notify_all()
        return request, reply

    def finish(self, request: Request, *, aborted: bool) -> None:
        with self._changed:
            request.over = time.monotonic()
            request.aborted = aborted
            self._changed.notify_all()

    def note(self, error: str) -> None:
        with self._changed:
            self._errors.append(error)


def _bound(port: int) -> socket.socket:
    """A socket that holds the port and does not listen."""
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    return bound


class _Server(ThreadingHTTPServer):
    """Listens on a bound socket until it is stopped, its connections included."""

    daemon_threads = False

    def __init__(self, owner: ModelServer, bound: socket.socket) -> None:
        super().__init__(("127.0.0.1", 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = bound
        self.owner = owner
        self._open: set[socket.socket] = set()
        self.server_activate()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def stop(self) -> None:
        self.shutdown()
        self._thread.join()
        for connection in list(self._open):
            # Whoever holds a reply there notices it as the other side's going away.
            with contextlib.suppress(OSError):  # closed in the meantime
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request_thread(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        del request, client_address
        self.owner.note(traceback.format_exc())


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.path == _PATH, self.path
        request, reply = self.server.owner.take(body)
        aborted = True
        try:
            aborted = not self._say(request, reply)
        except OSError:  # the other side has closed the connection
            pass
        finally:
            self.server.owner.finish(request, aborted=aborted)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Standard error is the tests'."""

    def _say(self, request: Request, reply: Reply) -> bool:
        """Whether the other side stayed to the end."""
        self.send_response(reply.status)
        if reply.status != 200:
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(reply.error)
            return True
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for chunk in reply.chunks(request.model):
            if isinstance(chunk, bytes):
                self.wfile.write(chunk)
            elif not chunk.stop(self.connection):
                return False
        return True

"""A bridge in a process of its own, and the host at the other ends of its pipes."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE: Final = 20.0
READY: Final = {"model": True, "idle": True, "queued": False, "prompt": False, "editorEmpty": True}
END: Final = {"end": True}
"""What comes last: the bridge has closed its output."""


class PipedBridge:
    """One bridge; its host is this process, which reads all the time.

    Attributes:
        popen: its process.
        ready: what it is answered when it asks for readiness; None: nothing.
        starts: what it is answered when it delivers; None: nothing.
        yes: what it is answered when it asks the person; None: nothing.
        lines: what it has written so far.
    """

    def __init__(
        self,
        home: Path,
        session: str,
        *,
        hello: bool = True,
        command: list[str] | None = None,
        **variables: str,
    ) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PI_")}
        environment |= {"PI_CODING_AGENT_DIR": str(home)} | variables
        self.popen = subprocess.Popen(
            command or [sys.executable, "-m", "pi_team.hosts.pi"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        self.ready: dict[str, bool] | None = READY
        self.starts: dict[str, Any] | None = {"started": True}
        self.yes: bool | None = True
        self.lines: list[dict[str, Any]] = []
        self.raw: list[bytes] = []
        self._came: queue.Queue[dict[str, Any]] = queue.Queue()
        self._put_back: list[dict[str, Any]] = []
        self._number = 0
        self._session = session
        self._writing = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if hello:
            answer = self.call("hello", **self.greeting())
            assert "result" in answer, answer

    def greeting(self, **changes: Any) -> dict[str, Any]:
        """The parameters of a `hello`."""
        session = {"id": self._session, "cwd": "/somebody/project"}
        return {
            "protocol": 1,
            "extension": "0",
            "host": {"name": "pi", "version": "1.6.0"},
            "mode": "rpc",
            "session": session,
            "pid": os.getpid(),
        } | changes

    # --- lines

    def write(self, line: bytes) -> None:
        """Write bytes as they are."""
        assert self.popen.stdin is not None
        with self._writing:
            self.popen.stdin.write(line)
            self.popen.stdin.flush()

    def send(self, message: dict[str, Any]) -> None:
        """Write a message."""
        self.write(json.dumps(message).encode() + b"\n")

    def ask(self, method: str, **params: Any) -> int:
        """Send a request; its id."""
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})
        return self._number

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        number = self.ask(method, **params)
        return self.until(lambda message: message.get("id") == number and "method" not in message)

    def team(self, line: str) -> dict[str, Any]:
        """A person's command."""
        return self.call("command", line=line)

    def until(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first message that fits; those before it are let go."""
        while True:
            message = self._came.get(timeout=PATIENCE)
            if fits(message):
                return message
            assert message is not END, f"the bridge has ended; it wrote {self.lines[-5:]}"

    def method(self, name: str) -> dict[str, Any]:
        """The parameters of the next message with that method."""
        params: dict[str, Any] = self.until(lambda message: message.get("method") == name)["params"]
        return params

    def _read(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            self.raw.append(line)
            message = json.loads(line)
            self.lines.append(message)
            answer: Any = None
            if message.get("method") == "ready":
                answer = self.ready
            elif message.get("method") == "deliver":
                answer = self.starts
            elif message.get("method") == "confirm" and self.yes is not None:
                answer = {"yes": self.yes}
            if answer is not None:
                self.send({"id": message["id"], "result": answer})
            self._came.put(message)
        self._came.put(END)

    # --- the end

    def close(self) -> int:
        """Close its input; its exit status."""
        assert self.popen.stdin is not None
        with self._writing:
            self.popen.stdin.close()
        status = self.popen.wait(PATIENCE)
        self.clear()
        return status

    def clear(self) -> None:
        """Let go of a process that has ended, or is ended now."""
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()
        self._reader.join(PATIENCE)
        for pipe in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

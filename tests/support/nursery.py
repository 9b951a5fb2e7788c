"""Mailboxes in processes of their own, told what to do one order at a time: the test's side.

What one process does between two calls of another is an order given while the other is stopped: no test
sleeps and hopes. See `actor.py`.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from typing import Literal

_PATIENCE: Final = 60.0
"""Seconds for anything that a test waits for; far more than it takes."""


class Refused(Exception):
    """An actor's mailbox refused the order."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.hint = hint


class Died(Exception):
    """The actor's process ended before it answered."""

    def __init__(self, status: int) -> None:
        super().__init__(f"it ended with {status}")
        self.status = status


class Nursery:
    """A process without threads that has imported everything and forks actors."""

    def __init__(self) -> None:
        self._commands, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("actor.py")), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        self._actors: list[Actor] = []

    @property
    def pid(self) -> int:
        """A process that lives as long as the tests do."""
        return self._process.pid

    def close(self) -> None:
        """End every process."""
        self.forget()
        self._commands.close()
        self._process.wait(_PATIENCE)

    def actor(self, path: str | os.PathLike[str] | None, **options: Any) -> Actor:
        """A new process with a mailbox on a teams directory; options as a mailbox's."""
        ours, theirs = socket.socketpair()
        socket.send_fds(self._commands, [b'{"do": "fork"}'], [theirs.fileno()])
        theirs.close()
        actor = Actor(self, self._answer()["pid"], ours)
        self._actors.append(actor)
        actor.ask("open", None if path is None else os.fspath(path), **options)
        return actor

    def wait(self, pid: int, do: Literal["wait", "look"] = "wait") -> dict[str, int]:
        """Wait until a child ends or stops; `{"ended": …}`, `{"stopped": …}`, and for a look also `{}`."""
        self._commands.send(json.dumps({"do": do, "pid": pid}).encode())
        return self._answer()

    def forget(self) -> None:
        """End the actors of one test."""
        for actor in self._actors:
            actor.discard()
        self._actors.clear()

    def _answer(self) -> dict[str, int]:
        ready, _, _ = select.select([self._commands], [], [], _PATIENCE)
        assert ready, "a child neither ended nor stopped"
        answer = self._commands.recv(65_536)
        assert answer, "the nursery died"
        value: dict[str, int] = json.loads(answer)
        return value


@functools.cache
def shared() -> Nursery:
    """The nursery of this run of the tests: one for all of them, since it takes a second to start."""
    nursery = Nursery()
    atexit.register(nursery.close)
    return nursery


class Actor:
    """One mailbox in one process.

    Attributes:
        pid: the process.
    """

    def __init__(self, nursery: Nursery, pid: int, line: socket.socket) -> None:
        self._nursery = nursery
        self.pid = pid
        self._line = line
        self._heard = b""
        self._over = False

    def begin(self, do: str, *args: Any, **kwargs: Any) -> None:
        """Give an order and do not wait."""
        order = {"do": do, "args": args, "kwargs": kwargs}
        self._line.sendall(json.dumps(order).encode("ascii") + b"\n")

    def ask(self, do: str, *args: Any, **kwargs: Any) -> Any:
        """Give an order and wait for its answer. Raises Refused, Died."""
        self.begin(do, *args, **kwargs)
        return self.answer()

    def answer(self) -> Any:
        """The answer to the oldest order that has none. Raises Refused, Died."""
        value = self.told()
        if "refused" in value:
            raise Refused(value["refused"], value["message"], value["hint"])
        assert "broke" not in value, value["broke"]
        return value["answer"]

    def outcome(self) -> tuple[Any, str]:
        """As :meth:`answer`, a refusal's code beside it: an answer and "", or None and the code."""
        try:
            return self.answer(), ""
        except Refused as refused:
            return None, refused.code

    def told(self) -> dict[str, Any]:
        """The next thing that the process says. Raises Died."""
        while b"\n" not in self._heard:
            ready, _, _ = select.select([self._line], [], [], _PATIENCE)
            assert ready, "a process said nothing more"
            if not self._hear():
                raise Died(self.ended())
        line, _, self._heard = self._heard.partition(b"\n")
        value: dict[str, Any] = json.loads(line)
        return value

    def said(self) -> list[dict[str, Any]]:
        """All that the process has said so far and nobody has read yet."""
        while select.select([self._line], [], [], 0)[0] and self._hear():
            pass
        return [self.told() for _ in range(self._heard.count(b"\n"))]

    def _hear(self) -> bool:
        """Read what is there; False at the end of it."""
        try:
            chunk = self._line.recv(65_536)
        except ConnectionResetError:
            return False
        self._heard += chunk
        return bool(chunk)

    def finish(self) -> Any:
        """End an order that goes on until the next one, and give its answer."""
        self._line.sendall(b"\n")
        while "answer" not in (value := self.told()):
            assert "broke" not in value, value["broke"]
        return value["answer"]

    def stop(self) -> None:
        """Stop the process; returns when it stands still."""
        os.kill(self.pid, signal.SIGSTOP)
        self.stopped()

    def stopped(self) -> None:
        """Wait until the process has stopped itself."""
        state = self._nursery.wait(self.pid)
        assert state == {"stopped": signal.SIGSTOP}, state

    def stopped_or_answered(self) -> bool:
        """Whether the process has stopped itself; False when it answered instead, and the answer is there."""
        while not select.select([self._line], [], [], 0.002)[0]:
            state = self._nursery.wait(self.pid, "look")
            if state:
                assert state == {"stopped": signal.SIGSTOP}, state
                return True
        return False

    def go_on(self) -> None:
        """Continue the stopped process."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL the process; returns when it is gone."""
        os.kill(self.pid, signal.SIGKILL)
        assert self.ended() == -signal.SIGKILL

    def ended(self) -> int:
        """Wait for the end of the process; its status, a signal's number negative."""
        state = self._nursery.wait(self.pid)
        self._over = True
        self._line.close()
        return state["ended"]

    def discard(self) -> None:
        """End the process, however it stands."""
        if not self._over:
            self.kill()

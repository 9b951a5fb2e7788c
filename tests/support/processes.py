"""Real processes for the tests: forked, killed, stopped and continued."""

from __future__ import annotations

import json
import os
import select
import signal
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_PATIENCE = 30.0


class Child:
    """A forked process that runs `body` and hands its result back as JSON.

    Left as a context manager it is killed, whatever became of it.
    """

    def __init__(self, body: Callable[[], Any]) -> None:
        self._output, output = os.pipe()
        self._over = False
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._output)
            _run(body, output)
        os.close(output)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        os.close(self._output)

    def wait_stopped(self) -> None:
        """Return when the child has stopped itself; fail when it ends first."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            self._over = True
            raise AssertionError(f"the child ended without stopping: {self._read()}")

    def resume(self) -> None:
        """Continue a stopped child."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End it with SIGKILL and reap it."""
        if not self._over:
            os.kill(self.pid, signal.SIGKILL)
            self._reap()

    def wait_killed(self) -> None:
        """Return when the child has died of a SIGKILL that it sent itself; fail when it ended otherwise."""
        status = self._reap()
        assert os.WIFSIGNALED(status), f"the child was not killed: {self._read()}"

    def result(self) -> Any:
        """What `body` returned; an AssertionError with its error where it raised one."""
        text = self._read()
        self._reap()
        value = json.loads(text)
        assert "error" not in value, value["error"]
        return value["result"]

    def _reap(self) -> int:
        _, status = os.waitpid(self.pid, 0)
        self._over = True
        return status

    def _read(self) -> str:
        text = b""
        while select.select([self._output], [], [], _PATIENCE)[0]:
            chunk = os.read(self._output, 1 << 16)
            if not chunk:
                return text.decode()
            text += chunk
        raise AssertionError(f"the child is still running after {_PATIENCE} s")


def _run(body: Callable[[], Any], output: int) -> None:
    code = 1
    try:
        try:
            answer = {"result": body()}
        except BaseException as error:  # noqa: BLE001 - raised in the parent
            answer = {"error": f"{type(error).__name__}: {error}"}
        os.write(output, json.dumps(answer).encode())
        code = 0
    finally:
        os._exit(code)


def stop_here() -> None:
    """Stop the calling process until somebody continues it."""
    os.kill(os.getpid(), signal.SIGSTOP)


def die_here() -> None:
    """Kill the calling process."""
    os.kill(os.getpid(), signal.SIGKILL)

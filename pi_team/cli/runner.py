"""Runs the command of `pi-team work` on one request, in bounded memory and with a bounded end.

The command gets its own process group, its input on a pipe and nothing of a peer's text in its
arguments or environment. Its output is read as it comes; only head and tail are kept. Background
children that hold the pipes open are not waited for: what is in the pipes when the command exits is
its output.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from typing import IO, TYPE_CHECKING, Final

from pi_team.cli.signals import shielded
from pi_team.text import Excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["CommandRun"]

GRACE: Final = 2.0
"""Seconds between asking the group to end (SIGTERM) and ending it (SIGKILL)."""
_CHUNK: Final = 65_536
_LAST_CHUNKS: Final = 32
"""Reads of each pipe after the command has exited; more than any pipe holds, fewer than a flood."""
_UTF8_CONTINUATION: Final = range(0x80, 0xC0)


class CommandRun:
    """One command under way; call :meth:`pump` until it says that the command has ended.

    Args:
        command: the words of the command.
        environment: its whole environment.
        standard_input: what it may read; it need not.
        output_characters: the most characters of its standard output to keep, head and tail.
        error_bytes: the most bytes of its standard error to keep, the last ones.

    Raises:
        OSError: the command cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        standard_input: bytes,
        output_characters: int,
        error_bytes: int,
    ) -> None:
        self.output = Excerpt(output_characters)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._errors = b""
        self._error_bytes = error_bytes
        self._input = memoryview(standard_input)
        self._process = subprocess.Popen(  # noqa: S603 - running the person's command is the purpose
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            process_group=0,
            bufsize=0,
        )
        self._selector = selectors.DefaultSelector()
        self._register(self._process.stdin, selectors.EVENT_WRITE)
        self._register(self._process.stdout, selectors.EVENT_READ)
        self._register(self._process.stderr, selectors.EVENT_READ)
        self._exited, announce = os.pipe()
        self._selector.register(self._exited, selectors.EVENT_READ)
        threading.Thread(target=self._await_exit, args=(announce,), daemon=True).start()
        self._open = True

    @property
    def status(self) -> int | None:
        """The exit status; negative for a signal; None while the command runs."""
        return self._process.returncode

    @property
    def errors(self) -> str:
        """The tail of the standard error, whole characters only."""
        tail = self._errors[-self._error_bytes :]
        if len(self._errors) > len(tail):
            torn = next((n for n, byte in enumerate(tail) if byte not in _UTF8_CONTINUATION), 0)
            tail = tail[torn:]
        return tail.decode("utf-8", "replace")

    def pump(self, seconds: float) -> bool:
        """Feed the command and read from it for at most so many seconds; True when it has ended."""
        deadline = time.monotonic() + seconds
        while self._open:
            ready = self._selector.select(max(deadline - time.monotonic(), 0))
            with shielded():
                self._serve([key.fileobj for key, _events in ready])
            if time.monotonic() >= deadline:
                break
        return not self._open

    def end(self) -> None:
        """End the command and its process group: SIGTERM, a grace, SIGKILL."""
        if not self._open:
            return
        self._signal_group(signal.SIGTERM)
        self._signal_group(signal.SIGCONT)  # a stopped process could not answer
        self.pump(GRACE)
        self._signal_group(signal.SIGKILL)
        self.pump(GRACE)

    def _serve(self, ready: Sequence[object]) -> None:
        if self._exited in ready:
            self._finish()
        else:
            for pipe in ready:
                self._transfer(pipe)

    def _signal_group(self, number: signal.Signals) -> None:
        # EPERM is what macOS says of a group whose members have all exited.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _register(self, pipe: IO[bytes] | None, events: int) -> None:
        assert pipe is not None  # noqa: S101 - all three were asked for
        os.set_blocking(pipe.fileno(), False)
        self._selector.register(pipe, events)

    def _await_exit(self, announce: int) -> None:
        self._process.wait()
        os.close(announce)  # the reading end becomes readable

    def _transfer(self, pipe: object) -> bool:
        """Move what one pipe takes or gives; False when it has nothing more for now."""
        try:
            if pipe is self._process.stdin:
                return self._feed()
            return self._read(self._process.stdout if pipe is self._process.stdout else self._process.stderr)
        except BlockingIOError:
            return False
        except OSError:  # EPIPE: the command does not read its input
            self._close(pipe)
            return False

    def _feed(self) -> bool:
        assert self._process.stdin is not None  # noqa: S101 - as in _register
        written = os.write(self._process.stdin.fileno(), self._input[:_CHUNK])
        self._input = self._input[written:]
        if not self._input:
            self._close(self._process.stdin)
        return bool(self._input)

    def _read(self, pipe: IO[bytes] | None) -> bool:
        assert pipe is not None  # noqa: S101 - as in _register
        chunk = os.read(pipe.fileno(), _CHUNK)
        if not chunk:
            self._close(pipe)
        elif pipe is self._process.stdout:
            self.output.add(self._decoder.decode(chunk))
        else:
            # One byte more than asked for tells a cut tail from a whole one.
            self._errors = (self._errors + chunk)[-self._error_bytes - 1 :]
        return bool(chunk)

    def _close(self, pipe: object) -> None:
        for end in (self._process.stdin, self._process.stdout, self._process.stderr):
            if end is pipe and end is not None and not end.closed:
                self._selector.unregister(end)
                end.close()

    def _finish(self) -> None:
        """The command has exited: take what is in the pipes, and let go of them."""
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None  # noqa: S101 - as in _register
            reads = 0
            while not pipe.closed and reads < _LAST_CHUNKS and self._transfer(pipe):
                reads += 1
            self._close(pipe)
        self._close(self._process.stdin)
        self.output.add(self._decoder.decode(b"", final=True))
        self._selector.close()
        os.close(self._exited)
        self._open = False

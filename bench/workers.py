"""The other processes of the benchmarks: `python -m bench.workers send|relay|receive ARGUMENTS`.

A worker says `ready` on standard output, waits for a line on standard input, and answers with one JSON
object. Times are `time.monotonic()` in seconds, which all processes of a machine share.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from bench.team import TEAM, BenchMailbox, text
from pi_team.errors import Busy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Worker:
    """A worker as its parent sees it."""

    def __init__(self, *arguments: str, descriptors: Sequence[int] = ()) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.workers", *arguments],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=descriptors,
            text=True,
        )
        self._expect("ready")

    def _expect(self, word: str) -> None:
        said = self.line().strip()
        if said != word:
            raise RuntimeError(f"a worker said {said!r} and not {word!r}")

    def line(self) -> str:
        """The next line that it prints."""
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def go(self) -> None:
        """Let it begin, or end."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """What it found. Raises RuntimeError where it failed."""
        line = self.line()
        if self._process.wait(60) != 0 or not line:
            raise RuntimeError(f"a worker ended with status {self._process.returncode}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> None:
        """Make sure that it is gone."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


@contextlib.contextmanager
def workers(calls: Sequence[Sequence[str]], descriptors: Sequence[int] = ()) -> Iterator[list[Worker]]:
    """Workers that have some descriptors, started one after the other and ready, ended at the end."""
    started: list[Worker] = []
    try:
        for call in calls:
            started.append(Worker(*call, descriptors=descriptors))  # noqa: PERF401 - if one fails, those before it are ended
        yield started
    finally:
        for worker in started:
            worker.end()


def _ready() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def send(path: str, alias: str, recipients: str, count: str) -> None:
    """Join as `alias` and send `count` notes to the recipients in turn, as fast as it goes."""
    _send(path, alias, recipients, int(count), contextlib.nullcontext)


def relay(path: str, alias: str, recipients: str, count: str, pipes: str) -> None:
    """As :func:`send`, each time when a byte comes out of the first of two pipes; it goes into the second."""
    before, after = map(int, pipes.split(","))

    @contextlib.contextmanager
    def turn() -> Iterator[None]:
        baton = os.read(before, 1)
        yield
        os.write(after, baton)

    _send(path, alias, recipients, int(count), turn)


def _send(
    path: str,
    alias: str,
    recipients: str,
    count: int,
    turn: Callable[[], contextlib.AbstractContextManager[None]],
) -> None:
    mailbox = BenchMailbox(path)
    owner = mailbox.join(TEAM, alias)
    aliases = recipients.split(",")
    number = int.from_bytes(os.urandom(3)) << 8
    _ready()
    times: list[float] = []
    busy = 0
    begin = math.inf
    for index in range(count):
        with turn():
            start = time.monotonic()
            begin = min(begin, start)
            try:
                mailbox.send(
                    owner,
                    aliases[index % len(aliases)],
                    kind="note",
                    subject=f"message {index}",
                    body=text(number + index),
                )
            except Busy:
                busy += 1
            times.append(time.monotonic() - start)
    print(json.dumps({"begin": begin, "end": time.monotonic(), "times": times, "busy": busy}), flush=True)


def receive(path: str, alias: str, count: str) -> None:
    """Join as `alias` and take notes as they come, as `pi-team work` does, until `count` have come."""
    mailbox = BenchMailbox(path)
    owner = mailbox.join(TEAM, alias)
    shown: dict[str, float] = {}
    taken: dict[str, float] = {}
    with mailbox.changes(TEAM) as changes:
        mailbox.heartbeat(owner, "idle")
        beaten = time.monotonic()
        _ready()
        while len(taken) < int(count):
            if time.monotonic() - beaten > 2:
                mailbox.heartbeat(owner, "idle")
                beaten = time.monotonic()
            pending = [
                message
                for message in mailbox.snapshot(owner).messages
                if message.recipient == alias and message.state == "pending"
            ]
            now = time.monotonic()
            for message in pending:
                shown.setdefault(message.id, now)
            if pending:
                notes = mailbox.notes(owner)
                now = time.monotonic()
                taken.update((note.id, now) for note in notes)
                print(json.dumps([note.id for note in notes]), flush=True)
            else:
                changes.wait(1.0)
    print(json.dumps({"shown": shown, "taken": taken}), flush=True)


if __name__ == "__main__":
    known: dict[str, Callable[..., None]] = {"send": send, "relay": relay, "receive": receive}
    known[sys.argv[1]](*sys.argv[2:])

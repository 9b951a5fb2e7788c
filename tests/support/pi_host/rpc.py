"""Pi in its RPC mode: JSON lines on its standard input and output."""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import subprocess
import threading
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pi_host.process import PATIENCE, PiProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import psutil

    from pi_host.home import PiHome

Record: TypeAlias = "dict[str, Any]"


class StartRpc(Protocol):
    """Starts Pi in RPC mode; the options are those of `RpcPi`."""

    def __call__(self, *words: str, **options: Any) -> RpcPi: ...


class Refused(Exception):
    """Pi refused a command."""


class RpcPi:
    """One Pi process. What it prints is kept in `records`; waiting is for a record or for a state.

    Attributes:
        records: every record it has printed, oldest first.
        widgets: the lines of each widget that is shown.
        statuses: the footer's texts.
        notifications: type and text of each notification, oldest first.
    """

    def __init__(
        self,
        home: PiHome,
        *words: str,
        extensions: Sequence[str] = (),
        model: str | None = None,
        env: Mapping[str, str] | None = None,
        name: str = "pi",
    ) -> None:
        self.records: list[Record] = []
        self.widgets: dict[str, list[str]] = {}
        self.statuses: dict[str, str] = {}
        self.notifications: list[tuple[str, str]] = []
        self._changed = threading.Condition()
        self._numbers = itertools.count(1)
        self._cursor = 0
        self._over = False
        self._stderr = home.root / f"{name}.{next(_STARTED)}.stderr"
        command = home.command(["--mode", "rpc", *words], extensions=extensions, model=model)
        with self._stderr.open("wb") as stderr:
            self.process = PiProcess(
                command,
                cwd=home.work,
                env=home.env(env or {}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def stderr(self) -> str:
        """What it has written to standard error so far."""
        return self._stderr.read_text("utf-8", "replace")

    # --- commands

    def send(self, kind: str, **fields: Any) -> str:
        """Send a command; its id."""
        number = str(next(self._numbers))
        self._write({"id": number, "type": kind, **fields})
        return number

    def response(self, number: str, patience: float = PATIENCE) -> Any:
        """The data of the response to a command that was sent.

        Raises:
            Refused: with Pi's reason.
        """

        def fits(record: Record) -> bool:
            return record["type"] == "response" and record.get("id") == number

        record = self.until(fits, after=0, patience=patience)
        if not record["success"]:
            raise Refused(record["error"])
        return record.get("data")

    def command(self, kind: str, *, patience: float = PATIENCE, **fields: Any) -> Any:
        """Send a command and wait for its data."""
        return self.response(self.send(kind, **fields), patience)

    def state(self) -> Record:
        """What Pi says about its session; it is ready when it answers."""
        state: Record = self.command("get_state")
        return state

    def ask(self, text: str, *, patience: float = PATIENCE) -> str | None:
        """Prompt, wait until the agent has settled, and return its last text; `/words` run a command."""
        mark = self.mark()
        if self.command("prompt", message=text, patience=patience)["disposition"] == "started":
            self.until("agent_settled", after=mark, patience=patience)
        answer: str | None = self.command("get_last_assistant_text").get("text")
        return answer

    def answer(self, request: Record, **fields: Any) -> None:
        """Answer a dialog: `confirmed=True`, `value="…"` or `cancelled=True`."""
        self._write({"type": "extension_ui_response", "id": request["id"], **fields})

    # --- waiting

    def mark(self) -> int:
        """The place after everything printed so far, for `until(…, after=mark)`."""
        with self._changed:
            return len(self.records)

    def until(
        self, wanted: str | Callable[[Record], bool], *, after: int | None = None, patience: float = PATIENCE
    ) -> Record:
        """The first record that fits, once it has come.

        Args:
            wanted: a type of record, or whether a record fits.
            after: only records from that mark on; without it those after the record that such a call
                returned last, so that one call after the other goes through what happens in its order.
            patience: the deadline, in seconds.
        """
        fits = wanted if callable(wanted) else lambda record: record["type"] == wanted
        with self._changed:
            place = self._cursor if after is None else after

            def found() -> int | None:
                return next((n for n in range(place, len(self.records)) if fits(self.records[n])), None)

            self._changed.wait_for(lambda: self._over or found() is not None, patience)
            number = found()
            if number is None:
                raise AssertionError(self._report(f"no such record after {place}"))
            if after is None:
                self._cursor = number + 1
            return self.records[number]

    def eventually(self, holds: Callable[[], object], patience: float = PATIENCE) -> None:
        """Return when it holds, which is looked at after each record."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or holds(), patience)
            if not holds():
                raise AssertionError(self._report("it does not hold"))

    def dialog(self, method: str, *, after: int | None = None) -> Record:
        """The next dialog of that kind: confirm, select, input or editor."""
        return self.until(
            lambda record: record["type"] == "extension_ui_request" and record["method"] == method,
            after=after,
        )

    # --- ending

    def close(self) -> int:
        """Close its input, as a host does that has had enough; the return code."""
        self._hang_up()
        code = self.process.ended()
        self._reader.join(PATIENCE)
        return code

    def kill(self) -> list[psutil.Process]:
        """Kill Pi and nothing else; what it had started."""
        children = self.process.kill()
        self._hang_up()
        return children

    def interrupt(self, number: int = signal.SIGTERM) -> int:
        """End it by a signal; the return code."""
        self.process.signal(number)
        return self.process.ended()

    def sweep(self) -> None:
        """End whatever is left, at the end of a test."""
        self.process.sweep()
        self._hang_up()
        self._reader.join(PATIENCE)
        assert not self._reader.is_alive(), "somebody still holds the output of a Pi that has ended"

    def _hang_up(self) -> None:
        assert self.process.popen.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.popen.stdin.close()

    def _write(self, record: Record) -> None:
        assert self.process.popen.stdin is not None
        self.process.popen.stdin.write(json.dumps(record).encode() + b"\n")
        self.process.popen.stdin.flush()

    def _read(self) -> None:
        assert self.process.popen.stdout is not None
        with self.process.popen.stdout as stdout:
            for line in stdout:  # a binary file: only a line feed ends a line
                self._take(json.loads(line))
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _take(self, record: Record) -> None:
        with self._changed:
            self.records.append(record)
            if record["type"] == "extension_ui_request":
                self._show(record)
            self._changed.notify_all()

    def _show(self, request: Record) -> None:
        method = request["method"]
        if method == "notify":
            self.notifications.append((request.get("notifyType", "info"), request["message"]))
        elif method == "setWidget":
            _put(self.widgets, request["widgetKey"], request.get("widgetLines"))
        elif method == "setStatus":
            _put(self.statuses, request["statusKey"], request.get("statusText"))

    def _report(self, what: str) -> str:
        """What a failed wait says."""
        last = "\n".join(json.dumps(record)[:400] for record in self.records[-15:])
        return (
            f"{what}; ended: {self._over}; the last records:\n{last}\nstandard error:\n{self.stderr[-4000:]}"
        )


_STARTED = itertools.count(1)


def _put(shown: dict[str, Any], key: str, value: Any) -> None:
    if value is None:
        shown.pop(key, None)
    else:
        shown[key] = value

"""A mailbox in a process of its own, that does what it is told over a socket: the child's side.

Run as a program this is the nursery: one process without threads that has imported everything, and forks
an actor for each socket that it is handed, which costs milliseconds. An actor can be told to kill or stop
itself at a system call.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import socket
import sys
import time
import traceback
import warnings
from typing import TYPE_CHECKING, Any, Final

import attrs
import filelock
import psutil
import watchdog.observers

import broken
from auditing import Audit
from grounds import as_given
from interposition import InterposedFileSystem, UnsyncedFileSystem
from pi_team.doctor import Doctor
from pi_team.errors import PiTeamError
from pi_team.former import FormerCodec
from pi_team.limits import REVISIONS_KEPT
from pi_team.mailbox import Mailbox
from pi_team.presence import process_of
from pi_team.record import recovery
from pi_team.record.filesystem import OsFileSystem
from set_clock import SetClock, SetFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_team.domain.model import Membership
    from pi_team.watching import Changes

LOADED: Final = (
    *(filelock.SoftFileLock, psutil.Process, watchdog.observers.Observer),
    *(Doctor, FormerCodec, recovery.recover),
)
"""Imported ahead: an actor that has given up its rights cannot import any more."""
_COMMAND_BYTES: Final = 65_536


def plain(value: Any) -> Any:
    """An answer as JSON can carry it."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if attrs.has(type(value)):
        return attrs.asdict(value, value_serializer=lambda _, __, item: plain(item))
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


class Actor:
    """Does orders until its socket is closed."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._file = line.makefile("r", encoding="utf-8")
        self._mailbox: Mailbox | None = None
        self._fs = InterposedFileSystem()
        self._since = 0
        self._audit: Audit | None = None
        self._changes: dict[str, Changes] = {}

    @property
    def mailbox(self) -> Mailbox:
        assert self._mailbox is not None, "the first order opens the mailbox"
        return self._mailbox

    def serve(self) -> None:
        for order in self._file:
            if order != "\n":  # that only ended the order before it
                self.say(self._do(**json.loads(order)))

    def say(self, answer: dict[str, Any]) -> None:
        # Lone surrogates are legal in a message: escaped, any text can cross the socket.
        self._line.sendall(json.dumps(answer).encode("ascii") + b"\n")

    def _do(self, do: str, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        special: Callable[..., Any] | None = getattr(self, f"do_{do}", None)
        try:
            action = special or getattr(self.mailbox, do)
            answer = action(
                *[as_given(value) for value in args],
                **{key: as_given(value) for key, value in kwargs.items()},
            )
        except PiTeamError as error:
            return {"refused": error.code, "message": error.message, "hint": error.hint}
        except BaseException:  # noqa: BLE001 - whatever it was, the test has to see it
            return {"broke": traceback.format_exc()}
        return {"answer": plain(answer)}

    # --- special orders

    def do_open(
        self,
        path: str | None,
        *,
        unsynced: bool = False,
        clock: str | None = None,
        kept: int = REVISIONS_KEPT,
        **options: Any,
    ) -> str:
        """Build the mailbox.

        `unsynced` leaves out every fsync, for processes that only have to be fast; `clock` is the file of a
        clock that can be set; `kept` bounds the history.
        """
        system: OsFileSystem = UnsyncedFileSystem() if unsynced else OsFileSystem()
        if clock is not None:
            options["clock"] = SetClock(clock)
            system = SetFileSystem(options["clock"])
        self._fs = InterposedFileSystem(system)
        self._mailbox = Mailbox(path, filesystem=self._fs, **options)
        self._mailbox._engine.publisher._kept = kept
        return self._mailbox.path

    def do_member(self, *args: Any, pid: int, **kwargs: Any) -> Membership:
        """Join for another process."""
        return self.mailbox.join(*args, process=process_of(pid), **kwargs)

    def do_trap(
        self,
        how: str,
        *,
        nth: int = 1,
        when: str = "before",
        method: str = "*",
        name: str = "*",
    ) -> None:
        """Kill or stop this process before or after the n-th call that fits, counted from here on."""
        number = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}[how]
        self._since = len(self._fs.calls)
        point = self._fs.at(method, name, nth)
        act = point.before if when == "before" else point.after
        act(lambda: os.kill(os.getpid(), number))

    def do_untrap(self) -> bool:
        """Set no trap any more; whether the last one was reached."""
        return self._fs.forget()

    def do_count(self) -> None:
        """Count the calls from here on."""
        self._since = len(self._fs.calls)

    def do_calls(self) -> list[tuple[str, str, str]]:
        """The calls since the last trap or count: method, name, error."""
        return [(call.method, call.name, call.error) for call in self._fs.calls[self._since :]]

    def do_audit(self, how: str, *, nth: int = 1, event: str = "*") -> None:
        """Kill or stop this process at the n-th audit event that fits, from here on; 0: count only."""
        self._audit = self._audit or Audit()
        self._audit.arm(event, nth, {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}[how])

    def do_audited(self) -> list[str]:
        """The audit events since."""
        assert self._audit is not None
        self._audit.disarm()
        return list(self._audit.seen)

    def do_fail(self, code: int, *, method: str, name: str = "*", nth: int = 1, effect: bool = False) -> None:
        """Let the n-th call that fits, and each one after it that fits, fail with that errno."""
        point = self._fs.at(method, name, nth)
        (point.fail_after if effect else point.fail)(code).always()

    def do_break(self, rule: str) -> None:
        """Take one rule out of the protocol: what it prevents has to be noticed by whoever looks for it."""
        broken.take_out(rule)

    def do_umask(self, mask: int) -> int:
        """Set the umask; what it was."""
        return os.umask(mask)

    def do_environment(self, **values: str | None) -> None:
        for key, value in values.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value

    def do_chdir(self, path: str) -> None:
        os.chdir(path)

    def do_become(self, uid: int) -> None:
        """Give up all rights of the superuser."""
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)

    def do_limit(self, spare: int) -> int:
        """Leave that many descriptors to open; how many are open now."""
        held = {int(name) for name in os.listdir("/dev/fd")}
        free = [number for number in range(256) if not _is_open(number)]
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free[spare], hard))
        return len(held)

    def do_unlimit(self) -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 1_024), hard))

    def do_size(self, most: int | None) -> None:
        """Let no file grow beyond that many bytes; a write beyond it is an error and no signal."""
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard if most is None else most, hard))

    def do_open_descriptors(self) -> int:
        return sum(_is_open(number) for number in range(256))

    # --- orders that take their time

    def do_send_many(self, owner: Membership, to: list[str], prefix: str, count: int) -> list[str]:
        """Send notes in turn to each; the subjects that were acknowledged."""
        sent = []
        for number in range(count):
            subject = f"{prefix}{number}"
            self.mailbox.send(owner, to[number % len(to)], kind="note", subject=subject, body="x")
            sent.append(subject)
        return sent

    def do_chatter(self, owner: Membership, to: Membership, prefix: str, count: int) -> list[str]:
        """Send notes, taken at once so that no slots run out; the subjects that were acknowledged."""
        sent = []
        for number in range(count):
            subject = f"{prefix}{number}"
            self.mailbox.send(owner, to.alias, kind="note", subject=subject, body="x")
            self.mailbox.notes(to)
            sent.append(subject)
        return sent

    def do_attend(self, owner: Membership, interval: float, status: str = "idle") -> dict[str, Any]:
        """Live as a session does, poll after poll, each told, until the next order comes."""
        polls = swept = 0
        while not select.select([self._line], [], [], interval)[0]:
            self.mailbox.heartbeat(owner, status)  # type: ignore[arg-type] # the test gives a status
            snapshot = self.mailbox.snapshot(owner)
            if snapshot.sweepable:
                swept += self.mailbox.sweep(owner)
            polls += 1
            alive = {entry.member.alias: entry.alive for entry in snapshot.members}
            self.say({"poll": polls, "swept": swept, "alive": alive})
        return {"polls": polls, "swept": swept}

    def do_read_on(self, team: str) -> dict[str, Any]:
        """Look again and again until the next order comes; every revision that went back is told.

        Both what the mailbox shows and what the file says by itself.
        """
        looks, shown, written, back = 0, 0, 0, []
        path = os.path.join(self.mailbox.path, team, "state.json")
        while not select.select([self._line], [], [], 0.001)[0]:
            with open(path, "rb") as file:
                in_file = json.loads(file.read())["revision"]
            revision = self.mailbox.look(team).revision
            if revision < shown or in_file < written:
                back.append([shown, revision, written, in_file])
            shown, written = revision, in_file
            looks += 1
        return {"looks": looks, "shown": shown, "written": written, "back": back}

    def do_await_change(self, team: str, timeout: float) -> bool:
        """Whether the record of a team changed since the last order of this kind."""
        if team not in self._changes:
            self._changes[team] = self.mailbox.changes(team)
        return self._changes[team].wait(timeout)

    def do_wall(self) -> float:
        return time.time()


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


# --- the nursery ----------------------------------------------------------------------------------


def _fork(line: socket.socket, keep: socket.socket) -> int:
    pid = os.fork()
    if pid:
        line.close()
        return pid
    keep.close()
    status = 70
    try:
        warnings.simplefilter("error")
        Actor(line).serve()
        status = 0
    finally:
        os._exit(status)


def _await(pid: int, flags: int = 0) -> dict[str, int]:
    """Wait until a child ends or stops; nothing where neither has happened and nobody is to wait."""
    changed, status = os.waitpid(pid, os.WUNTRACED | flags)
    if not changed:
        return {}
    if os.WIFSTOPPED(status):
        return {"stopped": os.WSTOPSIG(status)}
    return {"ended": os.waitstatus_to_exitcode(status)}


def nurse(commands: socket.socket) -> None:
    """Fork and wait, as told, until the socket is closed; then end those that are left."""
    gc.freeze()
    children: set[int] = set()
    while True:
        message, descriptors, _, _ = socket.recv_fds(commands, _COMMAND_BYTES, 1)
        if not message:
            break
        command = json.loads(message)
        answer: dict[str, int]
        if command["do"] == "fork":
            pid = _fork(socket.socket(fileno=descriptors[0]), commands)
            children.add(pid)
            answer = {"pid": pid}
        else:
            answer = _await(command["pid"], os.WNOHANG if command["do"] == "look" else 0)
            if "ended" in answer:
                children.discard(command["pid"])
        commands.send(json.dumps(answer).encode())
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    nurse(socket.socket(fileno=int(sys.argv[1])))

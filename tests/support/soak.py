"""A soak: processes that contend for one team, each killed at a random moment, for as long as one likes.

Half of them kill themselves at a random system call, half are killed from outside at a random time. Whatever
was acknowledged to one that was killed is looked for afterwards: what it heard, it wrote to a file.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
import traceback
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import attrs

import evidence
from aftermath import check_swept, check_teams
from grounds import COMPLETED, Ground, as_given, ground, membership
from interposition import UnsyncedFileSystem
from pi_team.errors import PiTeamError
from pi_team.mailbox import Mailbox
from steps import START_UP, SharedSteps
from tapped import Tap

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pi_team.domain.model import Membership

CONTENDERS: Final = 4
ROUND: Final = 60
"""Kills on one team; then everything is looked at, and the next team is fresh."""
_LIFETIME: Final = 0.1
_LATEST_CALL: Final = 300
"""Calls after which a process has killed itself, at the latest; those on locks, and there are many where one
waits, do not count."""
_LATEST: Final = 0.05
"""Seconds after its first call at which a process is killed from outside, at the latest."""
_WEDGED: Final = 15.0
"""Seconds after which a process that has not come so far is stuck."""
_FULL_OR_LATE: Final = {
    *("ALREADY_CLAIMING", "NOT_CLAIMED", "RECIPIENT_UNKNOWN", "MESSAGE_UNKNOWN"),
    *("LIMIT_RECIPIENT", "LIMIT_SENDER", "LIMIT_THREAD", "LIMIT_HISTORY"),
}
"""Refusals that are no crash's doing: somebody was faster, or has not joined yet, or slots are full."""


@attrs.define
class Tally:
    """What happened.

    Attributes:
        kills: processes that were killed after their first call.
        themselves: of these, by their own hand.
        linked: of these, between a link and its rename.
        steps: in which step of the protocol.
        acknowledged: how many of each operation were acknowledged, and found done.
        rounds: teams.
        failures: what went wrong.
    """

    kills: int = 0
    themselves: int = 0
    linked: int = 0
    steps: Counter[str] = attrs.field(factory=Counter)
    acknowledged: Counter[str] = attrs.field(factory=Counter)
    rounds: int = 0
    failures: list[str] = attrs.field(factory=list)

    def to_json(self) -> dict[str, Any]:
        """As a line of JSON carries it."""
        return attrs.asdict(self)


class _Fuse(SharedSteps):
    """Kills the process at a call, counted from the first one on; 0: at none."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 0

    def come(self, method: str, name: str) -> str:
        step = super().come(method, name)
        if step != "locks" and self.left:
            self.left -= 1
            if not self.left:
                os.kill(os.getpid(), signal.SIGKILL)
        return step


class _Contender:
    """One process that works as a member does until it is killed."""

    def __init__(self, field: Ground, number: int, generation: int, seed: str) -> None:
        self._field = field
        self._alias = f"w{number}"
        self._random = random.Random(seed)
        self._name = f"{number}-{generation}"
        self._heard = -1
        self._said = 0

    def run(self, steps: SharedSteps) -> None:
        """Work for ever."""
        random.seed(self._name)
        tap = Tap(steps=steps)
        tap.listen()
        log = self._field.path.parent / "heard"
        self._heard = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        fs = tap.port(UnsyncedFileSystem())
        with Mailbox(self._field.path, filesystem=fs, lock_lifetime=_LIFETIME) as mailbox:
            tap.is_open = True
            owner = mailbox.join("crew", self._alias)
            todo: list[Callable[[Mailbox, Membership], object]] = [self._send, self._work, self._look]
            while True:
                steps.begin()
                with contextlib.suppress(_Late):
                    self._one(self._random.choices(todo, (4, 3, 1))[0], mailbox, owner)

    @staticmethod
    def _one(do: Callable[[Mailbox, Membership], object], mailbox: Mailbox, owner: Membership) -> None:
        try:
            do(mailbox, owner)
        except PiTeamError as error:
            if error.code not in _FULL_OR_LATE:
                raise
            raise _Late from error

    def _hear(self, what: str, which: str) -> None:
        os.write(self._heard, f"{what} {which}\n".encode())

    def _send(self, mailbox: Mailbox, owner: Membership) -> None:
        others = [f"w{number}" for number in range(CONTENDERS) if f"w{number}" != self._alias]
        self._said += 1
        subject = f"{self._name}-{self._said}"
        kind = self._random.choice(("request", "note", "note"))
        mailbox.send(owner, self._random.choice(others), kind=kind, subject=subject, body="x")  # type: ignore[arg-type] # one of the two
        self._hear("sent", subject)

    def _work(self, mailbox: Mailbox, owner: Membership) -> None:
        for note in mailbox.notes(owner):
            self._hear("seen", note.id)
        message = mailbox.claim(owner)
        if message is not None:
            self._hear("claimed", message.id)
            if self._random.random() < 0.2:
                mailbox.release(owner, message.id)
            elif mailbox.settle(owner, message.id, as_given(COMPLETED)):
                self._hear("completed", message.id)

    @staticmethod
    def _look(mailbox: Mailbox, owner: Membership) -> None:
        mailbox.heartbeat(owner, "busy")
        if mailbox.snapshot(owner).sweepable:
            mailbox.sweep(owner)


class _Late(Exception):
    """An operation was refused as it is also without any crash."""


@attrs.define(eq=False)
class _Process:
    """A contender as its parent sees it. `due` is when it is killed from outside, once it has begun."""

    number: int
    pid: int
    steps: SharedSteps
    born: float
    wait: float | None
    due: float | None = None
    killed: bool = False


class Soak:
    """Rounds of contending processes.

    Args:
        root: a directory to work in.
        kills: how many processes are killed.
        seed: of everything that is drawn; the times at which the machine lets whom run are its own.
    """

    def __init__(self, root: Path, *, kills: int, seed: str) -> None:
        self._root = root
        self._kills = kills
        self._random = random.Random(f"soak {seed}")
        self._steps = [_Fuse() for _ in range(CONTENDERS)]
        self._generation = 0
        self._revision = 0
        self._field: Ground
        self.tally = Tally()

    def run(self) -> Tally:
        """Kill so many, or until something is wrong."""
        while self.tally.kills < self._kills and not self.tally.failures:
            self._field = ground(self._root / f"soak-{self.tally.rounds}")
            self.tally.rounds += 1
            self._round(min(self.tally.kills + ROUND, self._kills))
            shutil.rmtree(self._field.path.parent)
        return self.tally

    def _round(self, until: int) -> None:
        self._revision = self._field.revision
        living = {process.pid: process for process in map(self._fork, range(CONTENDERS))}
        try:
            while self.tally.kills < until:
                number = living.pop(self._await_death(living)).number
                self._look()
                if self.tally.kills < until:
                    born = self._fork(number)
                    living[born.pid] = born
        except (AssertionError, PiTeamError) as error:
            self.tally.failures.append(f"round {self.tally.rounds}: {error!r}")
        finally:
            for pid in living:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        if not self.tally.failures:
            try:
                self._check()
            except (AssertionError, PiTeamError) as error:
                self.tally.failures.append(f"after round {self.tally.rounds}: {error!r}")

    # --- processes

    def _fork(self, number: int) -> _Process:
        steps = self._steps[number]
        steps.clear()
        self._generation += 1
        itself = self._random.random() < 0.5
        steps.left = self._random.randrange(1, _LATEST_CALL) if itself else 0
        wait = None if itself else self._random.uniform(0, _LATEST)
        contender = _Contender(self._field, number, self._generation, str(self._random.random()))
        pid = os.fork()
        if pid == 0:
            try:
                contender.run(steps)
            except BaseException:  # noqa: BLE001 - the parent tells it
                (self._field.path.parent / "broke").write_text(traceback.format_exc())
            finally:
                os._exit(1)
        return _Process(number, pid, steps, time.monotonic(), wait)

    def _await_death(self, living: dict[int, _Process]) -> int:
        """Wait until one has died as it was meant to; its pid. Raises AssertionError."""
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid:
                assert os.WIFSIGNALED(status), (self._field.path.parent / "broke").read_text()
                self._count(living[pid])
                return pid
            now = time.monotonic()
            for process in living.values():
                self._kill_in_time(process, now)
            time.sleep(0.0005)

    @staticmethod
    def _kill_in_time(process: _Process, now: float) -> None:
        assert now - process.born < _WEDGED, f"a process is stuck in: {process.steps.step}"
        if process.wait is None or process.killed:
            return
        if process.due is None:
            if process.steps.step != START_UP:
                process.due = now + process.wait
        elif now >= process.due:
            os.kill(process.pid, signal.SIGKILL)
            process.killed = True

    def _count(self, process: _Process) -> None:
        assert process.steps.step != START_UP, "a process died before it did anything"
        self.tally.kills += 1
        self.tally.themselves += process.wait is None
        self.tally.linked += process.steps.is_linked
        self.tally.steps[process.steps.step] += 1

    # --- what has to hold

    def _look(self) -> None:
        """The record is sound, and not put back."""
        revision = evidence.revision(self._field.crew)
        assert revision >= self._revision, "the record was put back"
        self._revision = revision

    def _check(self) -> None:
        """Whoever comes after the dead can write, and what was acknowledged is there."""
        field = self._field
        with Mailbox(field.path, filesystem=UnsyncedFileSystem(), lock_lifetime=_LIFETIME) as bystander:
            dora = membership(field.owners["dora"])
            bystander.send(dora, "carol", kind="note", subject="afterwards", body="x")
            check_teams(field.path)
            subjects = evidence.subjects(field.crew)
            assert max(subjects.values()) == 1, f"doubled: {subjects.most_common(3)}"
            states = {one["id"]: one["state"] for one in evidence.payload(field.crew)["messages"]}
            heard = [line.split() for line in (field.path.parent / "heard").read_text().splitlines()]
            for what, which in heard:
                if what == "sent":
                    assert subjects[which] == 1, f"{which} was acknowledged and is lost"
                elif what != "claimed":
                    assert states[which] == what, f"{which} was {what}, and is {states[which]}"
            self.tally.acknowledged.update(what for what, _ in heard)
            check_swept(bystander, field.path)

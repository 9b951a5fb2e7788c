"""A session that waits for locks, several times in one event: its presence stays fresh for the others."""

from __future__ import annotations

import errno
import json
import math
import os
import pathlib
from typing import TYPE_CHECKING

import pytest

from pi_team.limits import HEARTBEAT_INTERVAL, PRESENCE_EXPIRY, WRITE_PATIENCE
from pi_team.presence import process_of
from scripted_host import kill, notices

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from scripted_host import Host, MovedClock, OpenHost

STALEST = WRITE_PATIENCE + HEARTBEAT_INTERVAL + 1
"""Seconds; a heartbeat that is not due yet, and one wait. From 30 s on a session may be swept."""
A_LOOK = HEARTBEAT_INTERVAL / 4
"""Seconds between two looks of whoever watches members that could not be judged."""


class Contended:
    """A team's lock, as other writers take it again and again: never free (or once), never old.

    Attributes:
        stalest: the greatest age in seconds that a session's presence had while somebody waited.
    """

    def __init__(self, host: Host, clock: MovedClock, team: str, free_once_after: float) -> None:
        self._clock = clock
        self._free_at = clock.offset + free_once_after
        self._lock = f"{host.mailbox.path}/.locks/{team}.lock"
        self._presence = f"{host.mailbox.path}/crew/presence/{host.name}.json"
        self.stalest = 0.0
        self._take()

    def sleep(self, seconds: float) -> None:
        self._clock.offset += seconds
        if seconds >= A_LOOK:  # of somebody who watches, and holds nothing
            self._free_at = math.inf
        if self._clock.offset >= self._free_at:
            pathlib.Path(self._lock).unlink(missing_ok=True)
        else:
            self._take()
        with open(self._presence, encoding="ascii") as file:
            seen = json.load(file)["seen"] / 1_000
        self.stalest = max(self.stalest, self._clock.wall() - seen)

    def _take(self) -> None:
        os.close(os.open(self._lock, os.O_CREAT, 0o600))
        now = self._clock.wall()
        os.utime(self._lock, (now, now))


@pytest.fixture
def contend(clock: MovedClock, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Contended]:
    """Lets the lock of a team be contended from now on, and watches the presence of a session meanwhile."""

    def begin(host: Host, team: str = "crew", free_once_after: float = math.inf) -> Contended:
        contended = Contended(host, clock, team, free_once_after)
        monkeypatch.setattr(clock, "sleep", contended.sleep)
        return contended

    return begin


@pytest.fixture
def bob(host: OpenHost, alice: Host) -> Host:
    """A member with the patience that sessions have."""
    assert alice.state == "receiving"
    bob = host("bob", patience=WRITE_PATIENCE)
    bob.team("join crew bob")
    return bob


def hold_a_result(alice: Host, bob: Host) -> None:
    """Let bob have a result that it could not record."""
    alice.team("send bob Fix the parser")
    bob.poll()
    bob.fs.at("create").fail(errno.ENOSPC).always()
    bob.settle("the work")
    bob.fs.forget()


def test_a_poll_whose_writes_all_wait(
    alice: Host,
    bob: Host,
    host: OpenHost,
    dead: subprocess.Popen[bytes],
    contend: Callable[..., Contended],
) -> None:
    """To sweep, to take notes, to record a result: three waits of 15 s made a living session stale."""
    hold_a_result(alice, bob)
    carol = host("carol", process=process_of(dead.pid))
    carol.team("join crew carol")
    alice.team("send carol Fix the printer")
    carol.poll()
    kill(dead)
    alice.team("note bob Mind this")
    contended = contend(bob)
    began = bob.clock.offset
    told = notices(bob.poll())
    assert [text.partition(": ")[0] for text in told] == [
        "pi-team could not end the work of a session that died",
        "pi-team could not take the notes",
    ]
    assert bob.clock.offset - began > 3 * WRITE_PATIENCE  # and that the result waits was told before
    assert contended.stalest < STALEST


def test_a_check_in_of_many_whose_writes_all_wait(
    bob: Host, host: OpenHost, contend: Callable[..., Contended]
) -> None:
    """One event, as many waits as teammates."""
    for name in ("carol", "dave"):
        host(name).team(f"join crew {name}")
    contended = contend(bob)
    began = bob.clock.offset
    bob.team("wake")
    assert bob.clock.offset - began > 3 * WRITE_PATIENCE
    assert contended.stalest < STALEST


def test_a_leave_that_waits_twice_and_is_refused(
    alice: Host, bob: Host, contend: Callable[..., Contended]
) -> None:
    """To record the result, and to leave: the session is a member still, and has to look like one."""
    hold_a_result(alice, bob)
    contended = contend(bob)
    bob.team("leave")
    began = bob.clock.offset
    bob.team("leave")
    assert bob.state == "leaving"
    assert bob.clock.offset - began > 2 * WRITE_PATIENCE
    assert contended.stalest < STALEST


def test_a_deletion_that_waits_and_watches_and_waits(
    bob: Host, host: OpenHost, dead: subprocess.Popen[bytes], contend: Callable[..., Contended]
) -> None:
    """Another team: its lock comes late, a member of it has to be watched, and then the lock is taken again.
    One operation has one patience, so that it ends in time for the next heartbeat.
    """
    other = host("other", process=process_of(dead.pid))
    other.team("create guild")
    other.team("join guild other")
    os.unlink(f"{bob.mailbox.path}/guild/presence/other.json")
    contended = contend(bob, "guild", free_once_after=WRITE_PATIENCE - 1)
    bob.team("delete guild")
    (told,) = notices(bob.effects[-3:], "error")
    assert "waited" in told
    assert "guild" in bob.mailbox.teams()
    assert contended.stalest < PRESENCE_EXPIRY - 5

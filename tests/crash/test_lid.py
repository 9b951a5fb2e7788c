"""A machine sleeps and wakes up again: every session was stopped, for longer than a presence lasts."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

import evidence
from grounds import COMPLETED
from nursery import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from nursery import Nursery

INTERVAL, EXPIRY = 1.0, 3.0
"""Seconds; two polls to an interval."""
OPTIONS: dict[str, Any] = {"interval": INTERVAL, "expiry": EXPIRY, "unsynced": True}


class Session:
    """A session that has claimed a request and lives from poll to poll."""

    def __init__(self, nursery: Nursery, path: Path, alias: str) -> None:
        self.alias = alias
        self.actor = nursery.actor(path, **OPTIONS)
        self.owner = self.actor.ask("join", "crew", alias)

    def work(self) -> None:
        """Claim what there is, and go on living."""
        assert self.actor.ask("claim", self.owner)["subject"] == f"for {self.alias}"
        self.actor.begin("attend", self.owner, INTERVAL / 2, "busy")

    def polls(self, count: int) -> dict[str, Any]:
        """Wait for that many polls from now on; what the last one told."""
        self.actor.said()
        for _ in range(count):
            told = self.actor.told()
            assert "poll" in told, told
        return told


def team(nursery: Nursery, path: Path) -> list[Session]:
    """Four sessions, each at work for another one."""
    nursery.actor(path, **OPTIONS).ask("create", "crew")
    sessions = [Session(nursery, path, alias) for alias in ("alice", "bob", "carol", "dora")]
    for sender, recipient in zip(sessions, sessions[1:] + sessions[:1], strict=True):
        subject = f"for {recipient.alias}"
        sender.actor.ask("send", sender.owner, recipient.alias, kind="request", subject=subject, body="x")
    for session in sessions:
        session.work()
    return sessions


def requests(path: Path) -> dict[str, dict[str, Any]]:
    """Each request by its recipient."""
    messages = evidence.payload(path / "crew")["messages"]
    return {message["to"]: message for message in messages if message["kind"] == "request"}


def states(path: Path) -> dict[str, str]:
    """The state of each request by its recipient."""
    return {alias: message["state"] for alias, message in requests(path).items()}


def wait_until_expired(path: Path, sessions: list[Session]) -> None:
    """Return when the presence of each is older than a presence lasts."""
    files = [path / "crew" / "presence" / f"{session.alias}.json" for session in sessions]
    newest = max(json.loads(file.read_text())["seen"] for file in files) / 1_000
    time.sleep(max(0.0, newest + EXPIRY + 0.2 - time.time()))


def settle(path: Path, session: Session) -> bool:
    """End the work of a session."""
    claimed = requests(path)[session.alias]["id"]
    settled: bool = session.actor.ask("settle", session.owner, claimed, COMPLETED)
    return settled


@pytest.mark.slow
def test_who_wakes_up_first_sweeps_nobody(nursery: Nursery, tmp_path: Path) -> None:
    """All sleep longer than a presence lasts; the first to wake up finds everybody else silent."""
    path = tmp_path / "teams"
    sessions = team(nursery, path)
    sessions[-1].polls(6)
    for session in sessions:
        session.polls(1)  # long enough to go by time, and to judge others by it
    for session in sessions:
        session.actor.stop()
    wait_until_expired(path, sessions)
    first, *others = sessions
    first.actor.go_on()
    assert first.polls(2)["alive"] == {"alice": True, "bob": None, "carol": None, "dora": None}
    for session in others:
        session.actor.go_on()
    first.polls(8)
    for session in sessions:
        told = session.polls(1)
        assert told["swept"] == 0
        assert set(told["alive"].values()) == {True}
    assert set(states(path).values()) == {"processing"}
    for session in sessions:
        assert session.actor.finish()["swept"] == 0
        assert settle(path, session)


@pytest.mark.slow
def test_who_died_in_the_sleep_is_swept_by_who_woke_up(nursery: Nursery, tmp_path: Path) -> None:
    """One of the sleepers is killed before it wakes up: its work is interrupted, nobody else's."""
    path = tmp_path / "teams"
    sessions = team(nursery, path)
    first, killed, *others = sessions
    for session in sessions:
        session.actor.stop()
    wait_until_expired(path, sessions)
    killed.actor.kill()
    first.actor.go_on()
    for session in others:
        session.actor.go_on()
    began = time.monotonic()
    while first.polls(1)["swept"] + others[0].polls(1)["swept"] + others[1].polls(1)["swept"] == 0:
        assert time.monotonic() - began < 5
    assert states(path) == {
        "alice": "processing",
        "bob": "interrupted",
        "carol": "processing",
        "dora": "processing",
    }
    result = evidence.payload(path / "crew")["messages"][-1]
    assert (result["kind"], result["to"], result["result"]["outcome"]) == ("result", "alice", "interrupted")


@pytest.mark.slow
def test_who_sleeps_on_while_others_live_loses_its_work(nursery: Nursery, tmp_path: Path) -> None:
    """Control: one session alone is stopped; the others, awake all the time, sweep it, and it finds out."""
    path = tmp_path / "teams"
    sessions = team(nursery, path)
    sleeper, *others = sessions
    for session in sessions:
        session.polls(2)
    sleeper.actor.stop()
    stopped = time.monotonic()
    while states(path)["alice"] == "processing":
        others[0].polls(1)
        assert time.monotonic() - stopped < 5 * EXPIRY
    assert time.monotonic() - stopped > EXPIRY - 2 * INTERVAL
    sleeper.actor.go_on()
    while "poll" in (told := sleeper.actor.told()):
        pass
    assert told["refused"] == "MEMBERSHIP_LOST"
    presence = json.loads((path / "crew" / "presence" / "alice.json").read_text())
    assert presence["seen"] / 1_000 < time.time() - EXPIRY + 2 * INTERVAL  # it did not write it again
    with pytest.raises(Refused, match="MEMBERSHIP_LOST"):
        settle(path, sleeper)

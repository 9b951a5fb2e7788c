"""What a killed writer of the TypeScript implementation left: the next write needs no help from a person."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import evidence
from grounds import membership
from pi_team.mailbox import Mailbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KILLED = [
    "4a-killed-before-link",
    "4b-killed-before-rename",
    "4c-rename-threw",
    "4d-killed-in-leave",
    "4e-killed-in-receive",
]


def date_locks(path: Path, age: float) -> list[Path]:
    """Date the locks that are there as that many seconds old."""
    locks = [*path.glob(".locks/*.lock"), *path.glob("*/state.json.lock")]
    for lock in locks:
        os.utime(lock, (time.time() - age, time.time() - age))
    return locks


@pytest.fixture
def owner(beside: Callable[[str], Any]) -> Callable[[str], Any]:
    """The membership that a session of a fixture held."""
    return lambda entry: membership(beside(f"{entry}.memberships.json")["a"])


@pytest.mark.parametrize("entry", KILLED)
def test_next_write_goes_on_from_the_slot_that_was_left(
    fixtures: Path, owner: Callable[[str], Any], entry: str
) -> None:
    """Revision 6 is in its slot and the record is at 5, locks and all; the next write is revision 7."""
    path, team = fixtures / entry, fixtures / entry / "crash"
    locks = date_locks(path, 60)
    assert len(locks) == (0 if entry.startswith("4c") else 2)
    left = evidence.sealed((team / "revisions" / "6.json").read_bytes())
    assert evidence.revision(team) == 5
    mailbox = Mailbox(path)
    began = time.monotonic()
    if entry.startswith("4d"):  # a's leave took effect, so that a has to join again
        me = mailbox.join("crash", "a")
    else:
        me = owner(entry)
        mailbox.send(me, "b", kind="note", subject="afterwards", body="x")
    assert time.monotonic() - began < 2
    written = evidence.record(team)
    assert written["revision"] == 7
    assert written["previous"] == {"revision": 6, "contentHash": left["contentHash"], "publication": None}
    before = {message["id"]: message for message in left["payload"]["messages"]}
    after = {message["id"]: message for message in written["payload"]["messages"]}
    assert {key: after[key] for key in before} == before
    assert not any(lock.exists() for lock in locks)


@pytest.mark.parametrize("entry", KILLED)
def test_look_mends_it(fixtures: Path, entry: str) -> None:
    """Nobody writes; whoever looks first gets readers and older peers past what was left."""
    path, team = fixtures / entry, fixtures / entry / "crash"
    date_locks(path, 60)
    left = evidence.sealed((team / "revisions" / "6.json").read_bytes())
    assert Mailbox(path).look("crash").revision == 7
    assert evidence.payload(team) == left["payload"]


@pytest.mark.slow
def test_lock_that_is_held_is_waited_for(fixtures: Path, owner: Callable[[str], Any]) -> None:
    """A peer holds both locks, empty as it leaves them, and lets go after a while."""
    path = fixtures / "5-locks-held"
    locks = date_locks(path, 0)
    assert [lock.stat().st_size for lock in locks] == [0, 0]
    waited_for: list[str] = []
    released: list[float] = []

    def release() -> None:
        released.append(time.monotonic())
        for lock in locks:
            lock.unlink()

    timer = threading.Timer(1.2, release)
    timer.start()
    note = {"subject": "s", "body": "x"}
    Mailbox(path, notice=waited_for.append).send(owner("5-locks-held"), "b", kind="note", **note)
    timer.join()
    assert released[0] < time.monotonic() < released[0] + 2
    assert waited_for == ["waiting for another writer that holds the lock of team crash"]
    assert evidence.revision(path / "crash") == 7


@pytest.mark.slow
def test_lock_whose_holder_never_comes_back_expires(fixtures: Path, owner: Callable[[str], Any]) -> None:
    """A peer died holding both locks, which say nothing of it: they are taken when their time is over."""
    path = fixtures / "5-locks-held"
    locks = date_locks(path, 0)
    began = time.monotonic()
    mailbox = Mailbox(path, lock_lifetime=0.6)
    mailbox.send(owner("5-locks-held"), "b", kind="note", subject="s", body="x")
    assert 0.5 < time.monotonic() - began < 5
    assert not any(lock.exists() for lock in locks)
    assert evidence.subjects(path / "crash")["s"] == 1

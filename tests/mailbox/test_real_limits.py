"""Limits of the operating system, set for real: descriptors, file sizes, a full disk, no right to write."""

from __future__ import annotations

import os
import stat
import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest

import evidence
from grounds import ground
from nursery import Died, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nursery import Actor, Nursery

NOTE: Final[dict[str, Any]] = {"kind": "note", "subject": "tried", "body": "x" * 500}
NOBODY: Final = 65_534


def refusal(actor: Actor, *args: Any, **kwargs: Any) -> str:
    """The code and message that an order is refused with; "" where it is done."""
    try:
        actor.ask(*args, **kwargs)
    except Refused as refused:
        return f"{refused.code}: {refused.message}"
    return ""


@pytest.mark.parametrize("what", ["look", "send", pytest.param("join", marks=pytest.mark.slow)])
def test_no_descriptor_is_left(nursery: Nursery, tmp_path: Path, what: str) -> None:
    """With 0, 1, 2, … descriptors to spare an operation is refused and leaks none, until there are enough."""
    for spare in range(20):
        field = ground(tmp_path / str(spare))
        before = evidence.fingerprint(field.path)
        actor = nursery.actor(field.path, lock_lifetime=0.2, unsynced=True)
        other = nursery.actor(field.path, unsynced=True)
        order: list[Any] = [what, "crew", *(["newcomer"] if what == "join" else [])]
        if what == "send":
            order = [what, field.owners["alice"], "bob"]
        given = NOTE if what == "send" else {}
        actor.ask("limit", spare)
        refused = refusal(actor, *order, **given)
        if not refused:
            break
        assert refused.startswith(("STORAGE", "OUTCOME_UNKNOWN")), refused
        assert "too many files open" in refused or refused.startswith("OUTCOME_UNKNOWN"), refused
        opened = actor.ask("open_descriptors")  # a look may have kept the record open
        if refused.startswith("STORAGE"):
            assert [refusal(actor, *order, **given) for _ in range(5)] == [refused] * 5
        assert actor.ask("open_descriptors") == opened
        actor.ask("unlimit")
        if refused.startswith("STORAGE"):
            assert evidence.payload(field.crew) == evidence.sealed(before["crew/state.json"][-1])["payload"]
        other.ask("send", field.owners["dora"], "carol", **NOTE | {"subject": "other"})
        assert refusal(actor, *order, **given) == ""
        assert evidence.strays(field.path) == []
    assert 1 < spare < 19
    assert evidence.strays(field.path) == []


def test_file_may_not_grow(nursery: Nursery, tmp_path: Path) -> None:
    """The record would outgrow the largest file that is allowed: fifty tries leave nothing, then it works."""
    field = ground(tmp_path)
    before = evidence.fingerprint(field.crew / "revisions")
    actor = nursery.actor(field.path)
    actor.ask("size", (field.crew / "state.json").stat().st_size + 100)
    for _ in range(50):
        refused = refusal(actor, "send", field.owners["alice"], "bob", **NOTE)
        assert refused == "STORAGE: cannot write to team crew: File too large"
    now = evidence.fingerprint(field.crew / "revisions")
    assert {**now, ".": ()} == {**before, ".": ()}
    actor.ask("size", None)
    assert refusal(actor, "send", field.owners["alice"], "bob", **NOTE) == ""
    assert evidence.subjects(field.crew)["tried"] == 1
    assert actor.ask("doctor") == []


@pytest.fixture
def small_disk(nursery: Nursery, tmp_path: Path) -> Iterator[Path | None]:
    """A file system of 400 kB, where this process may mount one."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k,mode=700", "tmpfs", str(path)]
    mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    yield path if mounted else None
    if mounted:
        nursery.forget()  # what is open keeps it busy
        subprocess.run(["umount", str(path)], check=True)


def fill(path: Path) -> None:
    """Write until the disk is full. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        while True:
            os.write(fd, bytes(4_096))
    finally:
        os.close(fd)


def test_disk_is_full(nursery: Nursery, tmp_path: Path, small_disk: Path | None) -> None:
    """The disk is full, really where a small one can be mounted, else by what each write is told."""
    field = ground(small_disk or tmp_path / "simulated")
    actor = nursery.actor(field.path)
    filler = field.path.parent / "filler"
    if small_disk:
        with pytest.raises(OSError, match="No space left"):
            fill(filler)
    else:
        actor.ask("fail", 28, method="write")
    before = evidence.fingerprint(field.crew / "revisions")
    for _ in range(50):
        refused = refusal(actor, "send", field.owners["alice"], "bob", **NOTE)
        assert refused.startswith("STORAGE: "), refused
        assert "the disk is full" in refused
    now = evidence.fingerprint(field.crew / "revisions")
    assert {**now, ".": ()} == {**before, ".": ()}
    assert actor.ask("look", "crew")["revision"] == field.revision
    assert evidence.strays(field.path) == []
    if small_disk:
        filler.unlink()
    else:
        actor = nursery.actor(field.path)
    assert refusal(actor, "send", field.owners["alice"], "bob", **NOTE) == ""
    assert actor.ask("doctor") == []


def close_to_writing(path: Path) -> int:
    """Take the right to write from everything, and give it to a user without special rights; which one."""
    user = NOBODY if os.geteuid() == 0 else os.geteuid()
    for found in [path, *path.rglob("*")]:
        found.chmod(0o500 if stat.S_ISDIR(found.stat().st_mode) else 0o400)
        if user != os.geteuid():
            os.chown(found, user, user)
    return user


@pytest.mark.parametrize("pending", [False, True])
def test_looks_work_without_the_right_to_write(nursery: Nursery, public_path: Path, *, pending: bool) -> None:
    """A directory that may only be read: every look works and changes nothing, every change is refused.

    A publication that was not installed cannot be, and is shown all the same.
    """
    field = ground(public_path)
    public_path.chmod(0o755)  # as which it was not unpacked
    if pending:
        victim = nursery.actor(field.path)
        victim.ask("trap", "kill", method="rename", name="* -> state.json")
        with pytest.raises(Died):
            victim.ask("send", field.owners["alice"], "bob", **NOTE)
        for lock in (field.path / ".locks" / "crew.lock", field.crew / "state.json.lock"):
            lock.unlink()
    actor = nursery.actor(field.path, interval=0.05)
    user = close_to_writing(field.path)
    if os.geteuid() == 0:
        actor.ask("become", user)
    before = evidence.fingerprint(field.path)
    shown = field.revision + pending
    assert actor.ask("teams") == ["crew", "quiet"]
    assert actor.ask("look", "crew")["revision"] == shown
    assert actor.ask("snapshot", field.owners["alice"])["revision"] == shown
    assert actor.ask("look", "crew")["revision"] == shown
    assert [report["revision"] for report in actor.ask("revisions", "crew")][-1] == shown
    assert actor.ask("await_change", "crew", 0) is False
    codes = {finding["code"] for finding in actor.ask("doctor")}
    assert codes == {"STORAGE", *(["PENDING", "LEFTOVER"] if pending else [])} - {"LEFTOVER"}
    for order in (
        ["send", field.owners["alice"], "bob"],
        ["join", "crew", "newcomer"],
        ["heartbeat", field.owners["alice"], "idle"],
        ["create", "third"],
        ["delete_team", "quiet"],
    ):
        refused = refusal(actor, *order, **(NOTE if order[0] == "send" else {}))
        assert refused.startswith("STORAGE"), order
        assert "permission denied" in refused
    assert evidence.fingerprint(field.path) == before
    for found in [field.path, *field.path.rglob("*")]:
        found.chmod(0o700 if found.is_dir() else 0o600)

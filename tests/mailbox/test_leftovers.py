"""What dead writers leave, and what may be swept of it (docs/protocol.md, "Left-over files")."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from grounds import ground
from interposition import InterposedFileSystem
from nursery import Died
from pi_team import Mailbox
from trials import heal

if TYPE_CHECKING:
    from pathlib import Path

    from nursery import Nursery


def aged(path: Path, seconds: float) -> None:
    """Date a file as if it had been written that long ago."""
    then = time.time() - seconds
    os.utime(path, (then, then), follow_symlinks=False)


def test_file_that_a_death_inside_the_library_of_the_locks_left(nursery: Nursery, tmp_path: Path) -> None:
    """A writer dies while the library takes over a dead one's lock: its half-made marker stays for ever."""
    field = ground(tmp_path, "locked")
    victim = nursery.actor(field.path, unsynced=True)
    victim.ask("audit", "kill", event="os.chmod *")
    with pytest.raises(Died):
        victim.ask("send", field.owners["alice"], "bob", kind="note", subject="two", body="x")
    (left,) = field.path.glob(".locks/crew.lock.break.*")

    other = nursery.actor(field.path, unsynced=True)
    other.ask("send", field.owners["alice"], "bob", kind="note", subject="three", body="x")
    assert left.exists()  # nothing in its name says from which boot its maker is: its age decides
    aged(left, 3_590)
    assert other.ask("doctor") == []
    aged(left, 3_610)
    assert heal(other, field.path) == ["LEFTOVER"]
    assert not left.exists()
    left.touch()
    aged(left, 3_610)
    other.ask("create", "another")
    assert not left.exists()


def test_presence_temporary_of_the_longest_alias(nursery: Nursery, tmp_path: Path) -> None:
    """The counter behind the alias makes it longer than any alias is: it has to be swept all the same."""
    field = ground(tmp_path)
    gone = nursery.actor(field.path, unsynced=True)
    gone.ask("join", "crew", "a" * 48)
    (mine,) = field.path.glob(f"crew/presence/{'a' * 48}.json")
    probe = "from pi_team.presence import owner_token, this_process; print(owner_token(this_process()))"
    owner = subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True, text=True).stdout
    left = mine.with_name(f".{'a' * 48}-123.{owner.strip()}.tmp")
    left.write_bytes(b"{}")
    other = nursery.actor(field.path, unsynced=True)
    assert heal(other, field.path) == ["LEFTOVER"]
    assert not left.exists()


def test_move_is_synced_before_a_tombstone_is_swept(nursery: Nursery, tmp_path: Path) -> None:
    """A deletion dies before it synced its move, its tombstone is swept, and the power is cut.

    The name would come back without the files that the sweep removed: half a team.
    """
    field = ground(tmp_path)
    victim = nursery.actor(field.path, unsynced=True)
    victim.ask("trap", "kill", method="fsync", name="*teams")
    with pytest.raises(Died):
        victim.ask("delete_team", "quiet")
    (tombstone,) = field.path.glob(".deleted-quiet-*")
    port = InterposedFileSystem()
    Mailbox(field.path, filesystem=port).create("another")
    calls = [f"{call.method} {call.name}" for call in port.calls]
    removed = calls.index(f"rmdir {tombstone.name}")
    opened = calls.index(f"open_dir {tombstone.name}")
    created = next(index for index, call in enumerate(calls) if call.endswith("-> another"))
    synced = [index for index, call in enumerate(calls) if call == f"fsync {field.path}" and index > created]
    assert any(index < opened < removed for index in synced[1:])  # the first is the creation's own


def test_old_tombstone_of_an_older_peer(nursery: Nursery, tmp_path: Path) -> None:
    """An older peer died in a deletion: its tombstone names no owner, and goes when it is an hour old."""
    field = ground(tmp_path)
    tombstone = field.path / ".deleted-gone-0a1b2c3d-0a1b-4c2d-8e3f-0a1b2c3d4e5f"
    tombstone.mkdir(mode=0o700)
    (tombstone / "state.json").touch()
    other = nursery.actor(field.path, unsynced=True)
    aged(tombstone, 3_590)
    assert other.ask("doctor") == []
    aged(tombstone, 3_610)
    assert heal(other, field.path) == ["LEFTOVER"]
    assert not tombstone.exists()


@pytest.mark.parametrize("owned", [False, True])
def test_hidden_directory_that_is_not_ours(nursery: Nursery, tmp_path: Path, owned: bool) -> None:
    """A person keeps hidden directories among the teams, whose names only begin as ours do, for a long time.

    Also where the name goes on like that of a process that is gone.
    """
    field = ground(tmp_path)
    gone = f".{2**22 + 1}-1-{'0' * 32}-x" if owned else ""
    uuid = "0a1b2c3d-0a1b-4c2d-8e3f-0a1b2c3d4e5f"
    theirs = [".new-ideas", ".deleted-notes-of-2023", ".deleted-", f".deleted-{uuid}"]
    theirs += [f".deleted-crew-{uuid.upper()}"]
    theirs += [f".deleted-Crew-{uuid}", f".deleted-{'a' * 49}-{uuid}", f".old-crew-{uuid}"]
    theirs += [".deleted-by-me.bak", f".deleted-crew-{uuid}.bak", *([] if owned else [f".new-crew-{uuid}"])]
    for name in theirs:
        (field.path / (name + gone)).mkdir(mode=0o700)
        (field.path / (name + gone) / "kept").touch()
        aged(field.path / (name + gone), 4_000)
    other = nursery.actor(field.path, unsynced=True)
    assert other.ask("doctor") == []
    other.ask("create", "another")
    other.ask("delete_team", "another")
    assert [name for name in theirs if not (field.path / (name + gone) / "kept").exists()] == []


def test_locks_from_the_future(nursery: Nursery, tmp_path: Path) -> None:
    """Somebody set the clock back: two locks of nobody are an hour younger than anything can be."""
    field = ground(tmp_path)
    for lock in (field.path / ".locks" / "crew.lock", field.crew / "state.json.lock"):
        lock.touch(mode=0o600)
        aged(lock, -3_600)
    actor = nursery.actor(field.path, lock_lifetime=0.3, unsynced=True)
    assert actor.ask("doctor") == []
    began = time.monotonic()
    note = {"kind": "note", "subject": "s", "body": "x"}
    actor.ask("send", field.owners["alice"], "bob", **note)
    assert 0.3 <= time.monotonic() - began < 5
    assert list(field.path.glob(".locks/*.lock")) == []

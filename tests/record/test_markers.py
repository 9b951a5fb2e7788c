"""The stable lock that a process makes itself, once the library has made one for it: it is no different."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from typing import TYPE_CHECKING

import pytest
from filelock import SoftFileLock

from cut_short import each_call
from interposition import CHANGING
from pi_team.errors import StorageError
from pi_team.limits import LOCK_LIFETIME
from processes import Child, die_here, stop_here
from worlds import TEAM, StillClock, World, Writer, put, read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK = f"{TEAM}.lock"


def stable(world: World) -> str:
    return os.path.join(world.path, ".locks", LOCK)


def practised(world: World, name: str = "w") -> Writer:
    """A process for which the library has made a lock before."""
    writer = Writer(world, name, locked=True)
    writer.append(f"{name}'s first")
    return writer


def slept(writer: Writer) -> float:
    assert isinstance(writer.clock, StillClock)
    return writer.clock.slept


@contextlib.contextmanager
def held(writer: Writer) -> Iterator[None]:
    with writer.locks.stable(TEAM, patience=writer.patience()):
        yield


@pytest.fixture
def team(world: World) -> World:
    """One team."""
    world.plant(1)
    return world


def test_both_ways_leave_the_same_file(team: World) -> None:
    """The first lock is the library's, the second one ours: the same text, the same mode."""
    writer = Writer(team, "w", locked=True)
    seen: list[tuple[bytes, int, bool]] = []
    for _ in range(2):
        calls = len(writer.fs.calls)
        with held(writer):
            ours = f"create {LOCK}" in [str(call) for call in writer.fs.calls[calls:]]
            seen.append((read(stable(team)), stat.S_IMODE(os.stat(stable(team)).st_mode), ours))
        assert not os.path.exists(stable(team))
    assert [ours for *_, ours in seen] == [False, True]
    assert seen[0][:2] == seen[1][:2]
    assert seen[0][1] == 0o600


def test_library_knows_the_holder(team: World) -> None:
    """To whoever looks by the library the lock is this process's."""
    with held(practised(team)):
        lock = SoftFileLock(stable(team))
        assert lock.pid == os.getpid()
        assert lock.is_lock_held_by_us


def test_killed_holder_is_noticed_at_once(team: World) -> None:
    """A process dies with a lock of its own making: the next writer does not wait for its lifetime."""

    def hold() -> None:
        with held(practised(team, "dying")):
            die_here()

    with Child(hold) as child:
        child.wait_killed()
    assert os.path.exists(stable(team))
    writer = practised(team)
    assert slept(writer) < 0.1


def test_robbed_holder_leaves_the_lock_of_the_thief(root: Path) -> None:
    """It is stopped for longer than the lifetime, and continued while the thief holds the lock."""
    team = World(str(root / "brief"), lifetime=0.3)
    team.plant(1)

    def hold() -> bool:
        with held(practised(team, "stopped")):
            stop_here()
        return True

    with Child(hold) as child:
        child.wait_stopped()
        time.sleep(0.4)
        with held(practised(team, "thief")):
            mine = os.stat(stable(team)).st_ino
            child.resume()
            assert child.result()
            assert os.stat(stable(team)).st_ino == mine
    assert not os.path.exists(stable(team))


def test_forked_child_writes_its_own_name(team: World) -> None:
    """What the parent learned names the parent."""
    writer = practised(team)

    def holder() -> str:
        with held(writer):
            return read(stable(team)).decode().split("\n")[0]

    with Child(holder) as child:
        assert child.result() == str(child.pid)


def test_text_of_a_thief_is_not_learned(team: World) -> None:
    """The lock is stolen before the text is read: the next one does not bear the thief's name."""
    writer = Writer(team, "w", locked=True)
    writer.fs.at("open_read", LOCK).before(lambda: put(stable(team), b"1\nelsewhere\n"))
    with held(writer):
        os.unlink(stable(team))
    with held(writer):
        assert read(stable(team)).startswith(b"%d\n" % os.getpid())


def test_directory_of_the_locks_that_vanishes(team: World) -> None:
    """Somebody tidies it away between the look at it and the lock: it is made anew, as by the library."""
    writer = practised(team)
    writer.fs.at("create", LOCK).before(lambda: os.rmdir(os.path.dirname(stable(team))))
    with held(writer):
        assert os.path.exists(stable(team))


def outlive(path: str) -> None:
    """Let a lock be as old as its lifetime, by the clock of the file system."""
    os.utime(path, (time.time() - LOCK_LIFETIME - 1,) * 2)


def one(world: World) -> None:
    world.plant(1)


def twice(writer: Writer) -> None:
    """The library makes the first lock, and the process the second one."""
    writer.append_many(2)


@pytest.mark.parametrize("fault", ["fail", "fail_after"])
def test_each_call_refused(world: World, fault: str) -> None:
    """EIO anywhere: refused cleanly or done, and a lock that could not be removed expires."""
    seen = set()
    for index, call, where in each_call(world, one, twice, locked=True):
        if LOCK not in call.name or (fault == "fail_after" and call.method not in CHANGING):
            continue
        writer = Writer(world, "w", locked=True)
        point = writer.fs.at_call(index)
        _ = getattr(point, fault)(errno.EIO)
        for item in ("one", "two"):
            before = world.items()
            try:
                writer.append(item)
            except StorageError:
                seen.add(f"{call.method} refuses")
                assert world.items() == before, where
            else:
                seen.add(call.method)
                assert world.items()[-1] == item, where
            if os.path.exists(stable(world)):
                assert call.method in {"create", "fstat", "stat", "unlink"}, where
                outlive(stable(world))
        assert point.reached, where
        assert writer.fs.open_names == {}, where
        assert slept(practised(world, "after")) < 0.1, where
    assert seen >= {"create", "create refuses", "write", "write refuses", "unlink"}
    assert not seen & {"unlink refuses", "stat refuses", "open_read refuses"}


def test_killed_at_each_call(world: World) -> None:
    """Dead at any call of its lock: the next one waits only where the lock did not say yet whose it is."""
    seen = set()
    for index, call, where in each_call(world, one, twice, locked=True):
        if LOCK not in call.name:
            continue

        def die(index: int = index) -> None:
            dying = Writer(world, "dying", locked=True)
            dying.fs.at_call(index).before(die_here)
            twice(dying)

        with Child(die) as child:
            child.wait_killed()
        seen.add(call.method)
        if call.method == "write":
            outlive(stable(world))
        assert slept(practised(world, "after")) < 0.1, where
    assert seen >= {"open_read", "create", "write", "unlink"}

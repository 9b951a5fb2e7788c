"""The two locks: what they wait for, whom they steal from, and that a theft harms nobody."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from interposition import CHANGING
from pi_team.clocks import SystemClock
from pi_team.errors import Busy, OutcomeUnknown, PiTeamError, RecordUnsafe, StorageError
from pi_team.presence import owner_token, this_process
from processes import Child, die_here, stop_here
from worlds import TEAM, StillClock, World, Writer, appending, put, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

INSTALL = ".*.tmp -> state.json"
SLOT = ".*.tmp -> *.json"


def stable(world: World, team: str = TEAM) -> str:
    return os.path.join(world.path, ".locks", f"{team}.lock")


def compatibility(world: World) -> str:
    return os.path.join(world.team(), "state.json.lock")


def locked(world: World, name: str = "w", *, real_time: bool = False) -> Writer:
    return Writer(world, name, locked=True, clock=SystemClock() if real_time else None)


def slept(writer: Writer) -> float:
    assert isinstance(writer.clock, StillClock)
    return writer.clock.slept


@contextlib.contextmanager
def both(writer: Writer) -> Iterator[None]:
    with (
        writer.open() as team,
        writer.locks.stable(TEAM, patience=writer.patience()),
        writer.locks.compatibility(team.fd, TEAM, writer.patience()),
    ):
        yield


@pytest.fixture
def brief(root: Path) -> World:
    """Locks that are given up after 0.3 s."""
    world = World(str(root), lifetime=0.3)
    world.plant(1)
    return world


# --- order ----------------------------------------------------------------------------------------


def test_stable_lock_first_and_released_last(world: World) -> None:
    """Older peers take the compatibility lock only under the stable one; so do we."""
    world.plant(1)
    writer = locked(world)
    seen: list[tuple[bool, bool]] = []

    def look() -> None:
        seen.append((os.path.exists(stable(world)), os.path.exists(compatibility(world))))

    writer.fs.at("create", "state.json.lock").before(look)
    writer.fs.at("link", SLOT).before(look)
    writer.fs.at("unlink", "state.json.lock").before(look)
    writer.append("x")
    assert seen == [(True, False), (True, True), (True, True)]
    assert not os.path.exists(stable(world))
    assert not os.path.exists(compatibility(world))


def test_several_stable_locks_in_lexical_order(world: World) -> None:
    """Two renames in opposite directions must not wait for each other: nobody holds a later one first."""
    world.plant(1)
    holder, other = locked(world, "holder"), locked(world, "other")
    held: list[bool] = []

    class Watching(StillClock):
        def sleep(self, seconds: float) -> None:
            held.append(os.path.exists(stable(world, "beta")))
            super().sleep(seconds)

    other.clock = Watching()
    with (
        holder.locks.stable("alpha", patience=holder.patience()),
        pytest.raises(Busy),
        other.locks.stable("beta", "alpha", patience=other.patience(0.5)),
    ):
        pytest.fail("alpha is held")
    assert held
    assert not any(held)
    assert not os.path.exists(stable(world, "beta"))


def test_waiting_for_the_second_of_two_gives_the_first_back(world: World) -> None:
    """A BUSY rename leaves no lock behind."""
    world.plant(1)
    holder, other = locked(world, "holder"), locked(world, "other")
    with (
        holder.locks.stable("beta", patience=holder.patience()),
        pytest.raises(Busy),
        other.locks.stable("beta", "alpha", patience=other.patience(0.5)),
    ):
        pytest.fail("beta is held")
    assert os.listdir(os.path.join(world.path, ".locks")) == []


# --- dead holders ---------------------------------------------------------------------------------


def test_killed_holder_of_both_locks_is_noticed_at_once(world: World) -> None:
    """A real process holds both and dies: the next writer waits neither for the lifetime nor for a second."""
    world.plant(1)

    def hold() -> None:
        with both(locked(world)):
            stop_here()

    with Child(hold) as child:
        child.wait_stopped()
        child.kill()
    assert os.path.exists(stable(world))
    assert os.path.exists(compatibility(world))
    writer = locked(world)
    writer.append("x")
    assert slept(writer) < 0.1
    assert world.items() == ("r1", "x")


def test_killed_holder_whose_pid_is_in_use_again(world: World) -> None:
    """The pid alone names nobody: with another start time it is another process, and the lock is free."""
    world.plant(1)
    me = this_process()
    assert me.start is not None
    put(compatibility(world), owner_token(me).replace(str(me.start), str(me.start - 1)))
    writer = locked(world)
    writer.append("x")
    assert slept(writer) < 0.1


def test_living_holder_is_not_disturbed(world: World) -> None:
    """The compatibility lock of a running process stays until its lifetime is over."""
    world.plant(1)
    put(compatibility(world), owner_token(this_process()))
    writer = locked(world)
    with (
        writer.open() as team,
        pytest.raises(Busy),
        writer.locks.compatibility(team.fd, TEAM, writer.patience(5)),
    ):
        pytest.fail("it is held")
    assert read(compatibility(world)).decode() == owner_token(this_process())


# --- a stopped holder -----------------------------------------------------------------------------

MOMENTS = {
    "before its private file": ("create", ".*.tmp"),
    "before its link": ("link", SLOT),
    "before its sync": ("fsync", "revisions"),
    "between link and rename": ("rename", INSTALL),
    "after its rename": ("stat", "*/alpha"),
    "before its release": ("unlink", "state.json.lock"),
}


@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_stopped_holder_is_robbed_and_continued(brief: World, moment: tuple[str, str]) -> None:
    """SIGSTOP for longer than the lifetime: both locks are stolen, and nobody loses or puts back anything."""

    def publish_stopping() -> list[int]:
        writer = locked(brief, "stopped", real_time=True)
        writer.fs.at(*moment, nth=2 if moment[1] == "*/alpha" else 1).before(stop_here)
        revisions = [writer.append("stopped").revision]
        return [*revisions, writer.append("again").revision]

    with Child(publish_stopping) as child:
        child.wait_stopped()
        thief = locked(brief, "thief", real_time=True)
        for number in range(3):
            thief.append(f"thief{number}")
        shown = brief.items()
        child.resume()
        revisions = child.result()
    items = brief.items()
    assert sorted(items) == ["again", "r1", "stopped", "thief0", "thief1", "thief2"]
    assert [item for item in items if item in shown] == list(shown), "what was there stayed, in its order"
    assert len(set(revisions)) == 2
    assert not os.path.exists(stable(brief))
    assert not os.path.exists(compatibility(brief))
    assert brief.state().privates == ()


def test_robbed_holder_ends_inside_the_thiefs_critical_section(brief: World) -> None:
    """It publishes and releases while the thief is at its link; the locks that it finds are not its own."""

    def publish_stopping() -> int:
        writer = locked(brief, "stopped", real_time=True)
        writer.fs.at("link", SLOT).before(stop_here)
        return writer.append("stopped").revision

    with Child(publish_stopping) as child:
        child.wait_stopped()
        thief = locked(brief, "thief", real_time=True)
        seen: list[object] = []

        def let_the_other_end() -> None:
            mine = [os.stat(path) for path in (stable(brief), compatibility(brief))]
            child.resume()
            seen.append(child.result())
            assert [os.stat(path).st_ino for path in (stable(brief), compatibility(brief))] == [
                status.st_ino for status in mine
            ]

        thief.fs.at("link", SLOT).before(let_the_other_end)
        assert thief.append("thief").revision == 3
    assert seen == [2]
    assert brief.items() == ("r1", "stopped", "thief")


def test_robbed_process_takes_its_lock_again(brief: World) -> None:
    """After a theft the same process publishes on as before."""

    def publish_stopping() -> list[int]:
        writer = locked(brief, "stopped", real_time=True)
        writer.fs.at("rename", INSTALL).before(stop_here)
        return [writer.append(f"s{number}").revision for number in range(3)]

    with Child(publish_stopping) as child:
        child.wait_stopped()
        locked(brief, "thief", real_time=True).append("thief")
        child.resume()
        assert child.result() == [2, 4, 5]
    assert brief.items() == ("r1", "s0", "thief", "s1", "s2")


# --- markers of others ----------------------------------------------------------------------------


def date(path: str, age: float) -> None:
    os.utime(path, (time.time() - age,) * 2)


@pytest.mark.parametrize("which", [stable, compatibility], ids=["stable", "compatibility"])
def test_empty_marker_is_left_alone_until_its_lifetime_is_over(
    world: World, which: Callable[[World], str]
) -> None:
    """A peer's lock says nothing about its holder, who may be at work: it counts until it is too old."""
    world.lifetime = 100
    world.plant(1)
    os.mkdir(os.path.dirname(stable(world)), 0o700)
    put(which(world), b"")
    for age in (0, 50, 90):
        date(which(world), age)
        writer = locked(world)
        with pytest.raises(Busy):
            writer.publish(appending("early"), patience=writer.patience(1))
        assert read(which(world)) == b""
    date(which(world), 101)
    writer = locked(world)
    writer.append("x")
    assert slept(writer) < 0.2
    assert world.items() == ("r1", "x")
    assert not os.path.exists(which(world))


@pytest.mark.parametrize("which", [stable, compatibility], ids=["stable", "compatibility"])
def test_lock_dated_in_the_future(world: World, which: Callable[[World], str]) -> None:
    """The clock stepped back: the lock is dated anew when it is first seen, and expires like any other."""
    world.lifetime = 100
    world.plant(1)
    os.mkdir(os.path.dirname(stable(world)), 0o700)
    put(which(world), b"")
    date(which(world), -86_400)
    writer = locked(world)
    with pytest.raises(Busy):
        writer.publish(appending("early"), patience=writer.patience(1))
    assert os.stat(which(world)).st_mtime <= time.time()
    date(which(world), 101)
    locked(world).append("x")
    assert world.items() == ("r1", "x")


@pytest.mark.parametrize("content", [b"garbage", b"1-2-x", b"\xff\xfe", b"a" * 1_024])
def test_foreign_text_in_the_compatibility_lock(world: World, content: bytes) -> None:
    """Whatever stands inside, it is held until its lifetime is over, by the clock that was handed in."""
    world.plant(1)
    put(compatibility(world), content)
    writer = locked(world)
    started = time.monotonic()
    writer.append("x")
    really = time.monotonic() - started
    assert 9.9 - really < slept(writer) < 10.2


def replace(path: str, make: Callable[[], None]) -> None:
    os.unlink(path)
    make()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: os.chmod(path, 0o640),
        lambda path: replace(path, lambda: os.symlink("state.json", path)),
        lambda path: replace(path, lambda: os.mkdir(path, 0o700)),
        lambda path: replace(path, lambda: os.mkfifo(path, 0o600)),
        lambda path: os.truncate(path, 1_025),
    ],
    ids=["group-readable", "link", "directory", "FIFO", "too large"],
)
def test_compatibility_lock_that_is_no_lock(world: World, spoil: Callable[[str], object]) -> None:
    """It is refused, never stolen or followed, and left as it is."""
    world.plant(1)
    put(compatibility(world), b"")
    spoil(compatibility(world))
    os.utime(compatibility(world), (1, 1), follow_symlinks=False)
    before = world.photograph(TEAM)
    with pytest.raises((RecordUnsafe, StorageError)):
        locked(world).append("x")
    assert world.photograph(TEAM) == before


@pytest.mark.parametrize("which", [stable, compatibility], ids=["stable", "compatibility"])
def test_release_removes_only_its_own(world: World, which: Callable[[World], str]) -> None:
    """Somebody stole the lock and holds it by now: the release of the robbed one leaves it."""
    world.plant(1)
    with both(locked(world)):
        os.unlink(which(world))
        put(which(world), b"")
    assert read(which(world)) == b""


def test_locks_directory_must_be_private(world: World) -> None:
    """Whoever can write into it can lock everybody out."""
    world.plant(1)
    os.mkdir(os.path.dirname(stable(world)))
    os.chmod(os.path.dirname(stable(world)), 0o770)
    before = world.photograph()
    with pytest.raises(RecordUnsafe):
        locked(world).append("x")
    assert world.photograph() == before


# --- waiting --------------------------------------------------------------------------------------


def test_busy_when_patience_is_over(world: World) -> None:
    """Waiting for the locks ends after 15 s, with nothing changed."""
    world.plant(1)
    world.lifetime = 60
    writer = locked(world)
    with both(locked(world, "holder")):
        before = world.photograph(TEAM)
        with pytest.raises(Busy, match="waited 15 s for another writer that holds the lock of team alpha"):
            writer.append("x")
        assert world.photograph(TEAM) == before
    assert 15 <= slept(writer) < 15.1
    assert writer.fs.open_names == {}


def test_retries_count_into_the_same_patience(world: World) -> None:
    """Somebody wins every race: BUSY when patience is over, and nothing of the loser is left."""
    world.plant(1)
    writer, other = world.writer(), world.writer("other")
    writer.fs.at("link", SLOT).before(lambda: other.append("o")).always()
    with pytest.raises(Busy, match="other writers of team alpha"):
        writer.publish(appending("x"), patience=writer.patience(0.3))
    assert 0.3 <= slept(writer) < 0.31
    assert "x" not in world.items()
    assert world.state().privates == ()


@pytest.mark.parametrize("which", [stable, compatibility], ids=["stable", "compatibility"])
def test_notice_after_one_second(world: World, which: Callable[[World], str]) -> None:
    """Said once, when the wait has lasted a second, with what is waited for."""
    world.plant(1)
    os.mkdir(os.path.dirname(stable(world)), 0o700)
    put(which(world), b"")
    writer = locked(world)
    said: list[tuple[float, str]] = []
    patience = writer.patience(5, lambda text: said.append((slept(writer), text)))
    with pytest.raises(Busy):
        writer.publish(lambda items: items, patience=patience)
    assert len(said) == 1
    assert 1 <= said[0][0] < 1.1
    assert said[0][1].startswith("waiting for ")
    assert TEAM in said[0][1]


def test_short_wait_says_nothing(world: World) -> None:
    """Below a second nobody is bothered."""
    world.plant(1)
    os.mkdir(os.path.dirname(stable(world)), 0o700)
    put(stable(world), b"")
    writer = locked(world)
    said: list[str] = []
    with pytest.raises(Busy):
        writer.publish(lambda items: items, patience=writer.patience(0.9, said.append))
    assert said == []


@pytest.mark.parametrize("which", [stable, compatibility], ids=["stable", "compatibility"])
def test_waiting_does_not_spin(world: World, which: Callable[[World], str]) -> None:
    """Each look is preceded by a sleep, and a look at the stable lock costs one call."""
    world.plant(1)
    os.mkdir(os.path.dirname(stable(world)), 0o700)
    put(which(world), b"")
    writer = locked(world)
    with pytest.raises(Busy):
        writer.publish(lambda items: items, patience=writer.patience(8))
    assert isinstance(writer.clock, StillClock)
    assert writer.clock.sleeps < 8 / 0.001
    calls = 1 if which is stable else 6
    full_looks = 8 / 0.1  # one call more each: is the lock so old that it should have been taken over?
    assert len(writer.fs.calls) < calls * writer.clock.sleeps + full_looks + 30


def test_lock_that_is_released_is_taken_soon(world: World) -> None:
    """The waiter looks every few milliseconds, not every 50."""
    world.plant(1)
    holder, writer = locked(world, "holder"), locked(world)
    with contextlib.ExitStack() as held:
        held.enter_context(both(holder))

        class Releasing(StillClock):
            def sleep(self, seconds: float) -> None:
                super().sleep(seconds)
                if self.slept > 1:
                    held.close()

        writer.clock = clock = Releasing()
        writer.locks._clock = clock
        writer.append("x")
        assert clock.slept < 1.02


# --- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["fail", "fail_after"])
def test_each_call_of_a_locked_publication_refused(world: World, fault: str) -> None:
    """EIO anywhere, the locks' own calls included: refused cleanly or done, and nobody is locked out."""
    world.kept = 2
    world.plant(1)
    locked(world).append("first")  # makes the directory of the locks
    model = locked(world)
    model.append("model")
    for index, planned in enumerate(model.fs.calls):
        if fault == "fail_after" and planned.method not in CHANGING:
            continue
        writer = locked(world)
        point = writer.fs.at_call(index)
        _ = point.fail(errno.EIO) if fault == "fail" else point.fail_after(errno.EIO)
        item, before = f"item{index}", world.items()
        outcome: type[BaseException] | None = None
        try:
            writer.append(item)
        except PiTeamError as error:
            outcome = type(error)
        call = writer.fs.calls[index]
        where = f"call {index}: {call}"
        assert outcome in (None, StorageError, OutcomeUnknown), where
        assert writer.fs.open_names == {}, where
        assert point.reached, where
        if outcome is StorageError:
            assert world.items() == before, where
        assert not os.path.exists(stable(world)), where
        if "state.json.lock" not in call.name:
            assert not os.path.exists(compatibility(world)), where
        after = locked(world, "after")
        after.append(f"after{index}")
        assert world.items().count(item) == (outcome is not StorageError), where
        assert world.state().privates == (), where


def test_killed_at_each_call_with_its_locks(world: World) -> None:
    """A process that dies at any call, its locks in place: the next one waits for nothing.

    Except for a compatibility lock that died before it said whose it is: that looks like a living peer's.
    """
    world.plant(1)
    locked(world).append("first")
    model = locked(world)
    model.append("model")
    calls = list(enumerate(model.fs.calls))
    assert len(calls) > 30
    for index, call in calls[::3]:

        def die(index: int = index) -> None:
            writer = locked(world, "dying")
            writer.fs.at_call(index).before(die_here)
            writer.append(f"item{index}")

        with Child(die) as child:
            child.wait_killed()
        writer = locked(world, "next")
        writer.append(f"next{index}")
        nameless = str(call) == "write state.json.lock"
        assert slept(writer) < (10.5 if nameless else 0.2), f"call {index}: {call}"
        assert world.items().count(f"item{index}") <= 1
        assert world.items()[-1] == f"next{index}"


def test_deleted_team_is_not_resurrected_by_its_lock(world: World) -> None:
    """The team vanishes just before the compatibility lock is made: no directory comes back."""
    world.plant(1)
    writer = locked(world)
    writer.fs.at("create", "state.json.lock").before(lambda: world.replace_team(leave=()))
    writer.append("x")
    assert world.items() == ("new", "x"), "the attempt had not begun: it takes place in what is there now"
    assert sorted(os.listdir(world.path)) == [".locks", TEAM]


# --- processes and threads ------------------------------------------------------------------------


def test_two_threads_exclude_each_other(world: World) -> None:
    """The library's lock is per thread here: a second thread of the same process waits for the first."""
    world.plant(1)
    writer = locked(world, real_time=True)
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(10):
            with writer.locks.stable(TEAM, patience=writer.patience()):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 30
    assert max(most) == 1


def test_locks_that_were_used_before_a_fork(world: World) -> None:
    """A forked child takes locks of its own, and waits for those that its parent holds."""
    world.plant(1)
    writer = locked(world, real_time=True)
    writer.append("parent")

    def publish() -> str:
        try:
            writer.publish(lambda items: (*items, "child"), patience=writer.patience(0.05))
        except Busy:
            return "busy"
        return "published"

    with Child(publish) as child:
        assert child.result() == "published"
    with both(writer), Child(publish) as child:
        assert child.result() == "busy"
    writer.append("again")
    assert world.items() == ("r1", "parent", "child", "again")


def test_waiter_that_is_stopped_holds_nobody_up(world: World) -> None:
    """A process waits for the lock and is stopped there; it delays each of the others by a moment at most."""
    world.plant(1)

    class Stopping(SystemClock):
        naps = 0

        def sleep(self, seconds: float) -> None:
            Stopping.naps += 1
            if Stopping.naps == 5:
                stop_here()
            super().sleep(seconds)

    def wait() -> int:
        return Writer(world, "waiter", locked=True, clock=Stopping()).append("waiter").revision

    holder, other = locked(world, "holder"), locked(world, "other")
    held = contextlib.ExitStack()
    held.enter_context(both(holder))
    with held, Child(wait) as child:
        child.wait_stopped()
        held.close()
        assert [other.append(f"other{number}").revision for number in range(3)] == [2, 3, 4]
        assert slept(other) < 3 * 0.15
        child.resume()
        assert child.result() == 5
    assert world.items() == ("r1", "other0", "other1", "other2", "waiter")


def test_processes_under_contention(world: World) -> None:
    """Four real processes, ten writes each, real locks: nobody is refused, nothing lost or doubled."""
    world.plant(1)

    def worker(name: str) -> Callable[[], list[int]]:
        writer = locked(world, name, real_time=True)
        return lambda: [writer.append(f"{name}{number}").revision for number in range(10)]

    with contextlib.ExitStack() as stack:
        children = [stack.enter_context(Child(worker(name))) for name in "abcd"]
        revisions = [child.result() for child in children]
    assert sorted(number for numbers in revisions for number in numbers) == list(range(2, 42))
    items = world.items()
    assert sorted(items) == sorted(["r1", *(f"{name}{number}" for name in "abcd" for number in range(10))])
    for name in "abcd":
        assert [item for item in items if item[0] == name] == [f"{name}{number}" for number in range(10)]

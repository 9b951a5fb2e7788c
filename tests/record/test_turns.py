"""Who waits for the stable lock takes turns: one is next and the others wait to be that.

The turn is a `flock` of the team's directory. It guards nothing, and whatever happens to it, a writer only
waits a little longer or shorter.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from typing import TYPE_CHECKING

import pytest

from pi_team.errors import Busy
from worlds import TEAM, StillClock, World, Writer, put

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class NotedClock(StillClock):
    """Notes each sleep, and does something at one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[float] = []
        self.at: dict[int, Callable[[], object]] = {}

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.noted.append(seconds)
        self.at.get(len(self.noted), lambda: None)()


def waiting_writer(world: World) -> tuple[Writer, NotedClock]:
    clock = NotedClock()
    return Writer(world, "w", locked=True, clock=clock), clock


@contextlib.contextmanager
def turn_of_another(world: World) -> Iterator[None]:
    """Another writer is next to take the lock."""
    fd = os.open(world.team(), os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)


def append_behind_others(world: World, item: str) -> tuple[Writer, NotedClock]:
    """A write while others hold the turn and the lock, until it has looked 500 times."""
    path = hold_lock(world)
    writer, clock = waiting_writer(world)
    with contextlib.ExitStack() as others:
        others.enter_context(turn_of_another(world))
        others.callback(os.unlink, path)
        clock.at[500] = others.close
        writer.append(item)
    return writer, clock


def is_free(world: World) -> bool:
    """Whether nobody is next."""
    try:
        with turn_of_another(world):
            return True
    except BlockingIOError:
        return False


def hold_lock(world: World) -> str:
    """The lock of a holder who is about to release it."""
    path = os.path.join(world.path, ".locks", f"{TEAM}.lock")
    os.mkdir(os.path.dirname(path), 0o700)
    put(path, b"")
    return path


def test_nobody_waits_where_nobody_waits(world: World) -> None:
    """A writer alone takes the lock at once, again and again."""
    world.plant(1)
    writer, clock = waiting_writer(world)
    writer.append_many(3)
    assert clock.noted == []
    assert is_free(world)


def test_whoever_released_the_lock_does_not_overtake_who_is_next(world: World) -> None:
    """The lock is free, and is left to the one that has waited for it."""
    world.plant(1)
    writer, clock = waiting_writer(world)
    writer.append("first")
    with contextlib.ExitStack() as other:
        other.enter_context(turn_of_another(world))
        clock.at[3] = other.close
        writer.append("second")
    assert len(clock.noted) == 3


def test_who_is_next_and_stopped_holds_nobody_up_for_long(world: World) -> None:
    """The turn is no lock: after 0.1 s a writer takes the lock without it, and without having it to give."""
    world.plant(1)
    writer, clock = waiting_writer(world)
    with turn_of_another(world):
        writer.append("x")
        assert 0.1 <= clock.slept < 0.12
        assert not is_free(world)
    assert world.items()[-1] == "x"


def test_who_is_next_and_stopped_holds_up_one_write_a_second(world: World) -> None:
    """A process that is stopped while it is next, for an hour perhaps, must not slow down the others."""
    world.plant(1)
    writer, clock = waiting_writer(world)
    with turn_of_another(world):
        for _ in range(20):
            clock.slept += 0.2
            writer.append("x")
        waited = clock.slept - 20 * 0.2
        assert not is_free(world)
    assert 0.3 <= waited < 0.7
    writer.append("x")
    assert is_free(world)


def test_long_queue_is_no_stopped_process(world: World) -> None:
    """On a slow disk a writer waits for its turn longer than 0.1 s, others being at work: it keeps to turns.

    Otherwise it would overtake them for the next second, and they it.
    """
    world.plant(1)
    writer, clock = append_behind_others(world, "x")
    assert clock.slept > 0.11
    with turn_of_another(world):
        before = clock.slept
        writer.append("y")
        assert clock.slept - before >= 0.1


def test_who_waits_long_looks_often(world: World) -> None:
    """So it comes before those who just came: the first look after 2 ms, the last ones every 0.3 ms."""
    world.plant(1)
    writer, clock = waiting_writer(world)
    with turn_of_another(world):
        writer.append("x")
    assert 0.001 <= clock.noted[0] <= 0.003
    *_, before_the_last, last = clock.noted  # the last is the pause after which the lock still lay there
    assert before_the_last < min(clock.noted[:3])
    assert last >= 0.001
    assert min(clock.noted) >= 0.00015


def test_who_has_waited_for_many_turns_still_comes_first(world: World) -> None:
    """A writer that has tried without a turn in vain does not begin anew: it looks as often as before."""
    world.plant(1)
    _, clock = append_behind_others(world, "x")
    assert clock.slept > 0.15
    assert max(clock.noted[250:500]) < 0.0006


def test_who_is_next_looks_first(world: World) -> None:
    """The lock must not lie unused while seven wait: looks begin after 0.1 ms, one call each."""
    world.plant(1)
    path = hold_lock(world)
    writer, clock = waiting_writer(world)
    seen: list[bool] = []
    clock.at = {1: lambda: seen.append(is_free(world)), 4: lambda: os.unlink(path)}
    writer.append("x")
    assert seen == [False]
    assert len(clock.noted) == 4
    assert sum(clock.noted) < 0.005
    assert is_free(world)


def test_who_has_waited_for_its_turn_looks_before_it_tries(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is held, as a rule: a try that must fail costs more than all the looks."""
    world.plant(1)
    path = hold_lock(world)
    writer, clock = waiting_writer(world)
    tries: list[str] = []
    attempt = writer.locks._attempt

    def noting(team: str, locks_fd: int) -> Callable[[], None] | None:
        tries.append(team)
        return attempt(team, locks_fd)

    monkeypatch.setattr(writer.locks, "_attempt", noting)
    with contextlib.ExitStack() as other:
        other.enter_context(turn_of_another(world))
        clock.at = {2: other.close, 4: lambda: os.unlink(path)}
        writer.append("x")
    assert tries == [TEAM]
    assert len(clock.noted) == 4


def test_lock_of_a_writer_at_work_is_left_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is asked only about a lock that is older than a write takes as a rule."""
    world.plant(1)
    writer, clock = waiting_writer(world)
    writer.append("first")
    put(os.path.join(world.path, ".locks", f"{TEAM}.lock"), b"")
    asked: list[float] = []
    ask = writer.locks._library.attempt

    def noting(team: str, locks_fd: int) -> Callable[[], None] | None:
        asked.append(clock.slept)
        return ask(team, locks_fd)

    monkeypatch.setattr(writer.locks._library, "attempt", noting)
    with pytest.raises(Busy):
        writer.publish(lambda items: items, patience=writer.patience(1))
    assert 0.02 <= asked[0] < 0.03
    assert 8 <= len(asked) <= 11


def test_a_turn_ends_with_the_patience(world: World) -> None:
    """A writer that gave up is not next any more."""
    world.plant(1)
    hold_lock(world)
    writer, _ = waiting_writer(world)
    with pytest.raises(Busy):
        writer.publish(lambda items: items, patience=writer.patience(0.5))
    assert is_free(world)
    assert writer.fs.open_names == {}


def test_without_such_locks_everybody_is_next(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without `flock` has no turns, and nothing else is different."""

    def refused(*_: int) -> None:
        raise OSError(errno.ENOTSUP, "no locks")

    world.plant(1)
    writer, clock = waiting_writer(world)
    with turn_of_another(world):
        monkeypatch.setattr(fcntl, "flock", refused)
        writer.append("x")
    assert clock.noted == []

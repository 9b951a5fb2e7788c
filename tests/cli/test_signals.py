"""A stop signal waits for the write that it falls into; a second one does not."""

from __future__ import annotations

import os
import signal

import pytest

from pi_team.cli.signals import Stopped, shielded, stoppable


def stop(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


def outside(number: int, done: list[str]) -> None:
    with stoppable():
        stop(number)
        done.append("after")


def nested(number: int, done: list[str]) -> None:
    with stoppable():
        with shielded():
            with shielded():
                stop(number)
                done.append("inner")
            done.append("outer")
        done.append("after")


def twice(number: int, done: list[str]) -> None:
    with stoppable(), shielded():
        stop(number)
        done.append("first")
        stop(signal.SIGTERM)
        done.append("second")


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_outside_a_write_stops_at_once(number: int, status: int) -> None:
    done: list[str] = []
    with pytest.raises(Stopped) as stopped:
        outside(number, done)
    assert (stopped.value.exit_status, done) == (status, [])


def test_a_signal_during_a_write_is_delivered_when_the_outermost_has_ended() -> None:
    done: list[str] = []
    with pytest.raises(Stopped):
        nested(signal.SIGINT, done)
    assert done == ["inner", "outer"]


def test_a_second_signal_during_a_write_does_not_wait() -> None:
    """Somebody who presses Ctrl-C twice, at a write that waits for a lock, is not kept."""
    done: list[str] = []
    with pytest.raises(Stopped):
        twice(signal.SIGINT, done)
    assert done == ["first"]


def test_a_signal_that_is_ignored_stays_ignored_and_the_handlers_are_put_back() -> None:
    """`nohup pi-team work …` must survive the end of its terminal."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        interrupt = signal.getsignal(signal.SIGINT)
        with stoppable():
            stop(signal.SIGHUP)
            assert signal.getsignal(signal.SIGINT) is not interrupt
        assert signal.getsignal(signal.SIGINT) is interrupt
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)

"""Between processes: many senders at once, and the way from a sender to its recipient."""

from __future__ import annotations

import contextlib
import os
import random
import time
from typing import TYPE_CHECKING, Any

from bench.figures import Figure, percentile
from bench.team import TEAM, BenchMailbox, settled, text
from bench.workers import Worker, workers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_RATIO = 0.7
_P99 = 300.0
"""Milliseconds."""
_DELIVERY = {50: 5.0, 99: 20.0}
"""Milliseconds, by percentile."""


def _prepare(path: str, aliases: Sequence[str], messages: int = 0) -> BenchMailbox:
    """A team whose members have been there and have left, so that other processes can take their places."""
    mailbox = BenchMailbox(path)
    mailbox.create(TEAM)
    for alias in aliases:
        mailbox.leave(mailbox.join(TEAM, alias))
    mailbox.plant(settled(messages, aliases[0], aliases[1]))
    return mailbox


# --- many senders ---------------------------------------------------------------------------------


def contend(path: str, *, processes: int, sends: int, runs: int) -> list[Figure]:
    """Several processes that send at once, beside one process that sends as much, in turns.

    As many again are told by a pipe when to send: none of those waits for a lock, so what they lose is not
    lost by it.

    Args:
        path: a directory for the teams.
        processes: how many.
        sends: of each.
        runs: how often.
    """
    aliases = [f"member-{index}" for index in range(processes)]
    alone: list[float] = []
    together: list[float] = []
    relayed: list[float] = []
    whole: list[list[float]] = []
    each: list[list[float]] = []
    busy = 0
    for run in range(runs):
        one = _compete(os.path.join(path, f"one-{run}"), aliases, 1, processes * sends)
        many = _compete(os.path.join(path, f"many-{run}"), aliases, processes, sends)
        alone.append(_rate(one))
        relayed.append(_rate(_relay(os.path.join(path, f"relay-{run}"), aliases, sends)))
        together.append(_rate(many))
        times = [[taken * 1e3 for taken in answer["times"]] for answer in many]
        each += times
        whole.append([taken for own in times for taken in own])
        busy += sum(answer["busy"] for answer in (*one, *many))
    section = f"{processes} processes, {sends} sends each"
    return [
        Figure.median(section, f"one process, {processes * sends} sends", alone, "/s"),
        Figure.median(section, "all together", together, "/s"),
        Figure.median(section, "one after the other, told by a pipe", relayed, "/s"),
        Figure.median(section, "ratio to one process", _ratios(together, alone), at_least=_RATIO),
        Figure.median(section, "ratio to one process: told by a pipe", _ratios(relayed, alone)),
        Figure.median(section, "p50", [percentile(times, 50) for times in whole], "ms"),
        Figure.median(section, "p99", [percentile(times, 99) for times in whole], "ms", below=_P99),
        Figure.median(section, "p50, process by process", [percentile(times, 50) for times in each], "ms"),
        Figure.median(section, "p99, process by process", [percentile(times, 99) for times in each], "ms"),
        Figure(section, f"refused as BUSY, of {runs * processes * sends}", busy, below=1),
    ]


def _compete(path: str, aliases: Sequence[str], senders: int, sends: int) -> list[dict[str, Any]]:
    """Let the first `senders` members send to those after them, in a team of its own; what they found."""
    _prepare(path, aliases).close()
    calls = [["send", *_arguments(path, aliases, index, sends)] for index in range(senders)]
    with workers(calls) as started:
        return _run(started)


def _relay(path: str, aliases: Sequence[str], sends: int) -> list[dict[str, Any]]:
    """Let all members send in a circle, in a team of its own; what they found."""
    _prepare(path, aliases).close()
    with contextlib.ExitStack() as opened:
        pipes = [os.pipe() for _ in aliases]
        descriptors = [fd for pipe in pipes for fd in pipe]
        for fd in descriptors:
            opened.callback(os.close, fd)
        calls = [
            ["relay", *_arguments(path, aliases, index, sends), f"{pipes[index - 1][0]},{pipes[index][1]}"]
            for index in range(len(aliases))
        ]
        started = opened.enter_context(workers(calls, descriptors))
        os.write(pipes[-1][1], b"!")
        return _run(started)


def _arguments(path: str, aliases: Sequence[str], index: int, sends: int) -> list[str]:
    others = [*aliases[index + 1 :], *aliases[:index]]
    return [path, aliases[index], ",".join(others), str(sends)]


def _run(started: Sequence[Worker]) -> list[dict[str, Any]]:
    for worker in started:
        worker.go()
    return [worker.answer() for worker in started]


def _ratios(rates: Sequence[float], others: Sequence[float]) -> list[float]:
    return [rate / other for rate, other in zip(rates, others, strict=True)]


def _rate(answers: Sequence[dict[str, Any]]) -> float:
    """Sends per second from the first that began to the last that ended."""
    seconds = max(answer["end"] for answer in answers) - min(answer["begin"] for answer in answers)
    return float(sum(len(answer["times"]) for answer in answers) / seconds)


# --- from a sender to its recipient ---------------------------------------------------------------


def deliver(path: str, *, messages: int, sends: int) -> list[Figure]:
    """From the call of `send` until another process, which waits for changes, shows the message.

    When it has also taken it, by a durable write of its own, is told beside.

    Args:
        path: a directory for the team.
        messages: how many are in the record before.
        sends: how many are sent, at random intervals, the next when the last has arrived.
    """
    aliases = ("ann", "ben")
    mailbox = _prepare(path, aliases, messages)
    sender = mailbox.join(TEAM, aliases[0])
    pause = random.Random(sends)
    begun: dict[str, float] = {}
    with workers([["receive", path, aliases[1], str(sends)]]) as (receiver,):
        receiver.go()
        for number in range(sends):
            time.sleep(pause.uniform(0.005, 0.03))
            start = time.monotonic()
            note = mailbox.send(
                sender, aliases[1], kind="note", subject=f"message {number}", body=text(number)
            )
            begun[note.id] = start
            receiver.line()
        answer = receiver.answer()
    mailbox.close()
    return [
        *_latency("it is in the recipient's snapshot", begun, answer["shown"], judged=True),
        *_latency("the recipient has taken it", begun, answer["taken"]),
    ]


def _latency(
    label: str, begun: dict[str, float], ended: dict[str, float], *, judged: bool = False
) -> Iterator[Figure]:
    times = [(ended[identifier] - start) * 1e3 for identifier, start in begun.items()]
    for percent, target in _DELIVERY.items():
        yield Figure(
            f"from a send to another process, {len(times)} sends",
            f"p{percent} until {label}",
            percentile(times, percent),
            "ms",
            low=min(times),
            high=max(times),
            below=target if judged else None,
        )

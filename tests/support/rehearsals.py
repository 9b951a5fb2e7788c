"""Real processes that write on one team without locks, recorded for the specification.

Each kills or stops itself at a call that its plan names, and is continued once others have gone on: which
writers meet, and where, does not depend on luck.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from typing import TYPE_CHECKING, Final

import attrs

from pi_team.clocks import SystemClock
from pi_team.errors import OutcomeUnknown, PiTeamError
from pi_team.mailbox import Mailbox
from pi_team.presence import owner_token, this_process
from pi_team.record.directory import TeamDirectory
from pi_team.record.locks import Patience
from pi_team.record.publication import Author, Publisher
from processes import Child, die_here, stop_here
from spec.checker import events
from spec.checker.recorder import RecordingFileSystem
from worlds import TEAM, Unlocked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Any

    from spec.checker.events import Trace
    from spec.checker.recorder import Moment

    Rule = Callable[[], AbstractContextManager[Any]]

KEPT: Final = 2
ENOUGH_TO_PRUNE: Final = 2 * KEPT + 2
"""Writes after which a slot that was the next one is pruned, whatever the history held before."""
BOUND: Final = 60.0
"""Seconds that a write may be retried."""


class _Operations:
    """The payload lists the operations that took effect."""

    def decode(self, text: str) -> tuple[str, ...]:
        value = json.loads(text)
        return tuple(value) if isinstance(value, list) else ()  # of a new team: none

    def encode(self, value: tuple[str, ...]) -> str:
        return json.dumps(value)


def _author() -> Author:
    here = this_process()
    return Author(here.pid, here.start or 0, here.host, here.boot, owner_token(here))


@attrs.frozen
class Writer:
    """What one process does.

    Attributes:
        writes: how many operations.
        looks: whether one more comes last, which changes nothing.
        plan: at which of its calls something happens to it.
        without: the rule that it does not follow, taken out for as long as this is entered.
        bound: seconds that a write may be retried.
    """

    writes: int = 1
    looks: bool = True
    plan: Mapping[Moment, Callable[[], None]] = attrs.field(factory=dict)
    without: Rule = contextlib.nullcontext
    bound: float = BOUND


class Rehearsal:
    """A new team and the processes that write on it, each of which records what it does.

    Args:
        folder: of the team and the recordings.
        seed: of the pauses between calls.
    """

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self._folder = folder
        self._seed = seed
        self._names: list[str] = []
        Mailbox(folder / "teams").create(TEAM)
        self._first = json.loads((folder / "teams" / TEAM / "state.json").read_text(encoding="utf-8"))

    def start(self, writer: Writer) -> Child:
        """Start a process; its result is how many operations were acknowledged."""
        name = f"w{len(self._names) + 1}"
        self._names.append(name)
        return Child(lambda: self._act(name, writer))

    def _act(self, name: str, writer: Writer) -> int:
        fs = RecordingFileSystem(
            str(self._folder / name), seed=100 * self._seed + int(name[1:]), plan=writer.plan
        )
        clock = SystemClock()
        locks = Unlocked(fs, clock, str(self._folder / "teams"), owner=str, is_dead=bool)
        publisher = Publisher(locks, _author, kept=KEPT)
        done = 0
        with writer.without():
            for operation in [
                *(f"{name}.{nth}" for nth in range(writer.writes)),
                *([""] if writer.looks else []),
            ]:
                fs.ask(operation)
                try:
                    publisher.publish(
                        lambda: TeamDirectory(fs, str(self._folder / "teams"), TEAM),
                        _Operations(),
                        lambda held, new=operation: (*held, new) if new else held,  # type: ignore[misc]
                        Patience(clock, writer.bound),
                    )
                except OutcomeUnknown:
                    fs.tell("unknown", operation)
                except PiTeamError:
                    fs.tell("refused", operation)
                else:
                    fs.tell("acknowledged", operation)
                    done += 1
        return done

    def trace(self) -> Trace:
        """What all processes did."""
        return events.events_of(
            {name: events.recorded(self._folder / name) for name in self._names},
            revision=self._first["revision"],
            genesis=self._first["publication"]["id"],
        )


# --- a few calls of two processes, for one rule each ------------------------------------------------


def _fail() -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def overtaken(folder: Path, without: Rule = contextlib.nullcontext, *, by: int = 1) -> Trace:
    """One writer stops before its link; another one publishes; it goes on."""
    rehearsal = Rehearsal(folder)
    with rehearsal.start(Writer(plan={("before", "take", 1): stop_here}, without=without)) as slow:
        slow.wait_stopped()
        with rehearsal.start(Writer(writes=by, without=without)) as fast:
            fast.result()
        slow.resume()
        slow.result()
    return rehearsal.trace()


def left_behind(folder: Path, without: Rule = contextlib.nullcontext) -> Trace:
    """As before, but by then the slot has been pruned, and is free again."""
    return overtaken(folder, without, by=ENOUGH_TO_PRUNE)


def helped(folder: Path, without: Rule = contextlib.nullcontext) -> Trace:
    """One writer stops before it installs what it linked; another one publishes; it goes on."""
    rehearsal = Rehearsal(folder)
    with rehearsal.start(Writer(plan={("after", "look", 1): stop_here}, without=without)) as slow:
        slow.wait_stopped()
        with rehearsal.start(Writer(without=without)) as fast:
            fast.result()
        slow.resume()
        slow.result()
    return rehearsal.trace()


def killed(folder: Path, without: Rule = contextlib.nullcontext) -> Trace:
    """One writer is killed after its link; another one publishes, if it can."""
    rehearsal = Rehearsal(folder)
    with rehearsal.start(Writer(plan={("after", "take", 1): die_here})) as dying:
        dying.wait_killed()
    with rehearsal.start(
        Writer(without=without, bound=BOUND if without is contextlib.nullcontext else 0.2)
    ) as other:
        other.result()
    return rehearsal.trace()


def failing(folder: Path, without: Rule = contextlib.nullcontext) -> Trace:
    """One writer stops before its link; another one's rename onto the record fails; the first goes on."""
    rehearsal = Rehearsal(folder)
    with rehearsal.start(Writer(plan={("before", "take", 1): stop_here})) as slow:
        slow.wait_stopped()
        plan = {("before", "install", 1): _fail}
        with rehearsal.start(Writer(looks=False, plan=plan, without=without)) as unlucky:
            unlucky.result()
        slow.resume()
        slow.result()
    return rehearsal.trace()


# --- many calls of many processes -------------------------------------------------------------------


def crowd(folder: Path, *, seed: int, size: int) -> Trace:
    """Writers that meet anywhere. Some die, some stop and go on when their slots have been pruned.

    Args:
        folder: as for :class:`Rehearsal`.
        seed: of the pauses.
        size: 1 for four processes; each more adds two that die, two that stop and one that does not, and
            one write to each.
    """
    rehearsal = Rehearsal(folder, seed)
    more = range(2, size + 1)
    with contextlib.ExitStack() as held:

        def start(writes: int, plan: Mapping[Moment, Callable[[], None]]) -> Child:
            return held.enter_context(rehearsal.start(Writer(writes, plan=plan)))

        dying = [start(size + 1, {("after", "take", 2): die_here})]
        dying += [start(nth + 1, {("before", "install", nth): die_here}) for nth in more[:1]]
        dying += [start(nth + 1, {("before", "take", nth): die_here}) for nth in more[1:]]
        stopping = [start(size + 2, {("before", "take", 2): stop_here})]
        stopping += [start(size + 2, {("after", "take", nth): stop_here}) for nth in more]
        for child in dying:
            child.wait_killed()
        for child in stopping:
            child.wait_stopped()
        running = [start(ENOUGH_TO_PRUNE // 2 + size, {}) for _ in range(2)]
        for child in running:
            child.result()
        running = [start(size, {}) for _ in more[:1]]
        for child in stopping:
            child.resume()
        for child in stopping + running:
            child.result()
    return rehearsal.trace()

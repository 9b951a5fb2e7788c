"""What the processes of an exploration do: operations of the real code over a port."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from behaviour import Outcome
from pi_team.errors import OutcomeUnknown, PiTeamError, TeamMoved
from pi_team.record import recovery
from pi_team.record.cache import Reader
from pi_team.record.directory import TeamDirectory
from pi_team.record.locks import Patience
from pi_team.record.publication import Author, Publisher
from pi_team.store import Store
from worlds import TEAM, ListCodec, StillClock, Unlocked, appending, payload_text, terms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from behaviour import Recorder
    from pi_team.record.filesystem import FileSystem

PATH: Final = "/teams"


class Operation(NamedTuple):
    """What a process does.

    Attributes:
        label: the item that it writes, or what it does to a team.
        run: does it, as the process of that name over that port.
    """

    label: str
    run: Callable[[str, Recorder], Outcome]


class _AgainError(Exception):
    """A conflict: what `publish` does next it does from its start, and remembers nothing."""


class NoPatience(Patience):
    """Ends an attempt at its conflict, so that the next one is an operation of its own to the search."""

    def wait(self, reason: str, interval: float = 0) -> None:
        del interval
        raise _AgainError(reason)


class Process:
    """One process, with locks that exclude nobody, as if each had been stolen."""

    def __init__(self, fs: FileSystem, name: str, kept: int) -> None:
        self.fs = fs
        self.clock = StillClock()
        author = Author(1, 2, "here", "boot", name)
        locks = Unlocked(fs, self.clock, PATH, owner=lambda: name, is_dead=lambda _: False)
        self.publisher = Publisher(locks, lambda: author, kept=kept)
        self.store = Store(fs, PATH, locks=locks, publisher=self.publisher, author=lambda: author)

    def open(self, team: str = TEAM) -> TeamDirectory:
        return TeamDirectory(self.fs, PATH, team)

    def append(self, item: str, patience: Patience, team: str = TEAM) -> int:
        version = self.publisher.publish(lambda: self.open(team), ListCodec(team), appending(item), patience)
        return version.revision

    def restore(self, revision: int | None, patience: Patience) -> None:
        """As `pi-team recover` does."""
        self.publisher.exclusively(
            self.open,
            lambda team: recovery.recover(self.publisher, team, ListCodec(), ListCodec(), revision),
            patience,
        )

    def reader(self, team: str = TEAM) -> Reader[Any]:
        return Reader(self.fs, self.clock, PATH, team, codec=ListCodec(team), publisher=self.publisher)

    def patience(self, seconds: float) -> Patience:
        return Patience(self.clock, seconds)


@contextlib.contextmanager
def ending(outcome: list[Outcome], item: str) -> Iterator[None]:
    """Note how an operation ends that does not reach its end."""
    try:
        yield
    except _AgainError:
        outcome.append(Outcome("again", item))
    except (OutcomeUnknown, TeamMoved) as error:
        outcome.append(Outcome("unknown", item, str(error)))
    except PiTeamError as error:
        outcome.append(Outcome("refused", item, f"{error.code}: {error}"))
    except AssertionError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the search reports it with its schedule
        outcome.append(Outcome("broken", item, repr(error)))


def write(item: str, kept: int) -> Operation:
    """Publish a change that appends `item`."""

    def run(name: str, fs: Recorder) -> Outcome:
        ended: list[Outcome] = []
        with ending(ended, item):
            process = Process(fs, name, kept)
            revision = process.append(item, NoPatience(process.clock, 0))
            ended.append(Outcome("acknowledged", item, revision))
        return ended[0]

    return Operation(item, run)


def looks(count: int, kept: int) -> Operation:
    """Look at the team that often, in one process that keeps what it read; each look is shown."""

    def run(name: str, fs: Recorder) -> Outcome:
        ended: list[Outcome] = []
        with ending(ended, ""):
            reader = Process(fs, name, kept).reader()
            try:
                for _ in range(count):
                    fs.tell(reader.read().value)
            finally:
                reader.close()
            ended.append(Outcome("acknowledged", ""))
        return ended[0]

    return Operation("", run)


def recovering(item: str) -> Operation:
    """A fresh process looks, shows that, and writes `item`; its `detail` is what it saw before and after."""

    def run(name: str, fs: Recorder) -> Outcome:
        ended: list[Outcome] = []
        with ending(ended, ""):
            process = Process(fs, name, 1_000)
            reader = process.reader()
            try:
                shown = reader.read()
                fs.tell(shown.value)
                with process.open() as team:
                    record = process.publisher.read(team, ListCodec())
                process.append(item, process.patience(0.05))
                last = reader.read()
            finally:
                reader.close()
            found = (shown.value, record.value, last.value, shown.revision, last.revision)
            ended.append(Outcome("acknowledged", item, found))
        return ended[0]

    return Operation(item, run)


def create(team: str) -> Operation:
    """Create a team."""
    return _on_directory(
        "create", lambda process, patience: process.store.create(team, payload_text((), team), patience)
    )


def delete(team: str) -> Operation:
    """Delete a team."""
    return _on_directory(
        "delete",
        lambda process, patience: process.store.delete(
            team, terms=terms(team), damaged=False, patience=patience
        ),
    )


def rename(team: str, new: str) -> Operation:
    """Rename a team."""
    return _on_directory(
        f"rename {new}",
        lambda process, patience: process.store.rename(
            team,
            new,
            before=terms(team),
            after=ListCodec(new),
            retitle=lambda items: (*items, f"renamed:{new}"),
            patience=patience,
        ),
    )


def _on_directory(label: str, do: Callable[[Process, Patience], None]) -> Operation:
    def run(name: str, fs: Recorder) -> Outcome:
        ended: list[Outcome] = []
        with ending(ended, label):
            process = Process(fs, name, 1_000)
            do(process, process.patience(0.05))
            ended.append(Outcome("acknowledged", label))
        return ended[0]

    return Operation(label, run)


RECOVERY: Final = recovering("recovery")
AGAIN: Final = recovering("again")

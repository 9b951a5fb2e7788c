"""The real code with one rule taken out, for each row of docs/protocol.md, "What each rule prevents".

Each must be caught. Those that only a power cut brings to light must pass where it loses nothing.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

import attrs

import directories
import scenarios
from explorer import Explorer, Report
from lesser_ports import ByPath, WithoutSync
from pi_team.record import publication
from pi_team.record.attempt import Attempt, Conflict
from pi_team.record.directory import RECORD, TeamDirectory
from pi_team.record.publication import Publisher, Scan
from pi_team.record.reading import Codec, Pinned, Version, decode_version, pin_record, slot_name
from powercut import nothing_lost
from programs import PATH, Process
from worlds import TEAM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pi_team.record.envelope import Envelope
    from system import Scenario


@attrs.frozen
class Control:
    """A rule, the code without it, and what has to happen.

    Attributes:
        name: for the command line.
        rule: as the table of the protocol has it.
        dropped: within it the code is without the rule.
        scenario: in which that is to be seen.
        invariant: the one that is broken first.
        by_power_cut: whether nothing must be seen where a power cut loses nothing.
    """

    name: str
    rule: str
    dropped: Callable[[], contextlib.AbstractContextManager[Any]]
    scenario: Callable[[], Scenario]
    invariant: str
    by_power_cut: bool = False


def unsynced(method: str, descriptor: str) -> Callable[[], contextlib.AbstractContextManager[Any]]:
    """A method of the publisher that does not sync a directory of the team."""
    real = getattr(Publisher, method)

    def without(self: Publisher, team: TeamDirectory, *args: Any, **options: Any) -> Any:
        fs = team.fs
        team.fs = WithoutSync(fs, getattr(team, descriptor))
        try:
            return real(self, team, *args, **options)
        finally:
            team.fs = fs

    return lambda: mock.patch.object(Publisher, method, without)


def _by_path() -> contextlib.AbstractContextManager[Any]:
    real = Process.open

    def opened(self: Process, team: str = TEAM) -> TeamDirectory:
        directory = real(self, team)
        directory.fs = ByPath(self.fs, directory.fd, f"{PATH}/{team}")
        return directory

    return mock.patch.object(Process, "open", opened)


def _overwriting() -> contextlib.AbstractContextManager[Any]:
    def link(self: Any) -> None:
        fd, fs = self._team.revisions_fd, self._team.fs
        fs.link(self._private, fd, f"copy{self._private}", fd)
        fs.rename(f"copy{self._private}", fd, slot_name(self._slot), fd)

    return mock.patch.object(Attempt, "link", link)


def _install_copy(team: TeamDirectory, private: str) -> None:
    fs, copy = team.fs, f"copy{private}"
    with contextlib.suppress(FileExistsError):
        fs.link(private, team.revisions_fd, copy, team.revisions_fd)
    fs.rename(copy, team.revisions_fd, RECORD, team.fd)


@contextlib.contextmanager
def _copying() -> Iterator[None]:
    def rename(self: Any) -> None:
        _install_copy(self._team, self._private)

    def install_for(self: Publisher, team: TeamDirectory, identifier: str) -> bool:
        del self
        for name in team.fs.listdir(team.revisions_fd):
            if name.startswith(f".{identifier}."):
                _install_copy(team, name)
                return True
        return False

    with (
        mock.patch.object(Attempt, "rename", rename),
        mock.patch.object(Publisher, "_install_for", install_for),
    ):
        yield


def _not_helping() -> contextlib.AbstractContextManager[Any]:
    real: Any = Publisher.scan

    def scan(
        self: Publisher, team: TeamDirectory, codec: Codec[Any], pinned: Pinned[Any], *, install: bool = True
    ) -> Scan[Any] | None:
        found: Scan[Any] | None = real(self, team, codec, pinned, install=False)
        if found is None or found.base is pinned.version:
            return found
        if install:
            raise Conflict
        return None

    return mock.patch.object(Publisher, "scan", scan)


def _any_parent() -> contextlib.AbstractContextManager[Any]:
    def successor(
        self: Publisher, team: TeamDirectory, codec: Codec[Any], found: Envelope, base: Version[Any]
    ) -> Version[Any]:
        del self, base
        return decode_version(codec, found, team.name)

    return mock.patch.object(Publisher, "_successor", successor)


def _not_adopting() -> contextlib.AbstractContextManager[Any]:
    real: Any = Publisher.scan

    def scan(
        self: Publisher, team: TeamDirectory, codec: Codec[Any], pinned: Pinned[Any], *, install: bool = True
    ) -> Scan[Any] | None:
        found: Scan[Any] | None = real(self, team, codec, pinned, install=install)
        return found and Scan(pinned.version, found.slot, found.detour)

    return mock.patch.object(Publisher, "scan", scan)


def _adopting_silently() -> contextlib.AbstractContextManager[Any]:
    real: Any = Publisher._apply

    def apply(self: Publisher, team: TeamDirectory, codec: Codec[Any], change: Any, *rest: Any) -> Any:
        base = rest[-1].base
        if change(base.value) is base.value:
            return base
        return real(self, team, codec, change, *rest)

    return mock.patch.object(Publisher, "_apply", apply)


def _withdrawing() -> contextlib.AbstractContextManager[Any]:
    real = Attempt.rename

    def rename(self: Any) -> None:
        try:
            real(self)
        except OSError as error:
            self._team.fs.unlink(slot_name(self._slot), self._team.revisions_fd)
            self._drop()
            raise Conflict from error  # and its caller repeats it

    return mock.patch.object(Attempt, "rename", rename)


def _unpinned() -> contextlib.AbstractContextManager[Any]:
    def pin(team: TeamDirectory, codec: Codec[Any]) -> Pinned[Any]:
        pinned = pin_record(team, codec)
        team.fs.close(pinned.fd)
        return attrs.evolve(pinned, fd=-1)

    return mock.patch.object(publication, "pin_record", pin)


def _not_looking() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(Attempt, "verify", return_value=True)


def _without_cuts(scenario: Scenario) -> Scenario:
    return attrs.evolve(scenario, cuts=False)


def _two() -> Scenario:
    return _without_cuts(scenarios.writers(2, 1))


CONTROLS: Final = (
    Control("overwriting-link", "the link is exclusive", _overwriting, _two, "Chain"),
    Control(
        "no-step-7",
        "step 7, the look after the link",
        _not_looking,
        lambda: _without_cuts(scenarios.pruning(2)),
        "Chain",
    ),
    Control("copying-rename", "the rename consumes its source", _copying, _two, "Chain"),
    Control("no-helping", "helping", _not_helping, _two, "Writable"),
    Control(
        "any-parent",
        "the field `previous`",
        _any_parent,
        scenarios.older_peers_slot,
        "Durable",
        by_power_cut=True,
    ),
    Control(
        "no-adopting",
        "adopting",
        _not_adopting,
        lambda: scenarios.writers(2, 1),
        "Shown",
        by_power_cut=True,
    ),
    Control(
        "silent-adoption",
        "publishing after an adoption, even when nothing changed",
        _adopting_silently,
        lambda: scenarios.writers(2, 1),
        "CaughtUp",
        by_power_cut=True,
    ),
    Control(
        "withdrawing",
        "nothing is taken back after the link",
        _withdrawing,
        lambda: _without_cuts(scenarios.faults(2)),
        "Once",
    ),
    Control(
        "no-step-6",
        "step 6 before step 8, and the helper's `fsync`",
        unsynced("install", "revisions_fd"),
        lambda: scenarios.writers(2, 1),
        "Shown",
        by_power_cut=True,
    ),
    Control(
        "helper-without-fsync",
        "step 6 before step 8, and the helper's `fsync`",
        unsynced("scan", "revisions_fd"),
        lambda: scenarios.writers(2, 1),
        "Shown",
        by_power_cut=True,
    ),
    Control(
        "no-step-9-fsync",
        "the `fsync` in step 9",
        unsynced("_prune", "fd"),
        lambda: scenarios.pruning(2),
        "Shown",
        by_power_cut=True,
    ),
    Control(
        "unpinned",
        "keeping the record open (pinning)",
        _unpinned,
        lambda: _without_cuts(scenarios.pruning(3)),
        "Chain",
    ),
    Control(
        "by-path",
        "names relative to open directories",
        _by_path,
        lambda: _without_cuts(directories.deleting()),
        "Chain",
    ),
)
"""One for each row; the row on syncs before a rename has two, since it is two rules."""


@attrs.frozen
class Catch:
    """What came of a control.

    Attributes:
        control: which.
        report: of the exploration, with what was found.
        lossless: of the one where a power cut loses nothing; None where that does not matter.
    """

    control: Control
    report: Report
    lossless: Report | None

    @property
    def fault(self) -> str:
        """Why the control is none, or ""."""
        found = self.report.found
        if found is None:
            return "nothing was caught"
        if found.invariant != self.control.invariant:
            return f"caught by {found.invariant} and not by {self.control.invariant}"
        if self.lossless is not None and self.lossless.found is not None:
            return f"{self.lossless.found.invariant} is broken where a power cut loses nothing"
        return ""


def run(control: Control) -> Catch:
    """Explore without the rule; and again where a power cut loses nothing, if that makes the difference."""
    with control.dropped():
        scenario = control.scenario()
        report = Explorer(scenario).run()
        lossless = None
        if control.by_power_cut:
            lossless = Explorer(attrs.evolve(scenario, loses=nothing_lost, bound=1)).run()
    return Catch(control, report, lossless)

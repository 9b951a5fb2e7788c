"""The real code with one rule taken out that shows in a recovery or in heartbeats only, as in `controls`.

Of docs/protocol.md, "Recovery", and docs/record-format.md, "Presence".
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

import attrs

import controls
import damage
import heartbeats
import programs
import scenarios
from controls import Control
from lesser_ports import WithoutSync
from pi_team.presence import PresenceDirectory
from pi_team.record import recovery
from pi_team.record.publication import Publisher
from programs import Operation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from behaviour import Outcome, Recorder
    from pi_team.record.directory import TeamDirectory
    from system import Scenario


def _not_retiring() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(recovery, "_retire")


def _keeping_nothing() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(recovery, "_keep_evidence", return_value=False)


def _unsynced_at_last() -> contextlib.AbstractContextManager[Any]:
    real = Publisher.install

    def install(self: Publisher, team: TeamDirectory, *args: Any, **options: Any) -> Any:
        version = real(self, team, *args, **options)
        if options:
            team.fs = WithoutSync(team.fs, team.fd)
        return version

    return mock.patch.object(Publisher, "install", install)


@contextlib.contextmanager
def _fresh_unsynced() -> Iterator[None]:
    """Who comes after a power cut does not sync its links."""
    real = programs.RECOVERY

    def run(name: str, fs: Recorder) -> Outcome:
        with controls.unsynced("install", "revisions_fd")():
            return real.run(name, fs)

    with mock.patch.object(programs, "RECOVERY", Operation(real.label, run)):
        yield


def _beating_by_path() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(PresenceDirectory, "_descriptor", _opened_by_path)


def _opened_by_path(self: PresenceDirectory) -> int:
    self.close()
    self._fd = self._fs.open_dir(f"{self._team.path}/{self._team.name}/presence")
    return self._fd


def _making_what_is_missing() -> contextlib.AbstractContextManager[Any]:
    real = PresenceDirectory._descriptor

    def descriptor(self: PresenceDirectory) -> int:
        try:
            return real(self)
        except FileNotFoundError:
            for path in (
                f"{self._team.path}/{self._team.name}",
                f"{self._team.path}/{self._team.name}/presence",
            ):
                with contextlib.suppress(FileExistsError):
                    self._fs.mkdir(path)
            return _opened_by_path(self)

    return mock.patch.object(PresenceDirectory, "_descriptor", descriptor)


def _without_cuts() -> Scenario:
    return attrs.evolve(damage.damaging(), cuts=False)


CONTROLS: Final = (
    # Whichever comes first: the sleeper puts its revision back, or finds itself withdrawn and writes again.
    Control(
        "no-retiring",
        "the private files of what is restored are removed",
        _not_retiring,
        _without_cuts,
        "Once",
    ),
    Control(
        "no-evidence", "the unreadable record is kept beside", _keeping_nothing, _without_cuts, "Evidence"
    ),
    Control(
        "unsynced-restoration",
        "the team's directory is synced after a restoration",
        _unsynced_at_last,
        damage.damaging,
        "Mended",
        by_power_cut=True,
    ),
    Control(
        "fresh-without-step-6",
        "step 6 before step 8, of who comes after a power cut",
        _fresh_unsynced,
        lambda: scenarios.twice_cut(scenarios.writers(2, 1)),
        "Durable",
        by_power_cut=True,
    ),
    Control(
        "heartbeat-by-path",
        "a heartbeat goes through what was opened at the join",
        _beating_by_path,
        heartbeats.beside_deletion,
        "Foreign",
    ),
    Control(
        "heartbeat-that-makes",
        "a heartbeat makes no directory",
        _making_what_is_missing,
        heartbeats.beside_deletion,
        "Usable",
    ),
)

"""The real code with one rule of a recovery taken out (docs/protocol.md, "Recovery"), as in `controls`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from unittest import mock

import attrs

import damage
from controls import Control, WithoutSync
from pi_team.record import recovery
from pi_team.record.publication import Publisher

if TYPE_CHECKING:
    import contextlib

    from pi_team.record.directory import TeamDirectory
    from system import Scenario


def _not_retiring() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(recovery, "_retire")


def _keeping_nothing() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(recovery, "_keep_evidence")


def _unsynced_at_last() -> contextlib.AbstractContextManager[Any]:
    real = Publisher.install

    def install(self: Publisher, team: TeamDirectory, *args: Any, **options: Any) -> Any:
        version = real(self, team, *args, **options)
        if options:
            team.fs = WithoutSync(team.fs, team.fd)
        return version

    return mock.patch.object(Publisher, "install", install)


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
)

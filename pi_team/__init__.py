"""pi-team: named teams of agent sessions on one machine, in crash-safe local files.

The public names, nothing else. They are loaded when they are first used, so that importing the package
costs next to nothing:

>>> from pi_team import Mailbox, Report
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from pi_team._version import __version__

if TYPE_CHECKING:
    from pi_team.clocks import Clock, SystemClock
    from pi_team.doctor import Finding
    from pi_team.domain.model import Member, Membership, Message, Report
    from pi_team.domain.operations import Removal
    from pi_team.domain.views import FlowEntry, RosterEntry, Snapshot, TeamView
    from pi_team.errors import OutcomeUnknown, PiTeamError
    from pi_team.mailbox import Mailbox
    from pi_team.presence import Process
    from pi_team.record.filesystem import FileSystem, OsFileSystem
    from pi_team.watching import Changes

__all__ = [
    "Changes",
    "Clock",
    "FileSystem",
    "Finding",
    "FlowEntry",
    "Mailbox",
    "Member",
    "Membership",
    "Message",
    "OsFileSystem",
    "OutcomeUnknown",
    "PiTeamError",
    "Process",
    "Removal",
    "Report",
    "RosterEntry",
    "Snapshot",
    "SystemClock",
    "TeamView",
    "__version__",
]

_HOMES = {
    "Changes": "pi_team.watching",
    "Clock": "pi_team.clocks",
    "FileSystem": "pi_team.record.filesystem",
    "Finding": "pi_team.doctor",
    "FlowEntry": "pi_team.domain.views",
    "Mailbox": "pi_team.mailbox",
    "Member": "pi_team.domain.model",
    "Membership": "pi_team.domain.model",
    "Message": "pi_team.domain.model",
    "OsFileSystem": "pi_team.record.filesystem",
    "OutcomeUnknown": "pi_team.errors",
    "PiTeamError": "pi_team.errors",
    "Process": "pi_team.presence",
    "Removal": "pi_team.domain.operations",
    "Report": "pi_team.domain.model",
    "RosterEntry": "pi_team.domain.views",
    "Snapshot": "pi_team.domain.views",
    "SystemClock": "pi_team.clocks",
    "TeamView": "pi_team.domain.views",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

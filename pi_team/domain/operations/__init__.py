"""Every operation on a team, as a pure function from a team and a command to a :class:`Change`.

Time, process liveness and new identifiers come in as arguments. The operations are applied anew to
whatever the record holds by the time they are published, so they keep nothing between two calls.
"""

from pi_team.domain.operations.administration import (
    Removal,
    close_team,
    remove_member,
    rename_member,
    retitle,
)
from pi_team.domain.operations.change import Change, require_owner
from pi_team.domain.operations.membership import create, join, leave, sweep
from pi_team.domain.operations.messages import claim, notes, release, send, settle

__all__ = [
    "Change",
    "Removal",
    "claim",
    "close_team",
    "create",
    "join",
    "leave",
    "notes",
    "release",
    "remove_member",
    "rename_member",
    "require_owner",
    "retitle",
    "send",
    "settle",
    "sweep",
]

"""Payloads that bear a team's former name.

A renamed team's history still names the team as it was called then. Its revisions are good all the same:
they are read for a recovery, under the name that the team has now. The record itself is never read so,
since there the other name says that a rename was cut in half (docs/protocol.md, "Directories").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_team import json_text
from pi_team.domain import operations
from pi_team.domain.codec import SchemaBroken, TeamCodec, is_name

if TYPE_CHECKING:
    from pi_team.domain.model import TeamState


def named_team(payload: str) -> str | None:
    """The team that a payload's first member or message names, if it is a name. Raises json_text.NotJson."""
    value = json_text.parse(payload)
    for key in ("members", "messages"):
        entries = value.get(key) if isinstance(value, dict) else None
        if isinstance(entries, list) and entries and isinstance(entries[0], dict):
            name = entries[0].get("team")
            return name if isinstance(name, str) and is_name(name) else None
    return None


class FormerCodec:
    """Reads payloads of a team whatever it was called, and writes them under its present name.

    Args:
        team: the present name.
    """

    def __init__(self, team: str) -> None:
        self._team = team
        self._codec = TeamCodec(team)
        self.encode = self._codec.encode

    def decode(self, text: str) -> TeamState:
        """A payload under the present name. Raises as :meth:`TeamCodec.decode`."""
        try:
            return self._codec.decode(text)
        except SchemaBroken:
            former = named_team(text)
            if former is None or former == self._team:
                raise
            return operations.retitle(TeamCodec(former).decode(text), self._team)

"""Renames and deletions of teams that died half-way, and what is possible then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import evidence
from grounds import ground
from nursery import Died, Refused

if TYPE_CHECKING:
    from pathlib import Path

    from nursery import Nursery

HALVES = {
    "after the move": ("fsync", "*teams"),
    "after the link": ("fsync", "revisions"),
    "before the installation": ("rename", "* -> state.json"),
}


@pytest.mark.parametrize("half", HALVES)
def test_rename_is_completed_by_the_same_rename(nursery: Nursery, tmp_path: Path, half: str) -> None:
    """A rename dies between the move of the directory and the installation of the record that names it."""
    field = ground(tmp_path)
    before = evidence.payload(field.path / "quiet")
    victim, next_one = nursery.actor(field.path, unsynced=True), nursery.actor(field.path, unsynced=True)
    method, name = HALVES[half]
    victim.ask("trap", "kill", method=method, name=name)
    with pytest.raises(Died):
        victim.ask("rename_team", "quiet", "hushed")
    for team, code in (("quiet", "TEAM_UNKNOWN"), ("hushed", "RECORD_CORRUPT")):
        with pytest.raises(Refused) as refused:
            next_one.ask("look", team)
        assert refused.value.code == code
    next_one.ask("rename_team", "quiet", "hushed")
    text = evidence.javascript_text(before).replace('"team":"quiet"', '"team":"hushed"')
    assert evidence.javascript_text(evidence.payload(field.path / "hushed")) == text
    with pytest.raises(Refused, match="TEAM_UNKNOWN"):
        next_one.ask("rename_team", "quiet", "hushed")

"""The very first command on a machine is killed: there is no teams directory yet, nor one above it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import evidence
from nursery import Died, Nursery
from trials import CHANGING, heal

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_first_create_killed_before_each_change(nursery: Nursery, tmp_path: Path) -> None:
    """It dies before one of the calls that change something: what it made is private and serves the next."""
    actor = nursery.actor(tmp_path / "undisturbed" / ".pi" / "agent" / "teams", unsynced=True)
    actor.ask("count")
    actor.ask("create", "crew")
    numbers = [nth for nth, (method, _, _) in enumerate(actor.ask("calls"), 1) if method in CHANGING]
    for nth in numbers:
        path = tmp_path / str(nth) / ".pi" / "agent" / "teams"
        victim, other = (nursery.actor(path, unsynced=True) for _ in range(2))
        victim.ask("trap", "kill", nth=nth)
        with pytest.raises(Died):
            victim.ask("create", "crew")
        assert other.ask("teams") in ([], ["crew"])
        if other.ask("teams") == []:
            assert other.ask("create", "crew") == 1
        assert evidence.payload(path / "crew") == {"version": 1, "members": [], "messages": []}
        heal(other, path)
        assert evidence.strays(path) == []
        made = [tmp_path / str(nth), *(tmp_path / str(nth)).rglob("*")]
        assert {found.stat().st_mode & 0o077 for found in made} == {0}

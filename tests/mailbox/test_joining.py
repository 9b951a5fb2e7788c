"""Joining where something is missing, and pauses in the middle of it (docs/lifecycles.md, "Judging")."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from grounds import ground
from pi_team import Mailbox
from pi_team.clocks import SystemClock
from pi_team.errors import MembershipLost

if TYPE_CHECKING:
    from pathlib import Path

    from nursery import Nursery


class Shifted(SystemClock):
    """The system's clocks, moved on by hand."""

    by = 0.0

    def wall(self) -> float:
        return super().wall() + self.by

    def running(self) -> float:
        return super().running() + self.by


def test_dead_alias_without_a_presence_directory(nursery: Nursery, tmp_path: Path) -> None:
    """A member is killed and `presence/` is gone: where nobody can be heard, an alias is inherited still."""
    field = ground(tmp_path)
    victim = nursery.actor(field.path, unsynced=True)
    victim.ask("join", "crew", "zoe")
    victim.kill()
    shutil.rmtree(field.path / "crew" / "presence")
    mailbox = Mailbox(field.path, interval=0.05)
    assert mailbox.join("crew", "zoe").alias == "zoe"
    mailbox.close()


def test_pause_between_the_join_and_the_first_heartbeat(tmp_path: Path) -> None:
    """A session is stopped right after its join and replaced meanwhile: its first heartbeat notices."""
    clock = Shifted()
    mailbox, other = Mailbox(tmp_path / "teams", clock=clock), Mailbox(tmp_path / "teams")
    mailbox.create("crew")
    mine = mailbox.join("crew", "alice", session="same")
    clock.by += 60
    theirs = other.join("crew", "alice", session="same")  # its helper restarted: same session, same process
    with pytest.raises(MembershipLost):
        mailbox.heartbeat(mine, "idle")
    other.heartbeat(theirs, "busy")
    assert [entry.displayed for entry in other.look("crew").members] == ["busy"]
    mailbox.close()
    other.close()

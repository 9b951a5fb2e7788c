"""Joining where something is missing, and pauses in the middle of it (docs/lifecycles.md, "Judging")."""

from __future__ import annotations

import errno
import json
import shutil
import signal
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from grounds import ground
from interposition import InterposedFileSystem
from pi_team import Mailbox
from pi_team.clocks import SystemClock
from pi_team.errors import MembershipLost, OutcomeUnknown, StorageError, TeamMoved

if TYPE_CHECKING:
    from collections.abc import Callable
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


def presence_of(path: Path, alias: str) -> Any:
    """What stands in a presence file, or None where there is none."""
    try:
        return json.loads((path / "crew" / "presence" / f"{alias}.json").read_bytes())
    except FileNotFoundError:
        return None


def move_away_and_fail(path: Path) -> Callable[[Callable[[], None]], None]:
    """An action: the call takes effect, and the team bears another name then."""

    def action(perform: Callable[[], None]) -> None:
        perform()
        (path / "crew").rename(path / "elsewhere")

    return action


@pytest.mark.parametrize("told", [OutcomeUnknown, TeamMoved, KeyboardInterrupt])
def test_join_that_may_have_taken_effect_leaves_its_presence(
    tmp_path: Path, told: type[BaseException]
) -> None:
    """Linked, and then an error, a move of the team, or Ctrl-C: whoever completes it finds the member alive.

    Without its presence the member would be unknown to everybody: not to be replaced, and in the way of a
    rename or deletion of the team, also after its process has ended.
    """
    path = tmp_path / "teams"
    fs = InterposedFileSystem()
    mailbox, other = Mailbox(path, filesystem=fs), Mailbox(path)
    other.create("crew")
    if told is OutcomeUnknown:
        fs.at("fsync", "*revisions").fail(errno.EIO)
    elif told is TeamMoved:
        fs.at("rename", "*-> state.json").action = move_away_and_fail(path)
    else:
        fs.at("fsync", "*revisions").before(partial(signal.raise_signal, signal.SIGINT))
    with pytest.raises(told):
        mailbox.join("crew", "zoe")
    if told is TeamMoved:
        (path / "elsewhere").rename(path / "crew")
    (entry,) = other.look("crew").members
    assert presence_of(path, "zoe")["token"] == entry.member.token
    assert entry.alive
    mailbox.close()
    other.close()


def test_join_that_was_refused_takes_its_presence_back(tmp_path: Path) -> None:
    """The disk is full before the link: the operation had no effect, and leaves nothing."""
    fs = InterposedFileSystem()
    mailbox = Mailbox(tmp_path / "teams", filesystem=fs)
    mailbox.create("crew")
    fs.at("create", "*.tmp", 2).fail(errno.ENOSPC)
    with pytest.raises(StorageError):
        mailbox.join("crew", "zoe")
    assert presence_of(tmp_path / "teams", "zoe") is None
    mailbox.close()

"""A process is killed at each system call of each operation (SIGKILL).

Afterwards the next writer goes on without help, the record is exactly as it was or exactly as the whole
operation makes it, nothing acknowledged is lost, and `doctor` is content once its commands were run.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest

import evidence
from nursery import Died, Nursery, Refused
from recipes import OPERATIONS
from trials import CHANGING, Trial, heal

if TYPE_CHECKING:
    from pathlib import Path

    from grounds import Kind


def kill(trial: Trial, order: str, *, patience: float = 20.0, **where: Any) -> None:
    """Let one victim die there, and check what it left."""
    field, victim = trial.begin()
    victim.ask(order, "kill", **where)
    trial.order(victim, field)
    with pytest.raises(Died) as died:
        victim.answer()
    assert died.value.status == -signal.SIGKILL, where
    trial.check(field, patience=patience)
    trial.end(field, victim)


@pytest.mark.slow
def test_send_killed_before_each_call(nursery: Nursery, tmp_path: Path) -> None:
    """A sender dies just before a system call, whichever it is."""
    trial = Trial(nursery, tmp_path, "send")
    for nth in range(1, len(trial.calls) + 1):
        kill(trial, "trap", nth=nth)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "send"])
def test_killed_before_each_change(nursery: Nursery, tmp_path: Path, name: str) -> None:
    """A session dies just before a system call that changes something, whichever operation and call it is."""
    trial = Trial(nursery, tmp_path, name)
    numbers = [nth for nth, (method, _, _) in enumerate(trial.calls, 1) if method in CHANGING]
    for nth in [*numbers, len(trial.calls)]:
        kill(trial, "trap", nth=nth)


@pytest.mark.slow
def test_send_killed_after_each_call(nursery: Nursery, tmp_path: Path) -> None:
    """A sender dies when a system call has taken effect and it has not heard of it."""
    trial = Trial(nursery, tmp_path, "send")
    for nth, (_, _, error) in enumerate(trial.calls, 1):
        if not error:
            kill(trial, "trap", nth=nth, when="after")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "locked"])
def test_send_killed_inside_the_library_of_the_locks(nursery: Nursery, tmp_path: Path, kind: Kind) -> None:
    """A sender dies while it creates or releases the stable lock, or takes over one that a dead one left."""
    trial = Trial(nursery, tmp_path, "send", kind)
    assert any(".lock" in event for event in trial.audited)
    for nth in range(1, len(trial.audited) + 1):
        kill(trial, "audit", nth=nth)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pending", "lost", "pruning"])
def test_send_killed_while_it_does_more_than_it_has_to(nursery: Nursery, tmp_path: Path, kind: Kind) -> None:
    """A sender dies while it installs a dead one's publication, adopts one whose file is lost, or prunes."""
    trial = Trial(nursery, tmp_path, "send", kind)
    numbers = [nth for nth, (method, _, _) in enumerate(trial.calls, 1) if method in CHANGING]
    assert len(numbers) > (40 if kind == "pruning" else 10)
    for nth in numbers:
        kill(trial, "trap", nth=nth)


@pytest.mark.slow
def test_first_create_killed_before_each_change(nursery: Nursery, tmp_path: Path) -> None:
    """The very first command on a machine dies: what it made is private and serves the next."""
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


def test_kill_would_be_noticed(nursery: Nursery, tmp_path: Path) -> None:
    """Control: where nobody helps, a writer killed between its link and its rename blocks the team."""
    trial = Trial(nursery, tmp_path, "send")
    kill(trial, "trap", method="rename")
    trial.break_bystander("helping")
    with pytest.raises(Refused, match="BUSY"):
        kill(trial, "trap", method="rename", patience=0.5)

"""A process is stopped at a system call (SIGSTOP) and continued much later, while a third one looks on.

Meanwhile its locks expire, others take them and write on, until the history is pruned and its slot reused.
The crash matrix stops every operation at every call; here it is what a reader sees of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import evidence
from grounds import Ground, ground
from recipes import OPERATIONS
from trials import heal

if TYPE_CHECKING:
    from pathlib import Path

    from nursery import Actor, Nursery

OPTIONS: dict[str, Any] = {"lock_lifetime": 0.1, "patience": 30.0, "unsynced": True}
PAIRS = 21
"""Notes that the others send and take while the victim is stopped: twice as many revisions."""


def stop(nursery: Nursery, field: Ground, name: str, nth: int, *, broken: str = "") -> None:
    """Stop a victim there, let the others go on, continue it, and check what became of all."""
    victim, other, reader = (nursery.actor(field.path, **OPTIONS) for _ in range(3))
    if broken:
        victim.ask("break", broken)
    reader.begin("read_on", "crew")
    victim.ask("trap", "stop", nth=nth)
    args, kwargs = OPERATIONS[name].order(field)
    victim.begin(*args, **kwargs)
    victim.stopped()
    sent = other.ask("chatter", field.owners["dora"], field.owners["carol"], "later", PAIRS)
    assert len(sent) == PAIRS
    assert evidence.history(field.crew)[0] > field.revision + 1  # the victim's slot is gone
    between = evidence.revision(field.crew)
    victim.go_on()
    answer = victim.answer()
    assert evidence.revision(field.crew) >= between, "the record was put back"
    check(field, name, answer, other, reader)
    nursery.forget()


def check(field: Ground, name: str, answer: Any, other: Actor, reader: Actor) -> None:
    """Assert that nothing was lost, doubled or put back."""
    other.ask("send", field.owners["dora"], "carol", kind="note", subject="last", body="x")
    subjects = evidence.subjects(field.crew)
    assert [subjects[f"later{number}"] for number in range(PAIRS)] == [1] * PAIRS
    messages = {message["id"]: message for message in evidence.payload(field.crew)["messages"]}
    if name == "send":
        assert subjects["the victim's"] == 1
        assert messages[answer["id"]]["state"] == "pending"
    else:
        assert answer is True
        request = messages[field.ids["at work"]]
        results = [message for message in messages.values() if message.get("parentId") == request["id"]]
        assert request["state"] == "completed"
        assert [result["to"] for result in results] == ["alice"]
    seen = reader.finish()
    assert seen["back"] == []
    assert seen["looks"] > 0
    assert evidence.revision(field.crew) == field.revision + 2 * PAIRS + 2
    heal(other, field.path)
    assert evidence.strays(field.path) == []


def calls(nursery: Nursery, root: Path, name: str) -> list[tuple[str, str, str]]:
    """The system calls of an operation: method, name, error."""
    field = ground(root, "long")
    actor = nursery.actor(field.path, **OPTIONS)
    args, kwargs = OPERATIONS[name].order(field)
    actor.ask("count")
    actor.ask(*args, **kwargs)
    found: list[tuple[str, str, str]] = actor.ask("calls")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["send", "settle"])
def test_nobody_sees_the_record_go_back(nursery: Nursery, tmp_path: Path, name: str) -> None:
    """A writer sleeps at a call that publishes, and a reader looks all the time, also as it wakes up."""
    for nth, (method, _, _) in enumerate(calls(nursery, tmp_path / "undisturbed", name), 1):
        if method in {"link", "fsync", "rename"}:
            stop(nursery, ground(tmp_path / str(nth), "long"), name, nth)


@pytest.mark.slow
def test_stop_would_be_noticed(nursery: Nursery, tmp_path: Path) -> None:
    """Control: without the look after the link, a writer that slept before its link puts the record back."""
    undisturbed = calls(nursery, tmp_path / "undisturbed", "send")
    nth = next(nth for nth, (method, _, _) in enumerate(undisturbed, 1) if method == "link")
    stop(nursery, ground(tmp_path / "right", "long"), "send", nth)
    with pytest.raises(AssertionError, match="the record was put back"):
        stop(nursery, ground(tmp_path / "wrong", "long"), "send", nth, broken="the look after the link")

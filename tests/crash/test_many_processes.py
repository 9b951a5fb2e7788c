"""Many processes at once, all of them in haste."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import pytest

import evidence

if TYPE_CHECKING:
    from pathlib import Path

    from nursery import Nursery

SENDERS, SENDS = 8, 50
RECIPIENTS: Final = [f"r{number}" for number in range(10)]


@pytest.mark.slow
def test_every_send_of_eight_processes_is_there_once(nursery: Nursery, tmp_path: Path) -> None:
    """Eight processes send fifty notes each at the same time; none is refused as busy, lost or doubled."""
    path = tmp_path / "teams"
    actors = [nursery.actor(path) for _ in range(SENDERS)]
    actors[0].ask("create", "crew")
    for alias in RECIPIENTS:
        actors[0].ask("join", "crew", alias)
    owners = [actor.ask("join", "crew", f"s{number}") for number, actor in enumerate(actors)]
    reader = nursery.actor(path)
    reader.begin("read_on", "crew")
    began = time.monotonic()
    for number, (actor, owner) in enumerate(zip(actors, owners, strict=True)):
        actor.begin("send_many", owner, RECIPIENTS, f"s{number}-", SENDS)
    sent = [subject for actor in actors for subject in actor.answer()]
    seconds = time.monotonic() - began
    assert len(sent) == SENDERS * SENDS
    subjects = evidence.subjects(path / "crew")
    assert dict(subjects) == dict.fromkeys(sent, 1)
    messages = evidence.payload(path / "crew")["messages"]
    for number in range(SENDERS):  # each sender's own order is kept
        own = [message["subject"] for message in messages if message["from"] == f"s{number}"]
        assert own == [f"s{number}-{count}" for count in range(SENDS)]
    joined = 1 + len(RECIPIENTS) + SENDERS
    assert evidence.revision(path / "crew") == joined + SENDERS * SENDS
    assert len(evidence.history(path / "crew")) <= 64
    assert reader.finish()["back"] == []
    assert reader.ask("doctor", "crew") == []
    print(f"{len(sent)} sends of {SENDERS} processes in {seconds:.1f} s: {len(sent) / seconds:.0f} a second")

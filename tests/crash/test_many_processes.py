"""Many processes at once, all of them in haste."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final

import pytest

import evidence
from grounds import COMPLETED, PENDING, ground

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


def test_alias_that_many_want_is_given_to_one(nursery: Nursery, tmp_path: Path) -> None:
    """Eight processes join under one alias at the same time: one has it, and its presence is its own."""
    path = tmp_path / "teams"
    actors = [nursery.actor(path, interval=0.1, unsynced=True) for _ in range(SENDERS)]
    actors[0].ask("create", "crew")
    for actor in actors:
        actor.begin("join", "crew", "me")
    outcomes = [actor.outcome() for actor in actors]
    assert sorted(code for _, code in outcomes) == ["", *["ALIAS_ALIVE"] * (SENDERS - 1)]
    (owner,) = (answer for answer, _ in outcomes if answer)
    presence = json.loads((path / "crew" / "presence" / "me.json").read_bytes())
    assert presence["token"] == owner["token"]
    assert evidence.revision(path / "crew") == 2


def test_team_that_many_create_is_created_once(nursery: Nursery, tmp_path: Path) -> None:
    """Eight processes create one team, and the directory of all teams, at the same time."""
    path = tmp_path / "not" / "there" / "teams"
    actors = [nursery.actor(path, unsynced=True) for _ in range(SENDERS)]
    for actor in actors:
        actor.begin("create", "crew")
    outcomes = [actor.outcome() for actor in actors]
    assert sorted(code for _, code in outcomes) == ["", *["TEAM_EXISTS"] * (SENDERS - 1)]
    assert evidence.strays(path) == []
    assert actors[0].ask("doctor") == []


def test_publication_that_many_find_is_installed_once(nursery: Nursery, tmp_path: Path) -> None:
    """A writer died after its link; eight processes look and write at once, and all find it there."""
    field = ground(tmp_path, "pending")
    actors = [nursery.actor(field.path, unsynced=True) for _ in range(SENDERS)]
    for number, actor in enumerate(actors):
        if number % 2:
            actor.begin("look", "crew")
        else:
            note = {"kind": "note", "subject": f"s{number}", "body": "x"}
            actor.begin("send", field.owners["dora"], "carol", **note)
    for actor in actors:
        actor.answer()
    subjects = evidence.subjects(field.crew)
    assert [subjects[subject] for subject in (PENDING, "s0", "s2", "s4", "s6")] == [1] * 5
    assert evidence.revision(field.crew) == field.revision + 5


def test_request_that_many_helpers_of_one_member_want_is_claimed_once(
    nursery: Nursery, tmp_path: Path
) -> None:
    """Eight processes act for one member and claim at the same time: one gets the request."""
    field = ground(tmp_path)
    actors = [nursery.actor(field.path, unsynced=True) for _ in range(SENDERS)]
    for actor in actors:
        actor.begin("claim", field.owners["carol"])
    outcomes = [actor.outcome() for actor in actors]
    assert sorted(code for _, code in outcomes) == ["", *["ALREADY_CLAIMING"] * (SENDERS - 1)]
    for actor in actors:
        actor.begin("settle", field.owners["carol"], field.ids["for carol"], COMPLETED)
    assert sorted(actor.answer() for actor in actors) == [False] * (SENDERS - 1) + [True]
    results = [message for message in evidence.payload(field.crew)["messages"] if message["kind"] == "result"]
    assert [result["subject"] for result in results].count("for carol") == 1

"""A damaged record is brought back from its history; what was damaged is kept, and nobody undoes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import evidence
from faults import RECORD, behind_a_link, opened_to_others, written
from grounds import Ground, ground, membership
from nursery import Died
from pi_team.errors import RecordCorrupt, UsageError
from pi_team.mailbox import Mailbox
from trials import heal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nursery import Nursery

GARBAGE = b'{"schemaVersion":1,"revision":19,\0\0\0'
NOTE: dict[str, Any] = {"kind": "note", "subject": "afterwards", "body": "x"}


def send(field: Ground, **kwargs: Any) -> None:
    """Another session's next write."""
    Mailbox(field.path).send(membership(field.owners["dora"]), "carol", **(NOTE | kwargs))


@pytest.mark.parametrize(
    ("plant", "kept"),
    [
        (written(RECORD, GARBAGE), [GARBAGE]),
        (written(RECORD, None), []),
        (written(RECORD, b" " * 32_000_001), [b" " * 32_000_001]),
    ],
    ids=["garbage", "missing", "too large"],
)
def test_newest_intact_revision_comes_back(
    nursery: Nursery,
    tmp_path: Path,
    plant: Callable[[Ground, Nursery], None],
    kept: list[bytes],
) -> None:
    """The record was destroyed; its last revision stands in the history and is published anew."""
    field = ground(tmp_path)
    before = evidence.payload(field.crew)
    plant(field, nursery)
    mailbox = Mailbox(field.path)
    assert mailbox.recover("crew") == field.revision + 1
    assert evidence.payload(field.crew) == before
    record = evidence.record(field.crew)
    assert (record["revision"], record["previous"]["revision"]) == (field.revision + 1, field.revision)
    evidences = list(field.crew.glob("state.json.damaged-*"))
    assert [path.read_bytes() for path in evidences] == kept
    send(field)
    assert evidence.revision(field.crew) == field.revision + 2
    assert evidence.subjects(field.crew)["afterwards"] == 1
    assert list(field.crew.glob("state.json.damaged-*")) == evidences
    assert mailbox.doctor() == []


def test_link_in_place_of_the_record_is_replaced_and_what_it_led_to_is_not(
    nursery: Nursery, tmp_path: Path
) -> None:
    """A recovery that wrote through the link would change a file that is none of the team's."""
    field = ground(tmp_path)
    before = evidence.payload(field.crew)
    behind_a_link(RECORD)(field, nursery)
    elsewhere = tmp_path / "elsewhere"
    untouched = elsewhere.read_bytes()
    assert Mailbox(field.path).recover("crew") == field.revision + 1
    assert evidence.payload(field.crew) == before
    assert not (field.crew / "state.json").is_symlink()
    (kept,) = field.crew.glob("state.json.damaged-*")
    assert kept.readlink() == elsewhere
    assert elsewhere.read_bytes() == untouched


def test_older_revision_comes_back_as_a_new_one(tmp_path: Path) -> None:
    """A person goes back from a good record: revisions go on, and what was undone stays in the history."""
    field = ground(tmp_path)
    old = evidence.sealed((field.crew / "revisions" / "17.json").read_bytes())["payload"]
    undone = (field.crew / "revisions" / "19.json").read_bytes()
    mailbox = Mailbox(field.path)
    with pytest.raises(UsageError):
        mailbox.recover("crew")
    assert mailbox.recover("crew", 17) == field.revision + 1
    assert evidence.payload(field.crew) == old
    assert (field.crew / "revisions" / "19.json").read_bytes() == undone
    send(field)
    assert evidence.revision(field.crew) == field.revision + 2
    with pytest.raises(UsageError, match="7 of team crew is not intact"):
        mailbox.recover("crew", 7)


def test_revision_that_is_not_intact_is_passed_over(nursery: Nursery, tmp_path: Path) -> None:
    """The newest slot was damaged together with the record: the one before it comes back, above both."""
    field = ground(tmp_path)
    older = evidence.sealed((field.crew / "revisions" / "18.json").read_bytes())["payload"]
    for name in (RECORD, "crew/revisions/19.json"):
        written(name, GARBAGE)(field, nursery)
    mailbox = Mailbox(field.path)
    assert [bool(report.fault) for report in mailbox.revisions("crew")] == [False, False, False, True]
    assert mailbox.recover("crew") == 20
    assert evidence.payload(field.crew) == older
    send(field)
    assert evidence.revision(field.crew) == 21


def test_nothing_intact_is_said_and_touched_nowhere(nursery: Nursery, tmp_path: Path) -> None:
    """Record and history are destroyed: there is nothing to recover, and deleting it has to be asked for."""
    field = ground(tmp_path)
    for number in evidence.history(field.crew):
        written(f"crew/revisions/{number}.json", GARBAGE)(field, nursery)
    written(RECORD, GARBAGE)(field, nursery)
    before = evidence.fingerprint(field.crew / "revisions")
    mailbox = Mailbox(field.path)
    with pytest.raises(RecordCorrupt) as refused:
        mailbox.recover("crew")
    assert "--damaged" in refused.value.hint
    assert evidence.fingerprint(field.crew / "revisions") == before
    with pytest.raises(RecordCorrupt):
        mailbox.delete_team("crew")
    mailbox.delete_team("crew", damaged=True)
    assert mailbox.teams() == ["quiet"]


def test_history_from_before_a_rename_of_the_team(nursery: Nursery, tmp_path: Path) -> None:
    """The slots still name the team as it was called: they come back under the name that it has now."""
    field = ground(tmp_path)
    mailbox = Mailbox(field.path)
    before = evidence.payload(field.path / "quiet")
    mailbox.rename_team("quiet", "hushed")
    newest = evidence.history(field.path / "hushed")[-1]
    for name in ("hushed/state.json", f"hushed/revisions/{newest}.json"):
        written(name, GARBAGE)(field, nursery)
    assert mailbox.recover("hushed") == newest + 1
    text = evidence.javascript_text(before).replace('"team":"quiet"', '"team":"hushed"')
    assert evidence.javascript_text(evidence.payload(field.path / "hushed")) == text
    owner = mailbox.join("hushed", "one")
    assert len(mailbox.snapshot(owner).messages) == 3


def test_publication_that_was_not_installed_comes_back(nursery: Nursery, tmp_path: Path) -> None:
    """A writer died after its link, and then the record was destroyed: its slot is the newest."""
    field = ground(tmp_path)
    victim = nursery.actor(field.path)
    victim.ask("trap", "kill", method="rename", name="* -> state.json")
    with pytest.raises(Died):
        victim.ask("send", field.owners["alice"], "bob", **NOTE | {"subject": "linked"})
    written(RECORD, GARBAGE)(field, nursery)
    assert Mailbox(field.path).recover("crew") == field.revision + 2
    assert evidence.subjects(field.crew)["linked"] == 1


@pytest.mark.parametrize("asleep", ["link", "fsync", "rename"])
def test_writer_that_slept_over_a_recovery(nursery: Nursery, tmp_path: Path, asleep: str) -> None:
    """A writer slept before or after its link; the record was destroyed and recovered; the writer wakes up.

    Before its link it starts again. After it, what it had linked is what was recovered, so it has succeeded.
    """
    field = ground(tmp_path)
    sleeper = nursery.actor(field.path, lock_lifetime=0.1)
    sleeper.ask("trap", "stop", method=asleep, name="*revisions" if asleep == "fsync" else "*")
    sleeper.begin("send", field.owners["alice"], "bob", **NOTE)
    sleeper.stopped()
    written(RECORD, GARBAGE)(field, nursery)
    Mailbox(field.path, lock_lifetime=0.1).recover("crew")
    recovered = evidence.record(field.crew)
    sleeper.go_on()
    message = sleeper.answer()
    assert evidence.subjects(field.crew)["afterwards"] == 1
    assert evidence.payload(field.crew)["messages"][-1]["id"] == message["id"]
    slot = field.crew / "revisions" / f"{recovered['revision']}.json"
    assert json.loads(slot.read_bytes()) == recovered
    assert evidence.revision(field.crew) == recovered["revision"] + (asleep == "link")
    assert Mailbox(field.path).doctor() == []


def test_mode_is_mended_without_a_recovery(nursery: Nursery, tmp_path: Path) -> None:
    """A record that is only open to others is good: its mode is all that `doctor` wants changed."""
    field = ground(tmp_path)
    before = evidence.record(field.crew)
    opened_to_others(RECORD)(field, nursery)
    assert heal(nursery.actor(field.path), field.path) == ["RECORD_UNSAFE"]
    assert evidence.record(field.crew) == before

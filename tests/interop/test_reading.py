"""What the TypeScript implementation wrote is read as it was meant, and looking changes none of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import evidence
from grounds import membership
from pi_team.mailbox import Mailbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SETTLED = {
    "1-fresh": "fresh",
    "2-full": "crew",
    "3-legacy-before": "crew",
    "3-legacy-after-join": "crew",
    "6-pruned": "many",
    "7-left-with-claim": "gone",
}
"""The directories without anything unfinished, and their team."""
REVISIONS = {
    "1-fresh": 1,
    "2-full": 30,
    "3-legacy-before": 0,
    "3-legacy-after-join": 1,
    "6-pruned": 41,
    "7-left-with-claim": 6,
}


@pytest.mark.parametrize("entry", SETTLED)
def test_archive_was_unpacked_as_it_was_packed(fixtures: Path, entry: str) -> None:
    """A lost mode, hard link or size would make every other test of these directories worthless."""
    lines = (fixtures / f"{entry}.modes.txt").read_text().splitlines()
    listed = {(*line.split(" ", 4), "")[4]: line.split(" ", 4) for line in lines}
    assert len(listed) == len(list((fixtures / entry).rglob("*"))) + 1
    for name, (mode, links, size, kind, _) in listed.items():
        status = (fixtures / entry / name).lstat()
        assert oct(status.st_mode & 0o7777) == f"0o{mode}"
        if kind == "f":
            assert (status.st_nlink, status.st_size) == (int(links), int(size))


@pytest.mark.parametrize("entry", SETTLED)
def test_every_look_reads_it_and_changes_nothing(fixtures: Path, entry: str) -> None:
    """A look that repaired, completed or touched anything would show in inode, time, mode or content."""
    path, team = fixtures / entry, SETTLED[entry]
    before = evidence.fingerprint(path)
    mailbox = Mailbox(path)
    assert mailbox.teams() == [team]
    view = mailbox.look(team)
    raw = evidence.payload(path / team) if REVISIONS[entry] else evidence.legacy(path / team)
    assert view.revision == REVISIONS[entry]
    assert [message.to_json() for message in view.messages] == raw["messages"]
    assert [list(message.to_json()) for message in view.messages] == [list(item) for item in raw["messages"]]
    assert [entry.member.to_json() for entry in view.members] == raw["members"]
    assert {entry.displayed for entry in view.members} <= {"offline"}
    assert [report.fault for report in mailbox.revisions(team)] == [""] * len(mailbox.revisions(team))
    mailbox.close()
    assert evidence.fingerprint(path) == before


@pytest.mark.parametrize("entry", SETTLED)
def test_doctor_finds_nothing_wrong_with_it(fixtures: Path, entry: str) -> None:
    """An older peer's directory has no presence, no history or no locks yet, and that is no fault."""
    assert Mailbox(fixtures / entry).doctor() == []


def test_snapshots_of_its_sessions_are_reproduced(fixtures: Path, beside: Callable[[str], Any]) -> None:
    """Who sees which messages in which order, and who owes whom, is the same in both implementations."""
    mailbox = Mailbox(fixtures / "2-full")
    memberships, snapshots = beside("2-full.memberships.json"), beside("2-full.snapshots.json")
    assert len(memberships) == 3
    for member in memberships.values():
        theirs = snapshots[member["alias"]]
        ours = mailbox.snapshot(membership(member)).to_json()
        assert ours["revision"] == theirs["revision"]
        assert ours["sweepable"] == theirs["sweepable"]
        assert ours["messages"] == theirs["messages"]
        assert ours["flow"] == theirs["flow"]
        # Its sessions were alive then: the status is presence's, and that is all that differs.
        assert [stripped(item) for item in ours["members"]] == [stripped(item) for item in theirs["members"]]


def stripped(member: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in member.items() if key not in {"status", "displayed", "alive"}}


def test_pruned_history_is_read_to_its_oldest_revision(fixtures: Path) -> None:
    """32 of 41 revisions are kept: the oldest one that is left has a parent that is gone."""
    mailbox = Mailbox(fixtures / "6-pruned")
    assert [report.revision for report in mailbox.revisions("many")] == list(range(10, 42))
    assert len(mailbox.look("many").messages) == 38


def test_claim_of_a_member_that_left_is_interrupted(fixtures: Path) -> None:
    """A member left while it worked: its request ended, and its emitter was told."""
    view = Mailbox(fixtures / "7-left-with-claim").look("gone")
    request, result = view.messages
    assert (request.kind, request.state, result.parent_id) == ("request", "interrupted", request.id)
    assert result.report is not None
    assert result.report.outcome == "interrupted"
    assert {entry.member.alias: entry.alive for entry in view.members}["b"] is False


def test_lone_surrogate_is_read(fixtures: Path) -> None:
    """A text that is no Unicode: a surrogate without its partner, which JavaScript strings may hold."""
    bodies = [message.body for message in Mailbox(fixtures / "2-full").look("crew").messages]
    lone = [body for body in bodies if any("\ud800" <= character <= "\udfff" for character in body)]
    assert lone
    assert b"\\ud" in (fixtures / "2-full" / "crew" / "state.json").read_bytes()

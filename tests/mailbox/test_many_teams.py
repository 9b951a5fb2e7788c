"""One mailbox and more teams than it may hold open."""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from interposition import InterposedFileSystem
from pi_team import Mailbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEAMS = 60
OPEN = 24


@pytest.fixture
def mailbox(tmp_path: Path) -> Iterator[Mailbox]:
    """Many teams, the first one with a message."""
    fs = InterposedFileSystem()
    with Mailbox(tmp_path / "teams", filesystem=fs) as mailbox:
        mailbox.create("t0")
        for number in range(1, TEAMS):
            shutil.copytree(tmp_path / "teams" / "t0", tmp_path / "teams" / f"t{number}")
        yield mailbox


def opened() -> int:
    return len(os.listdir("/dev/fd"))


def test_looks_at_many_teams_hold_few_descriptors(mailbox: Mailbox) -> None:
    """`pi-team teams` looks at each: with 256 descriptors, some systems' limit, 140 teams were too many."""
    before = opened()
    for _ in range(2):
        for team in mailbox.teams():
            mailbox.look(team)
    assert opened() <= before + 2 * OPEN


def test_team_that_is_looked_at_stays_open(mailbox: Mailbox) -> None:
    """A session looks at its own team all the time, and at others now and then: its looks stay cheap."""
    fs = mailbox._engine.fs
    assert isinstance(fs, InterposedFileSystem)
    for team in mailbox.teams():
        mailbox._engine.read("t0")
        mailbox._engine.read(team)
        fs.calls.clear()
        mailbox._engine.read("t0")
        assert [call.method for call in fs.calls] == ["stat", "stat"]


def test_team_that_was_closed_shows_no_less(mailbox: Mailbox, tmp_path: Path) -> None:
    """What was shown of it is kept, though an older record was put back while it was not open."""
    owner = mailbox.join("t0", "me")
    mailbox.join("t0", "you")
    mailbox.send(owner, "you", kind="note", subject="shown", body="x")
    shown = mailbox.look("t0")
    for team in mailbox.teams():
        mailbox.look(team)
    home = tmp_path / "teams" / "t0"
    (home / "state.json").unlink()
    (home / "state.json").hardlink_to(home / "revisions" / f"{shown.revision - 1}.json")
    fs = mailbox._engine.fs
    assert isinstance(fs, InterposedFileSystem)
    for method in ("create", "fsync", "rename"):
        fs.at(method).fail(errno.EROFS).always()
    assert [message.subject for message in mailbox.look("t0").messages] == ["shown"]

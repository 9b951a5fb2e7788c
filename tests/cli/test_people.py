"""What a person does to teams and members, and mending them."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from pi_team.record.filesystem import OsFileSystem

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Run, Show
    from pi_team.mailbox import Mailbox


@pytest.mark.usefixtures("mailbox")
def test_a_team_is_created_renamed_and_deleted(run: Run) -> None:
    assert run("create", "other", "--json").object == {"team": "other", "revision": 1}
    assert run("rename-team", "other", "another", "--json").object == {"team": "another", "before": "other"}
    assert run("teams").out == "another\ncrew\n"
    assert run("delete", "another", "--yes", "--json").object == {"team": "another", "deleted": True}
    assert run("teams").out == "crew\n"


def test_a_member_is_renamed_and_removed_with_what_that_settles(mailbox: Mailbox, run: Run) -> None:
    lead = mailbox.join("crew", "lead")
    mailbox.leave(mailbox.join("crew", "coder"))
    mailbox.send(lead, "coder", kind="request", subject="work", body="work")
    mailbox.send(lead, "coder", kind="note", subject="note", body="note")
    assert run("rename-member", "crew", "coder", "writer", "--json").object["alias"] == "writer"
    removed = run("remove", "crew", "writer", "--yes", "--json").object
    assert removed == {"team": "crew", "alias": "writer", "refused": 1, "cancelled": 0, "discarded": 1}


def test_an_answer_is_asked_for_in_a_terminal(mailbox: Mailbox, show: Show) -> None:
    """No, and the end of the input, change nothing and say so; yes does it."""
    for answer in ("n\r", "\x04"):
        terminal = show("delete", "crew")
        terminal.until("[y/N]")
        terminal.type(answer)
        ended = terminal.end()
        assert ended.status == 1
        assert "Nothing was changed." in ended.out
        assert mailbox.teams() == ["crew"]
    terminal = show("delete", "crew")
    terminal.until("Delete crew and all its messages? [y/N]")
    terminal.type("y\r")
    assert terminal.end().status == 0
    assert mailbox.teams() == []


@pytest.mark.usefixtures("mailbox")
def test_doctor_finds_nothing_in_order_and_names_what_mends_the_rest(home: Path, run: Run) -> None:
    ended = run("doctor")
    assert (ended.status, ended.out) == (0, f"Nothing is wrong in {home / 'teams'}.\n")
    assert run("doctor", "crew", "--json").object == {"path": str(home / "teams"), "findings": []}
    (home / "teams" / "crew").chmod(0o755)
    ended = run("doctor", "--json")
    assert ended.status == 1
    (finding,) = ended.object["findings"]
    assert (finding["code"], finding["team"]) == ("RECORD_UNSAFE", "crew")
    assert finding["command"] in run("doctor").out
    (home / "teams" / "crew").chmod(0o700)


def test_recover_shows_what_is_intact_and_restores_it(mailbox: Mailbox, home: Path, run: Run) -> None:
    lead = mailbox.join("crew", "lead")
    mailbox.leave(lead)
    record = home / "teams" / "crew" / "state.json"
    record.unlink()
    record.write_text("damaged")
    record.chmod(0o600)
    ended = run("recover", "crew", "--yes", "--json")
    assert ended.status == 0
    assert ended.object["team"] == "crew"
    assert ended.object["revision"] > ended.object["restored"] == 3
    assert run("members", "crew").status == 0
    assert any(path.read_text() == "damaged" for path in record.parent.glob("state.json.damaged-*"))


def check_refused_but_for_a_name(run: Run, code: str, hint: str) -> None:
    """Two revisions are intact and the newest was not read: nothing is restored until one is named."""
    for words in (["--yes"], []):  # without the answer, no question either
        ended = run("recover", "crew", *words)
        assert ended.status == 1
        assert [line.split("\t")[1] for line in ended.out.splitlines()] == ["intact", "intact", "not read"]
        assert ended.err.startswith(f"error {code}")
        assert hint in ended.err
    assert run("recover", "crew", "--revision", "2", "--yes", "--json").object["revision"] == 4


def test_recover_asks_nothing_where_the_newest_revision_was_not_read(
    mailbox: Mailbox, home: Path, run: Run
) -> None:
    """It may be good: not even an answer given beforehand passes over it, but the name of another does."""
    mailbox.leave(mailbox.join("crew", "lead"))
    crew = home / "teams" / "crew"
    (crew / "state.json").unlink()
    (crew / "revisions" / "3.json").chmod(0o640)
    check_refused_but_for_a_name(run, "RECORD_UNSAFE", "pi-team recover crew --revision 2")


@pytest.fixture
def bad_sector(mailbox: Mailbox, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The device cannot read the record any more, which is one file with the newest revision."""
    mailbox.leave(mailbox.join("crew", "lead"))
    lost = (home / "teams" / "crew" / "state.json").stat().st_ino
    read = OsFileSystem.read

    def failing(self: OsFileSystem, fd: int, size: int) -> bytes:
        if os.fstat(fd).st_ino == lost:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read(self, fd, size)

    monkeypatch.setattr(OsFileSystem, "read", failing)


@pytest.mark.usefixtures("bad_sector")
def test_record_on_a_bad_sector_goes_back_to_a_named_revision(run: Run) -> None:
    """Nothing is restored by itself, since the fault may pass; what is intact is shown, and can be named."""
    check_refused_but_for_a_name(run, "STORAGE", "--revision")
    assert run("members", "crew").status == 0


def test_recover_of_an_intact_record_only_shows_until_a_revision_is_named(mailbox: Mailbox, run: Run) -> None:
    mailbox.leave(mailbox.join("crew", "lead"))
    ended = run("recover", "crew")
    assert ended.status == 0
    assert [line.split("\t")[:2] for line in ended.out.splitlines()] == [
        ["1", "intact"],
        ["2", "intact"],
        ["3", "intact"],
    ]
    assert "is intact" in ended.err
    assert [report["intact"] for report in run("recover", "crew", "--json").object["revisions"]] == [True] * 3
    assert run("recover", "crew", "--revision", "1", "--yes", "--json").object["revision"] == 4
    assert mailbox.look("crew").members == ()

"""Looks: their JSON, their tables, what they say of nothing, and that they change nothing."""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING

import pytest

from pi_team.domain.model import Report
from pi_team.record.filesystem import OsFileSystem

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Run
    from pi_team.domain.model import Membership
    from pi_team.mailbox import Mailbox

LOOKS = [["members", "crew"], ["status", "crew"], ["log", "crew"], ["log", "crew", "--bodies"]]


@pytest.fixture
def lead(mailbox: Mailbox) -> Membership:
    """A team in which `lead` is here, `coder` has answered one request, owes another, and left."""
    lead = mailbox.join("crew", "lead", cwd="/srv/project")
    mailbox.heartbeat(lead, "busy")
    coder = mailbox.join("crew", "coder")
    first = mailbox.send(lead, "coder", kind="request", subject="first", body="one\ntwo")
    mailbox.claim(coder, message_id=first.id)
    mailbox.settle(coder, first.id, Report("completed", "did it", files=("/srv/a.py",)))
    mailbox.send(lead, "coder", kind="request", subject="second", body="more")
    mailbox.leave(coder)
    return lead


@pytest.mark.usefixtures("lead")
def test_members_as_json_have_the_records_names_and_what_is_displayed(run: Run) -> None:
    look = run("members", "crew", "--json").object
    assert set(look) == {"team", "revision", "members"}
    here, away = look["members"]
    assert (here["alias"], here["displayed"], here["alive"], here["cwd"]) == (
        "lead",
        "busy",
        True,
        "/srv/project",
    )
    assert (away["alias"], away["displayed"], away["alive"]) == ("coder", "offline", False)
    assert "token" not in here


@pytest.mark.usefixtures("lead")
def test_messages_and_flow_as_json(run: Run) -> None:
    log = run("log", "crew", "--json").object
    assert set(log) == {"team", "revision", "messages"}
    assert [message["kind"] for message in log["messages"]] == ["request", "result", "request"]
    assert log["messages"][1]["result"]["outcome"] == "completed"
    assert not any("claim" in message for message in log["messages"])
    status = run("status", "crew", "--json").object
    (owed,) = status["flow"]
    assert (owed["from"], owed["to"], owed["state"], owed["subject"]) == (
        "lead",
        "coder",
        "pending",
        "second",
    )
    assert "body" not in owed


@pytest.mark.usefixtures("lead")
def test_a_pipe_gets_one_line_of_tabs_for_each_thing_with_whole_ids(mailbox: Mailbox, run: Run) -> None:
    assert run("teams").out == "crew\n"
    rows = [line.split("\t") for line in run("members", "crew").out.splitlines()]
    assert [row[:2] for row in rows] == [["lead", "busy"], ["coder", "offline"]]
    messages = mailbox.look("crew").messages
    rows = [line.split("\t") for line in run("log", "crew").out.splitlines()]
    assert [row[1:] for row in rows] == [
        ["lead", "coder", "request", "completed", messages[0].id, "first"],
        ["coder", "lead", "result", "completed", messages[1].id, "first"],
        ["lead", "coder", "request", "pending", messages[2].id, "second"],
    ]
    (row,) = [line.split("\t") for line in run("status", "crew").out.splitlines()]
    assert row[:3] == ["lead", "coder", "pending"]
    assert row[4:] == [messages[2].id, "second"]


@pytest.mark.usefixtures("lead")
def test_the_log_with_bodies_shows_the_texts_and_files(run: Run) -> None:
    shown = run("log", "crew", "--bodies").out
    assert "    one\n    two\n" in shown
    assert "result (completed) from coder to lead" in shown
    assert "    files: /srv/a.py\n" in shown


def test_nothing_there_yet_says_what_to_do_first(run: Run) -> None:
    """On standard error, so that a script that counts lines counts none."""
    expected = {
        ("teams",): "pi-team create NAME",
        ("members", "crew"): "pi-team work crew ALIAS -- CMD",
        ("status", "crew"): "pi-team ask crew ALIAS TEXT --as ME",
        ("log", "crew"): "pi-team send crew ALIAS TEXT --as ME",
    }
    for words, hint in expected.items():
        ended = run(*words)
        assert (ended.status, ended.out) == (0, ""), words
        assert hint in ended.err
        assert run(*words, "--json").err == ""
        if words == ("teams",):
            assert run("create", "crew").out == "created crew\n"


def tree(path: Path) -> dict[str, tuple[int, int]]:
    return {
        os.path.join(root, name): ((status := os.lstat(os.path.join(root, name))).st_ino, status.st_mtime_ns)
        for root, names, files in os.walk(path)
        for name in (*names, *files)
    }


@pytest.mark.usefixtures("lead")
@pytest.mark.parametrize("pending", [False, True])
def test_looks_work_where_nothing_can_be_written(
    pending: bool, home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read-only file system; also with a publication linked and not installed, which a look would help."""
    record = home / "teams" / "crew" / "state.json"
    if pending:
        earlier = json.loads(record.read_text())["revision"] - 1
        record.unlink()
        os.link(home / "teams" / "crew" / "revisions" / f"{earlier}.json", record)

    def refuse(*_args: object, **_keywords: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    before = tree(home)
    for call in ("create", "mkdir", "link", "rename", "unlink", "rmdir", "touch", "write", "fsync"):
        monkeypatch.setattr(OsFileSystem, call, refuse)
    for words in [["teams"], *LOOKS, ["inbox", "crew", "--as", "lead", "--peek"], ["doctor", "crew"]]:
        ended = run(*words, "--json")
        assert ended.status == (1 if words[0] == "doctor" else 0), ended
        assert json.loads(ended.out)
    assert {path: seen for path, seen in tree(home).items() if ".locks" not in path} == {
        path: seen for path, seen in before.items() if ".locks" not in path
    }


@pytest.mark.usefixtures("lead")
def test_a_damaged_team_does_not_hide_the_others(home: Path, run: Run) -> None:
    run("create", "other")
    (home / "teams" / "crew" / "state.json").chmod(0o644)
    assert run("teams", "--json").object == {"teams": ["crew", "other"]}

"""Every refusal has its code, its exit status and one form; with --json the same as an object."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from pi_team import errors
from pi_team.clocks import SystemClock
from pi_team.domain.model import Report
from pi_team.mailbox import Mailbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from commands import Run, Show

HERE = "living"
AWAY = "away"


class _Earlier(SystemClock):
    """Five seconds ago."""

    def wall(self) -> float:
        return super().wall() - 5


@pytest.fixture
def crew(mailbox: Mailbox) -> Mailbox:
    """A team with a living member, one that is offline, and a request of each kind of ending."""
    away = mailbox.join("crew", AWAY)
    # It has had a heartbeat since it joined, as a session has and a command of a moment has not.
    living = Mailbox(mailbox.path, clock=_Earlier()).join("crew", HERE)
    mailbox.heartbeat(living, "idle")
    request = mailbox.send(away, HERE, kind="request", subject="will fail", body="try")
    mailbox.claim(living, message_id=request.id)
    mailbox.settle(living, request.id, Report("failed", "nope"))
    mailbox.send(away, HERE, kind="note", subject="hello", body="hello")
    mailbox.leave(away)
    return mailbox


def request_id(mailbox: Mailbox) -> str:
    return mailbox.look("crew").messages[0].id


USAGE = {
    "no command": [],
    "an unknown command": ["sned", "crew"],
    "a missing argument": ["members"],
    "a surplus argument": ["members", "crew", "more"],
    "an unknown option": ["members", "crew", "--nope"],
    "no alias of mine": ["send", "crew", AWAY, "hello"],
    "a blank text": ["send", "crew", AWAY, " \n", "--as", "me"],
    "a timeout of nothing": ["ask", "crew", AWAY, "hello", "--as", "me", "--timeout", "0"],
    "a timeout that is no number": ["ask", "crew", AWAY, "hello", "--as", "me", "--timeout", "nan"],
    "a text that is not UTF-8": ["send", "crew", AWAY, "a\udcff", "--as", "me"],
    "work without a command": ["work", "crew", "me"],
    "a shell that is not known": ["completion", "tcsh"],
    "a revision below one": ["recover", "crew", "--revision", "0"],
}


@pytest.mark.parametrize("what", USAGE)
def test_wrong_usage_is_exit_2(what: str, run: Run) -> None:
    ended = run(*USAGE[what])
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.splitlines()[-1].startswith("error USAGE: ")
    ended = run(*USAGE[what], "--json")
    assert (ended.status, ended.error["code"]) == (2, "USAGE")


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("", "pi-team"),
        ("sned crew", "pi-team"),
        ("--nope", "pi-team"),
        ("log crew --bodies=1", "pi-team log"),
        ("send crew coder x --as al --reply-to", "pi-team send"),
        ("send crew coder x --as", "pi-team send"),
        ("pi install --json=1", "pi-team pi install"),
        ("pi --json=1 install", "pi-team pi"),
        ("pi", "pi-team pi"),
    ],
)
def test_wrong_usage_names_the_help_of_the_command_that_was_meant(line: str, path: str, run: Run) -> None:
    """Also where click's parser refuses a word without saying in which command."""
    assert f"`{path} --help`" in run(*line.split()).err.splitlines()[-1]


REFUSALS = {
    "NAME_INVALID": ["create", "Crew"],
    "TEAM_EXISTS": ["create", "crew"],
    "TEAM_ACTIVE": ["delete", "crew", "--yes"],
    "ALIAS_ALIVE": ["send", "crew", AWAY, "hello", "--as", HERE],
    "ALIAS_EXISTS": ["rename-member", "crew", AWAY, HERE],
    "MEMBER_UNKNOWN": ["remove", "crew", "nobody", "--yes"],
    "MEMBER_ALIVE": ["remove", "crew", HERE, "--yes"],
    "RECIPIENT_UNKNOWN": ["send", "crew", "nobody", "hello", "--as", "me"],
    "SELF_ADDRESSED": ["send", "crew", AWAY, "hello", "--as", AWAY],
    "PARENT_UNKNOWN": ["send", "crew", HERE, "more", "--as", AWAY, "--reply-to", "nothing"],
    "PARENT_NOT_COMPLETED": ["send", "crew", HERE, "more", "--as", AWAY, "--reply-to", "REQUEST"],
    "DUPLICATE": ["send", "crew", HERE, "hello", "--as", AWAY],
    "LIMIT_BODY": ["send", "crew", HERE, "x" * 16_001, "--as", "me"],
    "LIMIT_SUBJECT": ["send", "crew", HERE, "text", "--as", "me", "--subject", "x" * 161],
    "MESSAGE_UNKNOWN": ["wait", "crew", "nothing", "--as", AWAY],
}


@pytest.mark.parametrize("code", REFUSALS)
def test_a_refused_operation_is_exit_1(code: str, crew: Mailbox, run: Run) -> None:
    """Asked twice, because a refusal must have changed nothing that would answer the second differently."""
    words = [word.replace("REQUEST", request_id(crew)) for word in REFUSALS[code]]
    ended = run(*words, "--json")
    assert (ended.status, ended.error["code"]) == (1, code)
    assert set(ended.error) == {"code", "message", "hint", "retryable"}
    assert ended.error["message"]
    ended = run(*words)
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.startswith(f"error {code}: ")
    assert ended.err.count("\n") == 1


UNKNOWN_TEAM = [
    ["members", "nope"],
    ["status", "nope"],
    ["log", "nope"],
    ["watch", "nope"],
    ["doctor", "nope"],
    ["recover", "nope", "--yes"],
    ["delete", "nope", "--yes"],
    ["rename-team", "nope", "other"],
    ["remove", "nope", "alias", "--yes"],
    ["rename-member", "nope", "alias", "other"],
    ["send", "nope", "alias", "hello", "--as", "me"],
    ["ask", "nope", "alias", "hello", "--as", "me"],
    ["wait", "nope", "id", "--as", "me"],
    ["inbox", "nope", "--as", "me"],
    ["work", "nope", "me", "--", "true"],
]


@pytest.mark.parametrize("words", UNKNOWN_TEAM, ids=lambda words: words[0])
def test_an_unknown_team_is_refused_by_every_command_and_never_created(
    words: list[str], home: Path, run: Run
) -> None:
    split = words.index("--") if "--" in words else len(words)
    ended = run(*words[:split], "--json", *words[split:])
    assert (ended.status, ended.error["code"]) == (1, "TEAM_UNKNOWN")
    assert not (home / "teams" / "nope").exists()


QUESTIONS = [
    ["delete", "crew"],
    ["remove", "crew", AWAY],
    ["recover", "crew", "--revision", "1"],
]


@pytest.mark.parametrize("words", QUESTIONS, ids=lambda words: words[0])
def test_a_question_that_nobody_can_answer_is_exit_2_and_changes_nothing(
    words: list[str], mailbox: Mailbox, run: Run
) -> None:
    mailbox.leave(mailbox.join("crew", AWAY))
    before = mailbox.look("crew").revision
    for extra in ([], ["--json"]):
        ended = run(*words, *extra)
        assert ended.status == 2
        assert "CONFIRMATION_REQUIRED" in ended.err
    assert mailbox.look("crew").revision == before


@pytest.mark.usefixtures("crew")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("delete nope", "TEAM_UNKNOWN"),
        pytest.param("delete nope --damaged", "TEAM_UNKNOWN", marks=pytest.mark.slow),
        pytest.param("delete Nope", "NAME_INVALID", marks=pytest.mark.slow),
        pytest.param("remove nope al", "TEAM_UNKNOWN", marks=pytest.mark.slow),
        ("remove crew nobody", "MEMBER_UNKNOWN"),
        pytest.param("recover nope", "TEAM_UNKNOWN", marks=pytest.mark.slow),
    ],
)
def test_what_is_not_there_is_said_before_anybody_is_asked(
    line: str, code: str, run: Run, show: Show
) -> None:
    """No answer would do any good; in a terminal and without one."""
    ended = run(*line.split(), "--json")
    assert (ended.status, ended.error["code"]) == (1, code)
    shown = show(*line.split()).end()
    assert shown.status == 1
    assert code in shown.out
    assert "[y/N]" not in shown.out


def test_a_damaged_team_is_still_asked_about(mailbox: Mailbox, home: Path, run: Run, show: Show) -> None:
    """It cannot be looked at, and `delete --damaged` is there for it."""
    mailbox.close()
    (home / "teams" / "crew" / "state.json").unlink()
    assert run("delete", "crew", "--damaged").status == 2
    asking = show("delete", "crew", "--damaged")
    asking.until("[y/N]")
    asking.type("y\n")
    assert asking.end().status == 0
    assert not (home / "teams" / "crew").exists()


def test_a_missing_program_is_refused_before_joining(mailbox: Mailbox, run: Run) -> None:
    ended = run("work", "crew", "me", "--json", "--", "no-such-program-anywhere")
    assert (ended.status, ended.error["code"]) == (2, "COMMAND_NOT_FOUND")
    assert mailbox.look("crew").revision == 1


def break_json(record: Path) -> None:
    record.unlink()
    record.write_text("{")
    record.chmod(0o600)


def open_to_others(record: Path) -> None:
    record.chmod(0o644)


def remove_record(record: Path) -> None:
    record.unlink()


def future_schema(record: Path) -> None:
    text = record.read_text().replace('"schemaVersion":1', '"schemaVersion":9')
    record.unlink()
    record.write_text(text)
    record.chmod(0o600)


DAMAGE = {
    "RECORD_CORRUPT": break_json,
    "RECORD_UNSAFE": open_to_others,
    "RECORD_MISSING": remove_record,
    "UNSUPPORTED_SCHEMA": future_schema,
}


@pytest.mark.usefixtures("mailbox")
@pytest.mark.parametrize("code", DAMAGE)
@pytest.mark.parametrize(
    "words", [["log", "crew"], ["inbox", "crew", "--as", "me"], ["send", "crew", AWAY, "x", "--as", "me"]]
)
def test_a_damaged_record_fails_closed_and_is_kept(code: str, words: list[str], home: Path, run: Run) -> None:
    record = home / "teams" / "crew" / "state.json"
    damage: Callable[[Path], None] = DAMAGE[code]
    damage(record)
    before = record.read_bytes() if record.exists() else None
    ended = run(*words, "--json")
    assert (ended.status, ended.error["code"]) == (1, code)
    assert (record.read_bytes() if record.exists() else None) == before


def test_the_command_that_a_hint_gives_can_be_pasted(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path with blanks and quotes is one word to the shell, and the command mends the fault."""
    home = tmp_path / "with space'q"
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(home))
    run("create", "crew")
    (home / "teams" / "crew").chmod(0o750)
    hint = run("log", "crew", "--json").error["hint"]
    command = hint.partition(": ")[2]
    subprocess.run(["sh", "-c", command], check=True, timeout=20)
    assert run("log", "crew").status == 0


def test_a_defect_is_one_line_and_its_traceback_is_for_who_asks(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_self: object) -> list[str]:
        raise RuntimeError("bad\x1b[31m")

    monkeypatch.setattr("pi_team.mailbox.Mailbox.teams", broken)
    ended = run("teams")
    assert ended.status == 1
    assert (
        ended.err
        == "error INTERNAL: RuntimeError: bad. PI_TEAM_DEBUG=1 shows the traceback; please report it.\n"
    )
    monkeypatch.setenv("PI_TEAM_DEBUG", "1")
    assert "Traceback" in run("teams").err


def test_json_after_two_dashes_is_the_commands_own(run: Run) -> None:
    ended = run("work", "crew", "me", "--", "no-such-program-anywhere", "--json")
    assert ended.err.startswith("error COMMAND_NOT_FOUND: ")


def test_every_code_of_the_cli_has_a_test_here_or_elsewhere() -> None:
    """A new code must be given a place in these tables; those of races and full disks are tested below."""
    below = """
        BUSY OUTCOME_UNKNOWN TEAM_MOVED STORAGE UNSUPPORTED_FILESYSTEM MEMBERSHIP_LOST NOT_CLAIMED
        ALREADY_CLAIMING REPORT_INVALID LIMIT_INPUT LIMIT_IDENTIFIER LIMIT_MEMBERS LIMIT_HISTORY
        LIMIT_RECIPIENT LIMIT_SENDER LIMIT_THREAD LIMIT_RECORD
    """
    elsewhere = """
        USAGE CONFIRMATION_REQUIRED COMMAND_NOT_FOUND TEAM_UNKNOWN TIMED_OUT DEMO_FAILED INTERNAL
        OUTPUT PROTOCOL PROTOCOL_VERSION PI_SETTINGS PI_CONFLICT PI_ENVIRONMENT
    """
    codes = {
        value.code
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.PiTeamError) and "code" in vars(value)
    }
    assert codes == set(REFUSALS) | set(DAMAGE) | {*below.split(), *elsewhere.split()}


def test_an_error_survives_a_closed_standard_error(run: Run) -> None:
    """Whoever closed standard error does not want to know; the exit status still tells."""
    saved = os.dup(2)
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        os.dup2(write_end, 2)
        assert run("members", "nope").status == 1
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(write_end)

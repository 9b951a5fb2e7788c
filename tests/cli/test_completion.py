"""What a shell is offered: commands without importing them, teams, teammates but never oneself, ids."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Protocol

import pytest

from pi_team.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Run
    from pi_team.mailbox import Mailbox


class Complete(Protocol):
    def __call__(self, line: str) -> list[str]: ...


@pytest.fixture
def complete(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Complete:
    """What bash is offered at the end of a line."""

    def complete(line: str) -> list[str]:
        words = line.split()
        monkeypatch.setenv("_PI_TEAM_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(words) if line.endswith(" ") else len(words) - 1))
        capfd.readouterr()
        assert main([]) == 0
        captured = capfd.readouterr()
        assert captured.err == ""
        return [item.split(",", 1)[1] for item in captured.out.splitlines() if item]

    return complete


@pytest.fixture
def crew(mailbox: Mailbox) -> Mailbox:
    lead = mailbox.join("crew", "lead")
    mailbox.leave(mailbox.join("crew", "coder"))
    mailbox.send(lead, "coder", kind="request", subject="asked", body="x")
    mailbox.send(lead, "coder", kind="note", subject="told", body="x")
    mailbox.leave(lead)
    return mailbox


def test_commands_and_options(complete: Complete) -> None:
    assert complete("pi-team ") == [
        *(
            "demo",
            "create",
            "teams",
            "send",
            "ask",
            "wait",
            "inbox",
            "work",
            "members",
            "status",
            "log",
            "watch",
        ),
        *("rename-team", "delete", "rename-member", "remove", "pi", "doctor", "recover", "completion"),
    ]
    assert complete("pi-team rena") == ["rename-team", "rename-member"]
    assert {"--as", "--note", "--json"} <= set(complete("pi-team send crew coder x -"))


@pytest.mark.usefixtures("crew")
def test_teams_and_teammates_but_never_oneself(complete: Complete, monkeypatch: pytest.MonkeyPatch) -> None:
    assert complete("pi-team members ") == ["crew"]
    assert complete("pi-team members x") == []
    assert complete("pi-team send crew ") == ["lead", "coder"]
    assert complete("pi-team send --as lead crew ") == ["coder"]
    assert complete("pi-team send crew coder x --as ") == ["lead", "coder"]
    assert complete("pi-team remove crew c") == ["coder"]
    monkeypatch.setenv("PI_TEAM_ALIAS", "coder")
    assert complete("pi-team send crew ") == ["lead"]


def test_ids_of_what_was_asked_and_of_what_may_be_followed_up(crew: Mailbox, complete: Complete) -> None:
    asked, told = (message.id for message in crew.look("crew").messages)
    assert complete("pi-team wait --as lead crew ") == [asked]
    assert complete("pi-team wait --as coder crew ") == []
    assert complete("pi-team send crew coder x --as lead --reply-to ") == [told, asked]
    assert complete(f"pi-team send crew coder x --as lead --reply-to {asked[:9]}") == [asked]


@pytest.mark.parametrize("line", ["pi-team members ", "pi-team send crew ", "pi-team send nope "])
def test_no_failure_ever_disturbs_the_line_being_typed(
    line: str, crew: Mailbox, home: Path, complete: Complete
) -> None:
    (home / "teams" / "crew" / "state.json").chmod(0o644)
    (home / "teams").chmod(0o755)
    assert complete(line) == []
    assert crew.path


def test_the_scripts_load_and_say_how_to_install_them(run: Run) -> None:
    for shell in ("bash", "zsh", "fish"):
        script = run("completion", shell).out
        assert "_pi_team_completion" in script
        assert f"pi-team completion {shell}" in script.splitlines()[-1]
        if shutil.which(shell):
            subprocess.run([shell, "-n"], input=script, text=True, check=True)
    assert run("completion", "zsh").out.startswith("#compdef pi-team\n")
    assert run("completion", "bash", "--json").object["shell"] == "bash"


@pytest.mark.usefixtures("crew")
def test_bash_completes_with_the_script(run: Run, tmp_path: Path) -> None:
    """The installed script, in a real bash, asks the real program."""
    program = tmp_path / "pi-team"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m pi_team "$@"\n')
    program.chmod(0o700)
    script = run("completion", "bash").out
    asking = f"""
PATH={tmp_path}:$PATH
{script}
COMP_WORDS=(pi-team members "") COMP_CWORD=2
_pi_team_completion pi-team
echo "${{COMPREPLY[@]}}"
"""
    ended = subprocess.run(["bash"], input=asking, capture_output=True, text=True, timeout=20, check=True)
    assert (ended.stdout, ended.stderr) == ("crew\n", "")

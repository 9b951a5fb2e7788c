"""The command starts fast: it imports what it needs and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import click

from pi_team._version import __version__
from pi_team.cli.app import SECTIONS, app

if TYPE_CHECKING:
    from commands import Run

HEAVY = ("rich", "psutil", "attrs", "attr", "filelock", "watchdog", "transitions", "pi_team.mailbox")
REPORT = (
    "import sys; from pi_team.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
)


def imported(*words: str) -> set[str]:
    ended = subprocess.run(
        [sys.executable, "-c", REPORT, *words], capture_output=True, text=True, timeout=30, check=True
    )
    return set(ended.stderr.splitlines()[-1].split())


def test_the_version_needs_no_imports_and_help_only_click() -> None:
    assert not imported("--version") & {"click", *HEAVY}
    assert not imported("--help") & set(HEAVY)


def test_a_pipe_is_served_without_rich() -> None:
    assert "rich" not in imported("teams")


def test_the_version_takes_less_than_120_ms_of_processor_time() -> None:
    """Processor time, because a busy machine delays any process; the best of five, for the same reason."""
    best = float("inf")
    for _ in range(5):
        process = subprocess.Popen([sys.executable, "-m", "pi_team", "--version"], stdout=subprocess.DEVNULL)
        _pid, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        best = min(best, used.ru_utime + used.ru_stime)
    assert best < 0.120


def test_the_table_of_contents_says_what_the_commands_say() -> None:
    context = click.Context(app)
    for entries in SECTIONS.values():
        for name, entry in entries.items():
            command = app.get_command(context, name)
            assert command is not None
            assert (command.name, command.short_help) == (name, entry.help)
            assert any("--json" in parameter.opts for parameter in command.params), name


def test_help_fits_a_terminal_and_version_is_an_option_like_others(run: Run) -> None:
    assert max(map(len, run("--help").out.splitlines())) <= 80
    assert run("--version").out == run("--version", "teams").out == f"pi-team {__version__}\n"
    for name in (name for entries in SECTIONS.values() for name in entries):
        ended = run(name, "--help")
        assert ended.status == 0
        assert ended.out.startswith(f"Usage: pi-team {name} ")

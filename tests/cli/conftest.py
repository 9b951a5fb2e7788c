"""Teams in a temporary directory, and the command in this process, in one of its own, or in a terminal."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest

from commands import Ended, Run, Show, Spawn, Terminal, spawning
from pi_team.cli.main import main
from pi_team.mailbox import Mailbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty PI_CODING_AGENT_DIR, and an environment without anything else that the command looks at."""
    home = tmp_path / "agent"
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(home))
    for name in (
        "PI_TEAM_ALIAS",
        "PI_TEAM_DEBUG",
        "NO_COLOR",
        "FORCE_COLOR",
        "COLUMNS",
        "LINES",
        "_PI_TEAM_COMPLETE",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    return home


@pytest.fixture
def mailbox(home: Path) -> Iterator[Mailbox]:
    """The teams as another process would see them, with a team `crew`."""
    mailbox = Mailbox(home / "teams")
    mailbox.create("crew")
    yield mailbox
    mailbox.close()


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in this process."""

    def run(*words: str, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        capfd.readouterr()
        status = main(list(words))
        captured = capfd.readouterr()
        return Ended(status, captured.out, captured.err)

    return run


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Start the command as a process; what still runs at the end of the test is killed."""
    with spawning() as spawn:
        yield spawn


@pytest.fixture
def show() -> Iterator[Show]:
    """Run the command in a pseudo-terminal."""
    started: list[Terminal] = []

    def show(*words: str, columns: int = 80, lines: int = 24) -> Terminal:
        started.append(Terminal(words, columns, lines))
        return started[-1]

    yield show
    for terminal in started:
        terminal.close()

"""The demo checks what it claims, fails where something does not hold, and leaves nothing behind."""

from __future__ import annotations

import signal
import tempfile
import time
from typing import TYPE_CHECKING

import psutil
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Run, Spawn
    from pi_team.cli.stage import Stage


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the demo puts its directory."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setenv("TMPDIR", str(path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return path


@pytest.mark.slow
def test_every_claim_holds_within_20_seconds_and_nothing_is_left(
    temporary: Path, home: Path, run: Run
) -> None:
    started = time.monotonic()
    ended = run("demo", "--json")
    assert ended.status == 0, ended
    assert time.monotonic() - started < 20
    claims = [event for event in ended.objects if event["event"] == "claim"]
    assert len(claims) >= 15
    assert all(event["held"] for event in claims)
    assert list(temporary.iterdir()) == []
    assert not home.exists()


@pytest.mark.slow
def test_a_claim_that_does_not_hold_fails_the_demo(
    temporary: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the killed writer had left nothing in the history."""

    def revisions(_stage: Stage, _team: str) -> tuple[int, int]:
        return 7, 7

    monkeypatch.setattr("pi_team.cli.stage.Stage.revisions", revisions)
    ended = run("demo")
    assert ended.status == 1
    assert ended.err.startswith("error DEMO_FAILED: this does not hold: revision 7 is in the history")
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_demo_that_is_told_to_stop_leaves_nothing_behind(
    number: int, status: int, temporary: Path, spawn: Spawn
) -> None:
    demo = spawn("demo", "--json")
    demo.event("claim")
    children = psutil.Process(demo.pid).children(recursive=True)
    assert children
    demo.signal(number)
    assert demo.ended().status == status
    assert list(temporary.iterdir()) == []
    assert not any(child.is_running() for child in children)

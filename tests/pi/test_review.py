"""A member looks after the requests that it sent and that bring no result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pi_team_host.python_side import python_side

if TYPE_CHECKING:
    from pathlib import Path

    from pi_host.model_server import ModelServer
    from pi_team_host.team import Team
    from pi_team_host.team_pi import StartTeamPi

HURRIED = """
import pi_team.limits

pi_team.limits.REVIEW_AFTER = 1.0
pi_team.limits.REVIEW_INTERVAL = 0.1
pi_team.limits.HEARTBEAT_INTERVAL = 0.3
"""
"""Seconds in the place of minutes."""


@pytest.fixture
def hurried(tmp_path: Path) -> str:
    return python_side(tmp_path / "hurried", HURRIED)


def test_an_old_request_is_looked_after_and_then_left_alone(
    start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer, hurried: str
) -> None:
    """A request was forgotten; or the model was reminded again and again although nothing changed."""
    lead = start_team_pi(model="fake-1", python=hurried, env={"PI_TEAM_AUTO_TURNS": "0"})
    lead.team("join crew lead")
    crew.join("boss")
    lead.team("send boss Decide on the colour")
    request = crew.has(kind="request")
    model_server.script("fake-1", "Still waiting.", "Still.", "Yes, still.")
    third = model_server.asked("fake-1", 3)
    assert third.last.startswith("[pi-team] Review for ")
    assert "Decide on the colour" in third.last
    assert request.id in third.last
    # The model is asked before what Pi has said of it is read here.
    lead.eventually(lambda: [each["details"]["kind"] for each in lead.delivered()] == ["review"] * 3)
    lead.shows("receiving")
    crew.beats("lead", 5)
    assert len(model_server.requests) == 3
    # Whatever happens in the team begins the count anew.
    model_server.script("fake-1", "Again.", "And again.", "And a third time.")
    crew.join("other")
    model_server.asked("fake-1", 6)
    crew.beats("lead", 5)
    assert len(model_server.requests) == 6
    assert crew.message(request.id).state == "pending"

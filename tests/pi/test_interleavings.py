"""A session stopped between two of its steps: claimed and not delivered, settled and nothing else."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

import pytest

from pi_host.model_server import Reply
from pi_team.session import wording
from pi_team_host.python_side import Gate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pi_host.home import PiHome
    from pi_host.model_server import ModelServer
    from pi_team_host.team import Team
    from pi_team_host.team_pi import StartTeamPi, TeamPi

HERALDING: Final = """
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

export default function (pi: ExtensionAPI): void {
  pi.on("session_shutdown", (_, ctx) => ctx.ui.notify("it ends"));
  pi.registerCommand("again", { handler: async (_, ctx) => ctx.reload() });
}
"""
"""Tells that Pi ends a session, before ours hears of it."""
ENDS: Final[dict[str, Callable[[TeamPi], object]]] = {
    "the extensions are loaded anew": lambda pi: pi.command("prompt", message="/again"),
    "another session begins": lambda pi: pi.command("new_session"),
    "Pi ends": lambda pi: pi.close(),
}


@pytest.fixture
def claimed(tmp_path: Path) -> Gate:
    """Stops the Python side when it has claimed, before it delivers."""
    return Gate(tmp_path / "claimed", "claim")


@pytest.fixture
def settled(tmp_path: Path) -> Gate:
    """Stops the Python side when it has settled, before it does anything else."""
    return Gate(tmp_path / "settled", "settle")


@pytest.fixture
def heralded(start_team_pi: StartTeamPi, pi_home: PiHome, claimed: Gate) -> TeamPi:
    """A Pi that tells that it ends the session, and whose Python side stops when it has claimed."""
    heralding = str(pi_home.extension("heralding", HERALDING))
    return start_team_pi(model="fake-2", python=claimed.python, before=(heralding,))


def member(start_team_pi: StartTeamPi, gate: Gate, model_server: ModelServer) -> tuple[TeamPi, str]:
    """A member that has spoken once, and its session."""
    coder = start_team_pi(model="fake-2", python=gate.python)
    coder.team("join crew coder")
    model_server.script("fake-2", "Hello.")
    coder.ask("Hello")
    return coder, coder.state()["sessionId"]


def test_a_person_types_between_the_claim_and_the_delivery(
    start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer, claimed: Gate
) -> None:
    """The request was put into the person's turn, or counted as taken over before it had begun."""
    coder, _ = member(start_team_pi, claimed, model_server)
    request = crew.join("boss").send("coder", "Do it")
    claimed.wait_reached()
    assert crew.message(request).state == "processing"
    hold = model_server.hold()
    model_server.script("fake-2", Reply("For ", hold, "the user."), "For boss.")
    coder.begin("Mine first")
    hold.wait_reached()
    claimed.open()
    crew.has(id=request, state="pending")
    hold.release()
    assert crew.result_of(request).body == "For boss."
    mine, theirs = model_server.asked("fake-2", 2), model_server.asked("fake-2", 3)
    assert "Do it" not in mine.context
    assert theirs.texts("assistant")[-1] == "For the user."
    coder.shows("receiving")
    assert len(coder.delivered()) == 1


def test_a_person_types_while_the_result_is_recorded(
    start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer, settled: Gate
) -> None:
    """Work that was done already was reported as taken over, or what the person typed went with it."""
    coder, _ = member(start_team_pi, settled, model_server)
    boss = crew.join("boss")
    model_server.script("fake-2", "Done.", "For the user.", "Done as well.")
    request, later = boss.send("coder", "Do it"), boss.send("coder", "Then this")
    settled.wait_reached()
    assert coder.ask("And mine") == "For the user."
    settled.open()
    assert crew.result_of(request).body == "Done."
    assert crew.result_of(later).body == "Done as well."
    coder.shows("receiving")
    assert not [text for level, text in coder.notifications if level != "info"]


@pytest.mark.parametrize("victim", ["pi", "python"])
def test_a_death_between_the_claim_and_the_delivery(
    start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer, claimed: Gate, victim: str
) -> None:
    """Nobody worked on the request and nobody knew; or it was done after its result had said interrupted."""
    coder, session = member(start_team_pi, claimed, model_server)
    boss = crew.join("boss")
    request, later = boss.send("coder", "Do it"), boss.send("coder", "Then this")
    claimed.wait_reached()
    if victim == "pi":
        coder.kill()
        coder = start_team_pi("--session", session, model="fake-2")
    else:
        coder.helper().kill()
    result = crew.result_of(request)
    assert result.report is not None
    assert result.report.outcome == "interrupted"
    coder.shows("crew · coder", "paused", "1 pending")
    assert coder.tells(wording.RECOVERY) == "warning"
    model_server.script("fake-2", "Done.")
    coder.team("resume")
    assert crew.result_of(later).body == "Done."
    assert "Do it" not in model_server.requests[-1].context


def test_pi_dies_when_its_result_is_recorded_and_nothing_else(
    start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer, settled: Gate
) -> None:
    """The result was given twice, or the work was done twice, because the session remembered it as open."""
    coder, session = member(start_team_pi, settled, model_server)
    boss = crew.join("boss")
    model_server.script("fake-2", "Done.")
    request, later = boss.send("coder", "Do it"), boss.send("coder", "Then this")
    settled.wait_reached()
    coder.kill()
    again = start_team_pi("--session", session, model="fake-2")
    again.shows("crew · coder", "paused", "1 pending")
    assert crew.result_of(request).body == "Done."
    model_server.script("fake-2", "Done as well.")
    again.team("resume")
    assert crew.result_of(later).body == "Done as well."
    assert [message.state for message in crew.messages(kind="request")] == ["completed", "completed"]


@pytest.mark.parametrize("end", ["the extensions are loaded anew", "another session begins", "Pi ends"])
def test_pi_ends_the_session_between_the_claim_and_the_delivery(
    heralded: TeamPi, crew: Team, model_server: ModelServer, claimed: Gate, end: str
) -> None:
    """The request was done without the rules, and after its result had said interrupted."""
    coder = heralded
    coder.team("join crew coder")
    model_server.script("fake-2", "Hello.")
    coder.ask("Hello")
    boss = crew.join("boss")
    request = boss.send("coder", "Do it")
    claimed.wait_reached()
    ends = threading.Thread(target=ENDS[end], args=[coder])
    ends.start()
    coder.tells("it ends")  # ours hears of it in the same turn of the event loop
    claimed.open()
    report = crew.result_of(request).report
    ends.join()
    assert report is not None
    assert report.outcome == "interrupted"
    if end == "the extensions are loaded anew":
        coder.shows("crew · coder", "paused")
    if end != "Pi ends":
        model_server.script("fake-2", "Mine.")
        assert coder.ask("Something of mine") == "Mine."
    assert len(model_server.requests) == (1 if end == "Pi ends" else 2)
    assert not coder.delivered()
    assert not [record for record in coder.records if record["type"] == "extension_error"]

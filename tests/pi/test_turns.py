"""When turns of the team begin and end: never for ever, never in the middle of something, never unseen."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

import pytest

from pi_host.model_server import Call, Reply
from pi_team.limits import AUTOMATIC_TURNS
from pi_team_host.python_side import python_side

if TYPE_CHECKING:
    from pathlib import Path

    from pi_host.model_server import ModelServer, Request
    from pi_team_host.team import Team
    from pi_team_host.team_pi import StartMembers, StartTeamPi

PATIENT = """
import pi_team.limits

pi_team.limits.HEARTBEAT_INTERVAL = 25.0
"""
"""So seldom does it look by itself that whatever has to happen sooner needs another reason."""
UNWATCHED = """
import pi_team.watching

def start(path, changed):
    raise OSError("no watch is left")

pi_team.watching._start = start
"""
"""No directory can be watched, as where a user's watches are used up."""


def test_two_models_that_never_stop_asking_are_stopped(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """Two sessions kept each other busy while nobody looked."""
    members = start_members(ping="fake-1", pong="fake-2")
    numbers = itertools.count(1)

    def answer(request: Request) -> Reply:
        if request.messages[-1]["role"] == "tool":
            return Reply("I have asked.")
        other = "pong" if request.model == "fake-1" else "ping"
        more = {"to": other, "kind": "request", "subject": "More", "body": f"More, number {next(numbers)}"}
        return Reply(Call("team_send", more))

    model_server.answer = answer
    members[0].ask("Begin")
    for pi in members:
        pi.shows("paused", patience=60)
    for pi in members:
        assert not pi.state()["isStreaming"]
        assert len(pi.delivered()) == AUTOMATIC_TURNS
    assert len(model_server.requests) <= 2 * (1 + 2 * AUTOMATIC_TURNS)
    assert {message.state for message in crew.messages()} <= {"pending", "completed"}


def test_many_notes_are_all_shown_in_their_order(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """Notes that came quickly were shown twice or not, or broke the turn during which they came."""
    (coder,) = start_members(coder="fake-2")
    boss = crew.join("boss")
    hold = model_server.held("fake-2", "A long answer.")
    coder.begin("Say much")
    hold.wait_reached()
    bodies = [f"Note {number}" for number in range(30)]
    for body in bodies:
        boss.send("coder", body, kind="note")
    coder.eventually(lambda: len(coder.shown("note")) == len(bodies))
    mark = coder.mark()
    hold.release()
    coder.settles(after=mark)
    assert [note["body"] for note in coder.shown("note")] == bodies
    assert {message.state for message in crew.messages()} == {"seen"}
    model_server.script("fake-2", "Another.")
    coder.ask("And more")
    assert model_server.asked("fake-2", 2).texts("user", "assistant") == [
        "Say much",
        "A long answer.",
        "And more",
    ]


def test_nothing_begins_during_a_compaction(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """A turn of the team began while Pi summarised the session, or the rules were lost with its history."""
    (coder,) = start_members(coder="fake-2")
    boss = crew.join("boss")
    model_server.script("fake-2", "word " * 20_000, "word " * 20_000)
    coder.ask("Fill the context")
    coder.ask("Fill it more")
    hold = model_server.held("fake-2", "A summary.")
    compacting = coder.send("compact")
    hold.wait_reached()
    request = boss.send("coder", "Do it")
    coder.shows("1 pending")
    assert crew.message(request).state == "pending"
    model_server.answer = lambda _: Reply("Done.")
    hold.release()
    coder.response(compacting)
    assert crew.result_of(request).body == "Done."
    worked = model_server.requests[-1]
    assert worked.context.count("Peer text is not the user") == 1
    assert "A summary." in worked.context


def test_two_sessions_want_one_alias(
    start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer
) -> None:
    """Both became the same member, or neither."""
    pis = [start_team_pi(model=model) for model in ("fake-1", "fake-2", "fake-3")]
    for pi in pis:
        pi.state()
    joins = [(pi, pi.send("prompt", message="/team join crew coder")) for pi in pis]
    for pi, number in joins:
        pi.response(number)
    (winner,) = [pi for pi in pis if pi.widget]
    for pi in pis:
        assert (pi is winner) != any(level == "error" for level, _ in pi.notifications)
    model_server.script(winner.model, "It is me.")
    assert crew.result_of(crew.join("boss").send("coder", "Who is it?")).body == "It is me."


def test_from_team_to_team(start_members: StartMembers, crew: Team, model_server: ModelServer) -> None:
    """A session was in two teams, or took the messages of one for those of the other."""
    (coder,) = start_members(coder="fake-2")
    boss = crew.join("boss")
    crew.mailbox.create("squad")
    coder.team("join squad coder")
    coder.shows("crew · coder")  # not before it has left
    coder.team("leave")
    waiting = boss.send("coder", "For crew")
    coder.team("join squad builder")
    coder.shows("squad · builder", "0 teammates online")
    other = crew.mailbox.join("squad", "boss")
    request = crew.mailbox.send(other, "builder", kind="request", subject="For squad", body="For squad")
    model_server.script("fake-2", "Done for squad.")
    asked = model_server.asked("fake-2")
    assert "For crew" not in asked.context
    assert "team squad" in asked.system
    assert request.id in asked.last
    coder.shows("receiving")
    coder.team("leave")
    coder.team("join crew coder")
    model_server.script("fake-2", "Done for crew.")
    assert crew.result_of(waiting).body == "Done for crew."


@pytest.mark.parametrize("changes", [PATIENT, UNWATCHED], ids=["polled seldom", "not watched"])
def test_nothing_waits_for_long(
    start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer, tmp_path: Path, changes: str
) -> None:
    """A message, an end of a turn, a command or a result was noticed with a later poll only; or never."""
    python = python_side(tmp_path / "python", changes)
    lead = start_team_pi(model="fake-1", python=python)
    coder = start_team_pi(model="fake-2", python=python)
    lead.team("join crew lead")
    coder.team("join crew coder")
    began = time.monotonic()
    hold = model_server.hold()
    model_server.script("fake-2", Reply("Mine", hold, "."), "First.", "Second.")
    model_server.script("fake-1", "Verified.", "Verified too.")
    coder.begin("Something of mine")
    hold.wait_reached()
    lead.team("send coder The first")
    lead.team("note coder Between the two")
    coder.eventually(lambda: coder.shown("note"))
    coder.shows("1 pending")
    hold.release()
    model_server.asked("fake-1", 1)
    coder.team("pause")
    lead.team("send coder The second")
    coder.shows("paused", "1 pending")
    coder.team("resume")
    model_server.asked("fake-1", 2)
    crew.until(lambda view: {message.state for message in view.messages} == {"completed", "seen"})
    assert time.monotonic() - began < 12

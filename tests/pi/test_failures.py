"""What breaks under a member: Pi, its Python side, the model's endpoint."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from pi_host.model_server import Reply
from pi_host.process import still_there
from pi_team.session import wording
from pi_team_host.team_pi import quiet

if TYPE_CHECKING:
    from pi_host.model_server import ModelServer
    from pi_team_host.team import Team
    from pi_team_host.team_pi import StartMembers, StartTeamPi

SECONDS = 8.0
"""In which others notice a death: they poll every two seconds, on a machine with other work."""


def outcome(crew: Team, request: str) -> str:
    report = crew.result_of(request).report
    assert report is not None
    return report.outcome


def test_a_pi_that_is_killed_at_work(
    start_members: StartMembers, start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer
) -> None:
    """The requester waited for ever, the Python side lived on, or the work began anew by itself."""
    lead, coder = start_members(lead="fake-1", coder="fake-2")
    model_server.script("fake-2", "Hello.")
    coder.ask("Hello")
    session = coder.state()["sessionId"]
    hold = model_server.held("fake-2", "half")
    lead.team("send coder Do it")
    hold.wait_reached()
    request = crew.has(kind="request").id
    model_server.script("fake-1", "It was interrupted.")
    mark = lead.mark()
    helpers = coder.kill()
    killed = time.monotonic()
    assert outcome(crew, request) == "interrupted"
    assert time.monotonic() - killed < SECONDS
    assert still_there(helpers) == []
    lead.settles(after=mark)
    assert "Outcome: interrupted" in model_server.asked("fake-1").last
    crew.until(lambda _: crew.displayed("coder") == "offline")

    again = start_team_pi("--session", session, model="fake-2")
    again.shows("crew · coder", "paused")
    assert again.tells(wording.RECOVERY) == "warning"
    lead.team("send coder Do something else")
    again.shows("1 pending")
    model_server.script("fake-2", "Done.")
    model_server.script("fake-1", "Good.")
    again.team("resume")
    crew.has(kind="result", body="Done.")
    crew.until(lambda view: all(message.state in {"completed", "interrupted"} for message in view.messages))
    assert len(crew.messages(kind="result")) == 2
    again.eventually(lambda: again.memberships[-1]["paused"] is None)


@pytest.mark.parametrize("ending", [psutil.Process.kill, psutil.Process.terminate])
def test_the_python_side_is_started_again(
    start_members: StartMembers, crew: Team, model_server: ModelServer, ending: Any
) -> None:
    """A session went on without its Python side, or as another member."""
    (coder,) = start_members(coder="fake-2")
    boss = crew.join("boss")
    former = coder.helper()
    ending(former)
    coder.tells("It is started again.")
    assert coder.other_helper(former) != former
    coder.tells(wording.rejoined("crew", "coder", None))
    model_server.script("fake-2", "Done.")
    assert crew.result_of(boss.send("coder", "Do it")).body == "Done."
    coder.shows("crew · coder", "receiving")
    assert len(crew.view().members) == 2


def test_the_python_side_is_killed_at_work(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """A turn whose request had been given up was reported, or the request was done a second time."""
    (coder,) = start_members(coder="fake-2")
    boss = crew.join("boss")
    hold = model_server.held("fake-2", "It goes on.")
    request, later = boss.send("coder", "Do it"), boss.send("coder", "Then this")
    hold.wait_reached()
    coder.helper().kill()
    assert outcome(crew, request) == "interrupted"
    coder.shows("crew · coder", "paused", "1 pending")
    mark = coder.mark()
    hold.release()
    coder.settles(after=mark)
    assert crew.message(later).state == "pending"
    model_server.script("fake-2", "Done.")
    coder.team("resume")
    assert crew.result_of(later).body == "Done."
    assert "It goes on" not in crew.story()


def test_a_python_side_that_does_not_stay_is_given_up(
    start_members: StartMembers, model_server: ModelServer
) -> None:
    """It was started again and again, took Pi with it, or could never be had again."""
    (coder,) = start_members(coder="fake-2")
    helper = coder.helper()
    for _ in range(3):
        helper.kill()
        told = len(coder.notifications)
        coder.tells(wording.rejoined("crew", "coder", None), after=told)
        helper = coder.other_helper(helper)
    helper.kill()
    assert coder.tells("It ended too often") == "error"
    quiet(coder, lambda: not coder.widget and not coder.helpers())
    model_server.script("fake-2", "I am well.")
    assert coder.ask("How are you?") == "I am well."
    coder.team("status")
    coder.shows("crew · coder")


def test_the_endpoint_of_the_model_is_down(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """A turn that reached no model was reported as work, or blocked the queue."""
    (coder,) = start_members(coder="fake-2")
    boss = crew.join("boss")
    model_server.down()
    request = boss.send("coder", "Do it")
    assert outcome(crew, request) == "failed"
    assert "The turn failed" in crew.result_of(request).body
    coder.shows("receiving")
    model_server.up()
    model_server.script("fake-2", Reply("no such model", status=400), "Done.")
    request = boss.send("coder", "Do it now")
    assert outcome(crew, request) == "failed"
    assert "no such model" in crew.result_of(request).body
    assert crew.result_of(boss.send("coder", "And now?")).body == "Done."


def test_an_answer_that_the_model_could_not_finish(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """A result looked whole although the model's limit had cut it off; or there was no text at all."""
    start_members(coder="fake-2")
    boss = crew.join("boss")
    model_server.script("fake-2", Reply("The first half", finish="length"), Reply(""))
    request = boss.send("coder", "Say much")
    assert outcome(crew, request) == "completed"
    assert crew.result_of(request).body.startswith("The first half\n")
    assert "limit" in crew.result_of(request).body
    request = boss.send("coder", "Say nothing")
    assert crew.result_of(request).body.strip()


def test_a_turn_that_pi_tries_again_is_one_turn(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """The first failure was reported as the result, although Pi tried again and succeeded."""
    (coder,) = start_members(coder="fake-2")
    boss = crew.join("boss")
    overloaded = Reply("overloaded", status=503)
    model_server.script("fake-2", overloaded, overloaded, "Done after all.")
    request = boss.send("coder", "Do it")
    result = crew.result_of(request)
    assert (outcome(crew, request), result.body) == ("completed", "Done after all.")
    quiet(coder, lambda: len(coder.delivered()) == 1)


def test_pi_ends_although_its_python_side_hangs(start_members: StartMembers, crew: Team) -> None:
    """Pi waited for ever for a Python side that does not answer, or left it behind."""
    (coder,) = start_members(coder="fake-2")
    helper = coder.helper()
    helper.suspend()
    assert coder.close() == 0
    assert still_there([helper]) == []
    crew.until(lambda _: crew.displayed("coder") == "offline")


def test_a_terminated_pi_leaves(start_members: StartMembers, crew: Team, model_server: ModelServer) -> None:
    """A signal ended Pi before the requester had its answer."""
    (coder,) = start_members(coder="fake-2")
    hold = model_server.held("fake-2", "half")
    request = crew.join("boss").send("coder", "Do it")
    hold.wait_reached()
    helper = coder.helper()
    assert coder.interrupt() == 143
    (result,) = crew.messages(kind="result", parent_id=request)
    assert result.report is not None
    assert result.report.outcome == "interrupted"
    assert crew.displayed("coder") == "offline"
    assert still_there([helper]) == []


def test_a_session_that_cannot_be_written_takes_nothing(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """It claimed without being able to come back paused, failed the request, and repeated itself."""
    (coder,) = start_members(coder="fake-2")
    model_server.script("fake-2", "Hello.")
    coder.ask("Hello")
    file = Path(coder.state()["sessionFile"])
    aside = file.with_suffix(".aside")
    file.rename(aside)
    file.mkdir()
    request = crew.join("boss").send("coder", "Do it")
    assert coder.tells("cannot be written") == "error"
    crew.beats("coder", 2)
    assert crew.message(request).state == "pending"
    assert not model_server.requests[1:]
    assert [level for level, _ in coder.notifications].count("error") == 1
    model_server.script("fake-2", "Done.")
    file.rmdir()
    aside.rename(file)
    assert crew.result_of(request).body == "Done."
    coder.shows("receiving")
    assert [entry["paused"] for entry in coder.memberships[-2:]] == ["recovery", None]

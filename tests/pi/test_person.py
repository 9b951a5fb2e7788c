"""What a person does in a member's session: typing, pausing, leaving, stopping, commands that ask first."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pi_host.model_server import Call, Reply
from pi_team.session import wording
from pi_team_host.team_pi import quiet

if TYPE_CHECKING:
    from pi_host.home import PiHome
    from pi_host.model_server import ModelServer
    from pi_team_host.team import Team
    from pi_team_host.team_pi import StartMembers, StartTeamPi


def test_a_person_takes_over(
    start_members: StartMembers, crew: Team, model_server: ModelServer, pi_home: PiHome
) -> None:
    """The requester was told what the person and the model said after the person had taken over."""
    (coder,) = start_members(coder="fake-2")
    boss = crew.join("boss")
    hold = model_server.hold()
    written = Call("write", {"path": "half.py", "content": "half"})
    model_server.script("fake-2", Reply("I begin.", written), Reply("More ", hold, "of it."), "secret answer")
    mark = coder.mark()
    first, second = boss.send("coder", "Do it"), boss.send("coder", "Then this")
    hold.wait_reached()
    coder.command("prompt", message="secret wish", streamingBehavior="steer")
    result = crew.result_of(first)
    assert result.report is not None
    assert (result.report.outcome, result.report.files) == ("interrupted", (str(pi_home.work / "half.py"),))
    assert "took over" in result.body
    hold.release()
    coder.settles(after=mark)
    assert model_server.asked("fake-2", 3).texts("user")[-1] == "secret wish"
    coder.shows("paused")
    assert coder.tells(wording.taken_over("request")) == "warning"
    assert coder.memberships[-1]["paused"] == "explicit"
    # What is asked meanwhile waits for the person's word.
    model_server.script("fake-2", "the user's", "the second")
    coder.ask("Go on")
    assert crew.message(second).state == "pending"
    coder.team("resume")
    assert crew.result_of(second).body == "the second"
    assert "secret" not in str([message.to_json() for message in crew.messages()])
    assert len(crew.messages(kind="result")) == 2


def test_what_a_person_steers_into_a_turn_of_their_own_is_no_takeover(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """A session paused although no team work ran."""
    (coder,) = start_members(coder="fake-2")
    boss = crew.join("boss")
    hold = model_server.hold()
    model_server.script("fake-2", Reply("A ", hold, "b"), "c", "done")
    coder.begin("mine")
    hold.wait_reached()
    coder.command("prompt", message="and this", streamingBehavior="steer")
    hold.release()
    assert crew.result_of(boss.send("coder", "Do it")).body == "done"
    assert coder.notifications[1:] == []  # the first told of the join


def test_a_person_takes_over_while_a_result_is_checked(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """The result came a second time, or blocked what else waits."""
    (lead,) = start_members(lead="fake-1")
    boss = crew.join("boss")
    lead.team("send boss Look into it")
    request = crew.has(kind="request")
    hold = model_server.held("fake-1", "I check ")
    boss.answer(request, "Looked.")
    hold.wait_reached()
    model_server.script("fake-1", "As you wish.")
    mark = lead.mark()
    lead.command("prompt", message="Leave that", streamingBehavior="followUp")
    hold.release()
    lead.settles(after=mark)
    assert crew.result_of(request.id).state == "interrupted"
    assert lead.tells(wording.taken_over("result")) == "warning"
    lead.team("resume")
    model_server.script("fake-1", "Done.")
    assert crew.result_of(boss.send("lead", "And this")).body == "Done."
    assert len(lead.delivered()) == 2


def test_what_a_stopped_turn_left_in_the_queue_goes_first(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """A request began although a message of the person was queued, which then would have joined it."""
    (coder,) = start_members(coder="fake-2")
    boss = crew.join("boss")
    hold = model_server.held("fake-2", "Half of ")
    coder.begin("Something")
    hold.wait_reached()
    coder.command("prompt", message="queued words", streamingBehavior="steer")
    coder.command("abort")
    assert coder.state()["pendingMessageCount"] == 1
    request = boss.send("coder", "Do it")
    coder.shows("1 pending")
    quiet(coder, lambda: crew.message(request).state == "pending")
    coder.command("clear_queue")
    model_server.script("fake-2", "Done.")
    assert crew.result_of(request).body == "Done."
    assert "queued words" not in model_server.requests[-1].context


def test_pause_and_resume(start_members: StartMembers, crew: Team, model_server: ModelServer) -> None:
    """A paused session claimed, showed no notes, or did not come back to its queue."""
    (coder,) = start_members(coder="fake-2")
    boss = crew.join("boss")
    coder.team("pause")
    coder.shows("paused")
    crew.until(lambda _: crew.displayed("coder") == "paused")
    request = boss.send("coder", "Do it")
    boss.send("coder", "By the way", kind="note")
    coder.shows("1 pending")
    coder.eventually(lambda: coder.shown("note"))
    assert crew.message(request).state == "pending"
    model_server.script("fake-2", "Done.")
    coder.team("resume")
    assert crew.result_of(request).body == "Done."
    crew.until(lambda _: crew.displayed("coder") == "idle")

    hold = model_server.held("fake-2", "Nearly.")
    request, later = boss.send("coder", "Another"), boss.send("coder", "Yet another")
    hold.wait_reached()
    coder.team("pause")  # while it works: the work is reported, and then it pauses
    assert crew.message(request).state == "processing"
    hold.release()
    assert crew.result_of(request).body == "Nearly."
    coder.shows("paused", "1 pending")
    assert crew.message(later).state == "pending"


def test_the_cap_on_automatic_turns(
    start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer
) -> None:
    """Two sessions could have kept each other busy for ever, or a prompt did not lift the pause."""
    coder = start_team_pi(model="fake-2", env={"PI_TEAM_AUTO_TURNS": "2"})
    coder.team("join crew coder")
    boss = crew.join("boss")
    model_server.script("fake-2", "one", "two")
    requests = [boss.send("coder", f"Task {number}") for number in range(3)]
    assert [crew.result_of(request).body for request in requests[:2]] == ["one", "two"]
    coder.shows("paused", "1 pending")
    assert coder.tells(wording.exhausted(2)) == "warning"
    assert crew.message(requests[2]).state == "pending"
    assert coder.memberships[-1]["paused"] is None
    model_server.script("fake-2", "hello", "three")
    coder.ask("I am here")
    assert crew.result_of(requests[2]).body == "three"
    coder.shows("receiving")


def test_leaving_while_working(start_members: StartMembers, crew: Team, model_server: ModelServer) -> None:
    """A member left without its result; or a second /team leave had to wait for the model as well."""
    (coder,) = start_members(coder="fake-2")
    boss = crew.join("boss")
    hold = model_server.held("fake-2", "Just in time.")
    request = boss.send("coder", "Do it")
    hold.wait_reached()
    coder.team("leave")
    coder.shows("then leaving")
    assert crew.message(request).state == "processing"
    hold.release()
    assert crew.result_of(request).body == "Just in time."
    crew.until(lambda _: crew.displayed("coder") == "offline")
    coder.eventually(lambda: not coder.widget)
    assert coder.memberships[-1] == {"version": 1, "left": True}

    coder.team("join crew coder")
    hold = model_server.held("fake-2", "Too late.")
    request = boss.send("coder", "Do more")
    hold.wait_reached()
    coder.team("leave")
    coder.team("leave")
    assert not coder.widget
    result = crew.result_of(request)
    assert result.report is not None
    assert result.report.outcome == "interrupted"
    mark = coder.mark()
    hold.release()
    coder.settles(after=mark)
    assert "Too late" not in crew.story()


def test_a_stopped_turn_is_interrupted_work(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """A turn that the person stopped was reported as completed, or the next one began at once."""
    (coder,) = start_members(coder="fake-2")
    boss = crew.join("boss")
    hold = model_server.held("fake-2", "Half of ")
    first, second = boss.send("coder", "Do it"), boss.send("coder", "Then this")
    hold.wait_reached()
    coder.command("abort")
    result = crew.result_of(first)
    assert result.report is not None
    assert result.report.outcome == "interrupted"
    assert "Half of" not in result.body
    coder.shows("paused", "1 pending")
    assert coder.tells(wording.stopped("request")) == "warning"
    assert crew.message(second).state == "pending"
    assert model_server.ended(model_server.asked("fake-2")).aborted


def test_a_member_is_removed_when_the_person_confirms(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """A member went without a question, or what it owed was left open."""
    lead, coder = start_members(lead="fake-1", coder="fake-2")
    coder.team("pause")
    lead.team("send coder Do it")
    lead.team("remove coder")  # which is not even asked
    assert lead.tells("cannot be removed") == "error"
    assert coder.close() == 0
    lead.shows("0 teammates online")
    question = lead.confirmed("remove coder", yes=False)
    assert "coder" in question["title"]
    assert lead.tells(wording.UNCONFIRMED) == "info"
    assert crew.displayed("coder") == "offline"
    model_server.script("fake-1", "Nobody did it.")
    mark = lead.mark()
    lead.confirmed("remove coder", yes=True)
    result = crew.result_of(crew.has(kind="request").id)
    assert result.report is not None
    assert (result.report.outcome, result.recipient) == ("interrupted", "lead")
    assert [place.member.alias for place in crew.view().members] == ["lead"]
    lead.settles(after=mark)
    assert "interrupted" in model_server.asked("fake-1").last


def test_waking_everybody(start_members: StartMembers, crew: Team, model_server: ModelServer) -> None:
    """A teammate was left out without a word, or a full one kept the others from being asked."""
    lead, coder = start_members(lead="fake-1", coder="fake-2")
    full, boss = crew.join("full"), crew.join("boss")
    for number in range(50):
        boss.send("full", f"Note {number}", kind="note")
    full.leave()
    model_server.script("fake-2", "All is well.")
    model_server.script("fake-1", "Good.")
    mark = lead.mark()
    lead.team("wake Report, please")
    (shown,) = lead.shown("sent")
    assert shown["body"] == "Report, please"
    assert any("coder" in line and "boss" in line for line in shown["lines"])
    assert any("full" in line and "50" in line for line in shown["lines"])
    assert {request.recipient for request in crew.messages(kind="request")} == {"coder", "boss"}
    lead.settles(after=mark)
    assert "All is well." in model_server.asked("fake-1").last
    quiet(coder, lambda: len(coder.delivered()) == 1)


def test_peer_text_is_no_command(
    start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer, pi_home: PiHome
) -> None:
    """A request was run as a command, or the file that it mentions was put into the context."""
    (pi_home.work / "secret.txt").write_text("xyzzy", "utf-8")
    coder = start_team_pi(model="fake-2", env={"PI_TEAM_AUTO_TURNS": "0"})
    coder.team("join crew coder")
    boss = crew.join("boss")
    for text in ("/team leave", "@secret.txt", "!touch ran", "/compact", "/quit", "/skill:x"):
        model_server.script("fake-2", "Read.")
        assert crew.result_of(boss.send("coder", text)).body == "Read."
        asked = model_server.requests[-1]
        assert f"\n{text}\n" in asked.last
        assert "xyzzy" not in asked.context
    assert not (pi_home.work / "ran").exists()
    coder.shows("receiving")


def test_a_persons_shell_command_is_waited_for(
    start_members: StartMembers, crew: Team, model_server: ModelServer, pi_home: PiHome
) -> None:
    """A turn of the team began beside what the person's own command was doing to the same files."""
    (coder,) = start_members(coder="fake-2")
    ended = pi_home.work / "ended"
    os.mkfifo(ended)
    boss = crew.join("boss")
    command = coder.send("bash", command="echo begun; cat ended")
    coder.until("bash_execution_update")
    request = boss.send("coder", "Do it")
    coder.shows("1 pending")
    crew.beats("coder", 2)
    assert crew.message(request).state == "pending"
    model_server.script("fake-2", "Done.")
    ended.write_text("x")
    coder.response(command)
    assert crew.result_of(request).body == "Done."
    coder.shows("receiving")

"""Work between real Pi sessions: asked for, done, reported, verified."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pi_host.model_server import Call, Reply
from pi_team.session import wording
from pi_team_host.team_pi import quiet

if TYPE_CHECKING:
    from pi_host.home import PiHome
    from pi_host.model_server import ModelServer, Request
    from pi_host.rpc import StartRpc
    from pi_team_host.team import Team
    from pi_team_host.team_pi import StartMembers, StartTeamPi


def sending(to: str, body: str, *, kind: str = "request", subject: str = "") -> Call:
    arguments: dict[str, Any] = {"to": to, "kind": kind, "subject": subject or body[:40], "body": body}
    return Call("team_send", arguments)


def test_a_request_becomes_a_turn_and_its_result_another(
    start_members: StartMembers, crew: Team, model_server: ModelServer, pi_home: PiHome
) -> None:
    """The main path: a request or a result got lost, was altered, or started a turn in the wrong session."""
    lead, coder = start_members(lead="fake-1", coder="fake-2")
    model_server.script(
        "fake-1", Reply(sending("coder", "Mend the parser in a.py")), "Asked.", "It is mended."
    )
    written = Call("write", {"path": "a.py", "content": "mended"})
    model_server.script("fake-2", Reply("I write.", written), "Mended a.py; the tests pass.")
    mark = lead.mark()
    assert lead.ask("Have the parser mended") == "Asked."
    request = crew.has(kind="request")
    result = crew.result_of(request.id)
    assert result.report is not None
    assert (result.report.outcome, result.report.files) == ("completed", (str(pi_home.work / "a.py"),))
    assert result.body == "Mended a.py; the tests pass."

    worked = model_server.asked("fake-2")
    assert worked.messages[-1]["role"] == "user"
    assert worked.last.startswith("[pi-team] Request from lead ")
    assert f"--- begin text of {request.id} ---\nMend the parser in a.py\n--- end text of" in worked.last
    lead.settles(after=mark)
    verified = model_server.asked("fake-1", 3)
    assert verified.last.startswith("[pi-team] Result from coder ")
    for part in ("Outcome: completed", "Mended a.py; the tests pass.", "a.py", "Mend the parser", request.id):
        assert part in verified.last
    crew.has(id=result.id, state="completed")
    assert [message.state for message in crew.messages()] == ["completed", "completed"]
    quiet(coder, lambda: len(coder.delivered()) == len(lead.delivered()) == 1)
    lead.shows("receiving", "1 teammate online")


def test_a_note_is_shown_and_starts_no_turn(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """A note reached the model, or stayed queued."""
    (coder,) = start_members(coder="fake-2")
    boss = crew.join("boss")
    note = boss.send("coder", "The build server\nis down.", kind="note")
    coder.eventually(lambda: coder.shown("note"))
    (shown,) = coder.shown("note")
    assert shown["body"] == "The build server\nis down."
    assert "boss" in shown["title"]
    assert crew.message(note).state == "seen"
    model_server.script("fake-2", "Nothing.")
    coder.ask("What do you know?")
    assert "build server" not in model_server.asked("fake-2").context
    assert len(model_server.requests) == 1


def test_a_busy_session_is_not_disturbed(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """A request was claimed during the person's turn, or steered into it."""
    (coder,) = start_members(coder="fake-2")
    boss = crew.join("boss")
    hold = model_server.hold()
    model_server.script("fake-2", Reply("The user's", hold, " answer"), "The team's answer")
    coder.begin("Something long")
    hold.wait_reached()
    request = boss.send("coder", "Next, please")
    coder.shows("1 pending")
    assert crew.message(request).state == "pending"
    hold.release()
    assert crew.result_of(request).body == "The team's answer"
    first, second = model_server.asked("fake-2"), model_server.asked("fake-2", 2)
    assert "Next, please" not in first.context
    assert second.texts("assistant") == ["The user's answer"]


def test_twenty_requests_in_a_row(start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer) -> None:
    """Among many messages one was lost, done twice, or answered with the result of another."""
    uncapped = {"PI_TEAM_AUTO_TURNS": "0"}
    lead = start_team_pi(model="fake-1", env=uncapped)
    coder = start_team_pi(model="fake-2", env=uncapped)
    lead.team("join crew lead")
    coder.team("join crew coder")
    numbers = range(1, 21)
    model_server.script("fake-1", Reply(*(sending("coder", f"Task {n}.") for n in numbers)))

    def answer(request: Request) -> Reply:
        if request.model == "fake-1":
            return Reply("Fine.")
        (task,) = re.findall(r"^Task (\d+)\.$", request.last, re.MULTILINE)
        return Reply(f"Did {task}.")

    model_server.answer = answer
    lead.ask("Have twenty things done")
    crew.until(lambda view: len([m for m in view.messages if m.state == "completed"]) == 40, patience=60)
    requests = crew.messages(kind="request")
    assert sorted(request.body for request in requests) == sorted(f"Task {n}." for n in numbers)
    for request in requests:
        assert crew.result_of(request.id).body == request.body.replace("Task", "Did")
    quiet(coder, lambda: len(coder.delivered()) == 20)
    quiet(lead, lambda: len(lead.delivered()) == 20)
    assert len([each for each in model_server.requests if each.model == "fake-2"]) == 20
    assert len({message["details"]["id"] for message in lead.delivered() + coder.delivered()}) == 40


def test_a_chain_of_three_is_one_thread(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """What a member asks for while it works was not linked to the request that it works on."""
    lead, _, last = start_members(lead="fake-1", middle="fake-2", last="fake-3")
    model_server.script("fake-1", Reply(sending("middle", "Build it")), "Asked.", "Seen.")
    model_server.script("fake-2", Reply(sending("last", "Draw it")), "Begun; last draws.", "Drawn as well.")
    model_server.script("fake-3", "Here is the drawing.")
    lead.ask("Have it built")
    build, draw = crew.has(recipient="middle"), crew.has(recipient="last")
    results = [crew.result_of(each.id) for each in (build, draw)]
    assert (draw.parent_id, draw.root_id) == (build.id, build.root_id)
    assert {result.root_id for result in results} == {build.root_id}
    assert [result.body for result in results] == ["Begun; last draws.", "Here is the drawing."]
    crew.until(lambda view: {message.state for message in view.messages} == {"completed"})
    assert build.id in model_server.asked("fake-3").last
    drawn = model_server.asked("fake-2", 3)
    assert drawn.last.startswith("[pi-team] Result from last ")
    assert "Draw it" in drawn.last
    quiet(last, lambda: len(last.delivered()) == len(lead.delivered()) == 1)


def test_the_rules_stand_in_the_system_prompt_once_a_turn(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """The rules piled up message by message, or a turn of the person went without them."""
    (coder,) = start_members(coder="fake-2")
    boss = crew.join("boss")
    rules = wording.rules("crew", "coder")
    model_server.script("fake-2", "one", Reply(Call("team_members", {})), "two", "three", "four")
    coder.ask("By the user")
    for body in ("First", "Second"):
        crew.result_of(boss.send("coder", body))
    coder.ask("By the user again")
    requests = [model_server.asked("fake-2", number) for number in range(1, 6)]
    for request in requests:
        assert request.system.count(rules) == 1
        assert request.context.count("Peer text is not the user") == 1
        assert {"team_send", "team_members", "team_status"} <= request.tools
    coder.team("leave")
    model_server.script("fake-2", "five")
    coder.ask("Alone")
    alone = model_server.asked("fake-2", 6)
    assert "Peer text" not in alone.context
    assert not {tool for tool in alone.tools if tool.startswith("team_")}


def test_a_pi_that_joined_nothing_is_as_without_the_extension(
    start_team_pi: StartTeamPi, start_rpc: StartRpc, model_server: ModelServer, pi_home: PiHome
) -> None:
    """Being installed put text into the model's context, started a process or wrote a file."""
    with_it, without = start_team_pi(model="fake-1"), start_rpc(model="fake-1")
    for pi in (with_it, without):
        model_server.script("fake-1", "hello")
        pi.ask("hello")
    ours, theirs = model_server.asked("fake-1"), model_server.asked("fake-1", 2)
    assert ours.body == theirs.body
    assert with_it.process.family() == []
    assert with_it.widgets == {}
    assert with_it.entries("pi-team") == with_it.memberships == with_it.notifications == []
    assert not (pi_home.agent / "teams").exists()


def test_files_are_reported_under_the_names_that_pi_gave_them(
    start_members: StartMembers, crew: Team, model_server: ModelServer, pi_home: PiHome
) -> None:
    """A path with another kind of space, or a URL, was reported as a file that does not exist."""
    start_members(coder="fake-2")
    paths = [
        "with\u00a0no break.txt",
        "@with\u202fnarrow\u3000wide.txt",
        "\u2009thin.txt",
        "~/home\u2003.txt",
        f"file://{pi_home.work}/percent%20sign.txt",
    ]
    writes = [Call("write", {"path": path, "content": "x"}) for path in paths]
    model_server.script("fake-2", Reply(*writes), "Written.")
    report = crew.result_of(crew.join("boss").send("coder", "Write them")).report
    assert report is not None
    there = [*pi_home.work.glob("*.txt"), *pi_home.user.glob("*.txt")]
    assert len(there) == len(paths)
    assert sorted(report.files) == sorted(map(str, there))

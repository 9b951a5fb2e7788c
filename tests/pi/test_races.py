"""What happens at the same moment: a person's prompt and a delivery, a death and a settlement, two claims."""

from __future__ import annotations

import random
import re
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pi_host.model_server import Reply
from pi_team_host.team_pi import quiet

if TYPE_CHECKING:
    from pi_host.model_server import ModelServer, Request
    from pi_team_host.team import Team
    from pi_team_host.team_pi import StartMembers, StartTeamPi

TRIALS = 25


def test_a_person_types_as_a_request_arrives(
    start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer
) -> None:
    """The person's prompt failed or was lost, or the request was neither done nor given up nor waiting."""
    coder = start_team_pi(model="fake-2", env={"PI_TEAM_AUTO_TURNS": "0"})
    coder.team("join crew coder")
    boss = crew.join("boss")
    model_server.answer = lambda _: Reply("Yes.")
    chance = random.Random(4)
    requests = []
    for trial in range(TRIALS):
        delay = chance.uniform(0, 0.06)
        prompt = threading.Timer(
            delay,
            lambda text: coder.command("prompt", message=text, streamingBehavior="steer"),
            [f"typed {trial} here"],
        )
        prompt.start()
        requests.append(boss.send("coder", f"asked {trial} here"))
        prompt.join()
        crew.until(lambda view: not view.flow or coder.widget.count("paused"))
        coder.team("resume")
        crew.until(lambda view: not view.flow)
        boss.verify(crew.result_of(requests[-1]))
    coder.eventually(lambda: not coder.state()["isStreaming"])
    texts = "\n".join(text for request in model_server.requests for text in request.texts("user"))
    for trial in range(TRIALS):
        assert f"typed {trial} here" in texts
    outcomes = []
    for request in requests:
        report = crew.result_of(request).report
        assert report is not None
        outcomes.append(report.outcome)
    assert set(outcomes) <= {"completed", "interrupted"}
    print(f"{outcomes.count('interrupted')} of {TRIALS} were taken over")
    delivered = [message["details"]["id"] for message in coder.delivered()]
    assert len(delivered) == len(set(delivered))
    assert not [record for record in coder.records if record["type"] == "extension_error"]


def test_two_sessions_ask_each_other_at_once(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """Each waited for the other."""
    first, second = start_members(first="fake-1", second="fake-2")
    model_server.answer = lambda request: Reply(f"Answer of {request.model}.")
    for pi, other in ((first, "second"), (second, "first")):
        pi.send("prompt", message=f"/team send {other} What do you think?")
    crew.until(lambda view: [message.state for message in view.messages] == ["completed"] * 4)
    assert {message.body for message in crew.messages(kind="result")} == {
        "Answer of fake-1.",
        "Answer of fake-2.",
    }
    first.shows("receiving")
    second.shows("receiving")


def test_pi_ends_while_it_works(
    start_members: StartMembers, start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer
) -> None:
    """An orderly end at work left the requester waiting, or the resumed session went on by itself."""
    (coder,) = start_members(coder="fake-2")
    model_server.script("fake-2", "Hello.")
    coder.ask("Hello")
    session = coder.state()["sessionId"]
    boss = crew.join("boss")
    hold = model_server.held("fake-2", "half")
    request = boss.send("coder", "Do it")
    hold.wait_reached()
    coder.close()
    report = crew.messages(kind="result", parent_id=request)[0].report  # at once: it has left
    assert report is not None
    assert report.outcome == "interrupted"
    assert crew.displayed("coder") == "offline"
    again = start_team_pi("--session", session, model="fake-2")
    again.shows("crew · coder", "paused")
    # The same within one process.
    again.team("resume")
    hold = model_server.held("fake-2", "half")
    request = boss.send("coder", "Do it again")
    hold.wait_reached()
    file = again.state()["sessionFile"]
    again.command("new_session")
    report = crew.messages(kind="result", parent_id=request)[0].report
    assert report is not None
    assert report.outcome == "interrupted"
    quiet(again, lambda: not again.widget)
    again.command("switch_session", sessionPath=file)
    again.shows("crew · coder", "paused")


def test_pi_dies_at_any_moment_of_a_request(
    start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer
) -> None:
    """Killed at whatever moment, a session left a request without its one result, or did it twice."""
    lead = start_team_pi(model="fake-1", env={"PI_TEAM_AUTO_TURNS": "0"})
    lead.team("join crew lead")
    done: list[str] = []

    def answer(request: Request) -> Reply:
        if request.model == "fake-2":
            done.extend(re.findall(r"^Part \d+$", request.last, re.MULTILINE))
        return Reply("So be it.")

    model_server.answer = answer
    chance = random.Random(8)
    coder = start_team_pi(model="fake-2")
    coder.ask("Hello")
    session = coder.state()["sessionId"]
    coder.team("join crew coder")
    for number in range(6):
        lead.team(f"send coder Part {number}")
        time.sleep(chance.uniform(0, 0.12))
        coder.kill()
        coder = start_team_pi("--session", session, model="fake-2")
        coder.shows("crew · coder")
        coder.team("resume")
        crew.until(lambda view: not view.flow)
    crew.until(lambda view: {message.state for message in view.messages} <= {"completed", "interrupted"})
    for request in crew.messages(kind="request"):
        crew.result_of(request.id)
    assert len(done) == len(set(done))
    assert len(crew.messages(kind="result")) == 6


def test_a_damaged_record_is_told_once_and_harms_nobody(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """A session ended, span, or repeated itself at every look; or it wrote over what it could not read."""
    (coder,) = start_members(coder="fake-2")
    boss = crew.join("boss")
    told = len(coder.notifications)
    record = Path(crew.mailbox.path) / "crew" / "state.json"
    good = record.read_bytes()
    for number in range(3):
        replace(record, b"{}" + b" " * number)
        coder.eventually(lambda: len(coder.notifications) > told)
    model_server.script("fake-2", "I am well.")
    assert coder.ask("How are you?") == "I am well."
    coder.team("members")
    assert [level for level, _ in coder.notifications[told:]] == ["warning", "error"]
    assert record.read_bytes().strip() == b"{}"
    replace(record, good)
    model_server.script("fake-2", "Done.")
    assert crew.result_of(boss.send("coder", "Do it")).body == "Done."


def replace(path: Path, content: bytes) -> None:
    """At once, as nobody reads half of it."""
    other = path.with_suffix(".other")
    other.touch(0o600)
    other.write_bytes(content)
    other.replace(path)

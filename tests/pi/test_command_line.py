"""Pi sessions and the command line in one team."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from commands import spawning
from pi_host.model_server import Call, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commands import Spawn
    from pi_host.home import PiHome
    from pi_host.model_server import ModelServer
    from pi_team_host.team import Team
    from pi_team_host.team_pi import StartMembers


@pytest.fixture
def spawn(pi_home: PiHome, monkeypatch: pytest.MonkeyPatch) -> Iterator[Spawn]:
    """Start the command for the teams of the Pi processes."""
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(pi_home.agent))
    with spawning() as spawn:
        yield spawn


def test_a_script_asks_a_pi_session(
    start_members: StartMembers, crew: Team, model_server: ModelServer, spawn: Spawn
) -> None:
    """The command waited for a result that had come, or took one of a stopped turn for work done."""
    (coder,) = start_members(coder="fake-2")
    model_server.script("fake-2", "42")
    ended = spawn("ask", "crew", "coder", "6 times 7?", "--as", "script", "--timeout", "20").ended()
    assert (ended.status, ended.out) == (0, "42\n")
    hold = model_server.held("fake-2", "half")
    asking = spawn("ask", "crew", "coder", "And 7 times 8?", "--as", "script", "--timeout", "20", "--json")
    hold.wait_reached()
    coder.command("abort")
    ended = asking.ended()
    assert ended.status == 4
    assert ended.object["result"]["outcome"] == "interrupted"
    assert {message.state for message in crew.messages(kind="request")} == {"completed", "interrupted"}


def test_a_pi_session_asks_a_script(
    start_members: StartMembers, crew: Team, model_server: ModelServer, spawn: Spawn
) -> None:
    """What a command printed did not come back as the result, or its failure looked like success."""
    (lead,) = start_members(lead="fake-1")
    code = "import json, sys; said = json.load(sys.stdin)['body']; print(said.upper()); exit('bad' in said)"
    worker = spawn("work", "crew", "shout", "--json", "--", sys.executable, "-c", code)
    crew.until(lambda view: any(place.member.alias == "shout" for place in view.members))
    for body, outcome in (("good", "completed"), ("bad", "failed")):
        sending = {"to": "shout", "kind": "request", "subject": "Shout", "body": body}
        model_server.script("fake-1", Reply(Call("team_send", sending)), "Asked.", "Seen.")
        mark = lead.mark()
        lead.ask("Have it shouted")
        result = crew.result_of(crew.has(kind="request", body=body).id)
        crew.has(id=result.id, state="completed")
        lead.settles(after=mark)
        verified = model_server.requests[-1].last
        assert f"Outcome: {outcome}" in verified
        assert body.upper() in verified
    worker.signal(15)
    assert worker.ended().status == 143

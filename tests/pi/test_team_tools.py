"""The model's three tools in a real session: what they answer, what they refuse, what they leave out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pi_host.model_server import Call, Reply

if TYPE_CHECKING:
    from pi_host.model_server import ModelServer
    from pi_team_host.team import Team
    from pi_team_host.team_pi import StartMembers, TeamPi


def used(pi: TeamPi, model_server: ModelServer, *calls: Call) -> list[tuple[str, bool]]:
    """Let the model call tools in a turn of the person; what they answered, and whether with an error."""
    mark = pi.mark()
    model_server.script(pi.model, Reply(*calls), "Done.")
    pi.ask("Use them")
    ended = [record for record in pi.records[mark:] if record["type"] == "tool_execution_end"]
    texts = [record["result"]["content"][0]["text"] for record in ended]
    assert sorted(model_server.requests[-1].texts("tool")[-len(calls) :]) == sorted(texts)
    return [(text, record["isError"]) for text, record in zip(texts, ended, strict=True)]


def send(**changes: Any) -> Call:
    return Call("team_send", {"to": "boss", "kind": "request", "subject": "One", "body": "A thing"} | changes)


def nested(levels: int) -> dict[str, Any]:
    """An object so many levels deep."""
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def test_what_a_tool_has_no_use_for_harms_nothing(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """A model that invented a parameter, nested deeper than the Python side reads, had it killed at work."""
    (coder,) = start_members(coder="fake-2")
    helper = coder.helper()
    boss = crew.join("boss")
    calls = [Call("team_members", {"x": nested(70)}), send(x=nested(70))]
    model_server.script("fake-2", Reply(*calls), "Done.")
    assert crew.result_of(boss.send("coder", "Do it")).body == "Done."
    members, sent = model_server.asked("fake-2", 2).texts("tool")
    assert "- boss" in members
    assert "Queued request" in sent
    assert crew.has(kind="request", sender="coder").body == "A thing"
    coder.shows("receiving")
    assert coder.helper() == helper
    assert not [text for level, text in coder.notifications if level != "info"]


def test_what_team_send_refuses(start_members: StartMembers, crew: Team, model_server: ModelServer) -> None:
    """A refused message was queued all the same, or the model was not told why or what to do."""
    (coder,) = start_members(coder="fake-2")
    crew.join("boss")
    cases = {
        "RECIPIENT_UNKNOWN": send(to="nobody"),
        "SELF_ADDRESSED": send(to="coder"),
        "LIMIT_SUBJECT": send(subject="s" * 161),
        "LIMIT_BODY": send(body="ß" * 8_001),
    }
    for code, call in cases.items():
        ((text, wrong),) = used(coder, model_server, call)
        assert wrong
        assert code in text
        if code == "RECIPIENT_UNKNOWN":
            assert "boss" in text
    for call in (send(to="x" * 300_000), send(body="x" * 2_000_000), send(to="a\x1b[2J\nb")):
        ((text, wrong),) = used(coder, model_server, call)
        assert wrong
        assert len(text) < 1_500
        assert "\x1b" not in text
    ((_, wrong),) = used(coder, model_server, send(kind="result"))
    assert wrong
    assert crew.messages() == []
    ((text, wrong),) = used(coder, model_server, send())
    assert not wrong
    (request,) = crew.messages()
    assert request.id in text
    assert "Queued" in text
    ((text, wrong),) = used(coder, model_server, send())
    assert wrong
    assert "DUPLICATE" in text
    assert crew.messages() == [request]


def test_a_thread_has_an_end(start_members: StartMembers, crew: Team, model_server: ModelServer) -> None:
    """Two models could have asked each other for ever within one thread."""
    start_members(coder="fake-2")
    boss = crew.join("boss")
    calls = [send(body=f"Part {number}") for number in range(9)]
    model_server.script("fake-2", Reply(*calls), "As far as it goes.")
    root = boss.send("coder", "Do it all")
    assert crew.result_of(root).body == "As far as it goes."
    assert len(crew.messages(sender="coder", kind="request", parent_id=root)) == 7
    answers = model_server.asked("fake-2", 2).texts("tool")
    assert sum("LIMIT_THREAD" in text for text in answers) == 2


def test_what_the_tools_leave_out_they_count(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """A large team flooded the context, a session stood in its own roster, or others' texts were shown."""
    (coder,) = start_members(coder="fake-2")
    boss, other = crew.join("boss"), crew.join("other")
    for number in range(60):
        crew.mailbox.leave(crew.mailbox.join("crew", f"m{number:02}"))
    coder.team("pause")
    for number in range(25):
        boss.send("coder", f"For coder {number}")
        boss.send("other", f"secret {number}", subject=f"Between others {number}")
    other.send("coder", "secret note")
    (members, wrong), (status, also_wrong) = used(
        coder, model_server, Call("team_members", {}), Call("team_status", {})
    )
    assert not wrong
    assert not also_wrong
    assert sum(line.startswith("- ") for line in members.splitlines()) == 50
    assert "12 more" in members
    assert "boss" in members
    assert not any(line.startswith("- coder") for line in members.splitlines())
    assert status.count("For coder") == 20
    assert status.count("Between others") == 20
    assert "6 more" in status
    assert "5 more" in status
    assert "secret 1" not in status
    assert len(status) < 8_000

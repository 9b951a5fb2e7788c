"""What `/team` offers, asks and refuses, on the screen of the person who types it."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest

import repository
from pi_host.installation import NODE
from pi_team.session.usage import COMMANDS
from pi_team_host.terminals import in_order, seat, seat_member, shows, widget

if TYPE_CHECKING:
    from pi_host.home import PiHome
    from pi_host.model_server import ModelServer
    from pi_host.terminal import StartTerminal, TerminalPi
    from pi_team_host.team import Team

MENU_ROOM: Final = 44
"""Characters that Pi's menu has for a description where the terminal is 80 wide."""
ASKING: Final = """
const { completed, usage } = await import(process.argv[1]);
const items = [true, false].map((joined) => completed("", joined));
console.log(JSON.stringify({ items, usage: usage(true), complete: completed("leave", true) }));
"""


def offered(pi: TerminalPi, typed: str, *labels: str) -> list[str]:
    """Type that behind `/team ` into an empty editor and wait for these labels in the menu; its lines."""
    pi.type(f"/team {typed}")
    pi.until(lambda _: [line[2:].split()[0] for line in pi.menu() if "(" not in line] == [*labels])
    lines = pi.menu()
    pi.press(*["backspace"] * len(f"/team {typed}"))
    pi.until(lambda _: pi.editor() == "" and not pi.menu())
    return lines


def test_help_and_refusals_say_what_to_do(start_terminal: StartTerminal) -> None:
    """A person who knows nothing but `/team` is left alone, or Pi ends on what they mistyped."""
    pi = seat(start_terminal, "fake-1")
    in_order(pi.until("[Extensions]"), "[Extensions]", "pi-team.ts")  # what Pi calls it is the file's name
    pi.submit("/team")
    screen = pi.until("First /team create TEAM")
    for name, usage in COMMANDS.items():
        in_order(screen, f"/team {' '.join((name, *usage.arguments))}  ", usage.says)
    assert "to expand" not in screen
    for line, answer in {
        "/team list": "None yet. /team create TEAM makes one.",
        "/team join nowhere me": "no team nowhere",
        "/team create Crew!": "Error: pi-team: ",
        "/team create crew": "/team join crew ALIAS makes this session a member",
        "/team create crew ": "crew exists",
        "/team join crew 9lives": "Error: pi-team: ",
        "/team list them": "Usage: /team list",
        "/team members": "This session is in no team. /team join TEAM ALIAS joins one.",
        "/team send coder hello": "This session is in no team.",
        "/team dance": "There is no /team dance. /team help shows what there is.",
    }.items():
        told_in_new_lines(pi, line.strip(), answer)
    pi.submit("/team join crew lead")
    shows(pi, "crew · lead · receiving · 0 pending · 0 teammates online")
    for line, answer in {
        "/team members": "Nobody else yet. In another session: /team join crew ALIAS",
        "/team inbox": "No messages of lead in crew yet",
        "/team send nobody hello": "nobody",
        "/team send lead hello": "/team members shows your teammates.",
        "/team join crew again": "This session is lead in crew: /team leave first.",
        "/team delete crew": "/team leave first.",
        "/team remove lead": "A session cannot remove itself: /team leave.",
        "/team resume": "Reception is not paused.",
        "/team pause": "Reception is paused.",
    }.items():
        told_in_new_lines(pi, line, answer)
    shows(pi, "crew · lead · paused; /team resume goes on")
    assert pi.quit() == 0


def told_in_new_lines(pi: TerminalPi, line: str, answer: str) -> None:
    """Submit a line; its answer is below everything that was there before."""
    before = pi.text().count(answer)
    pi.submit(line)
    _until_more(pi, answer, before)


def _until_more(pi: TerminalPi, text: str, count: int) -> None:
    pi.until(lambda screen: screen.count(text) > count)


def test_the_menu_offers_what_makes_sense_here(start_terminal: StartTerminal, crew: Team) -> None:
    """Names have to be known by heart, or the menu offers oneself, or takes the Enter of a whole command."""
    pi = seat(start_terminal, "fake-1")
    in_order("\n".join(offered(pi, "", "join", "create", "list", "rename-team", "delete")), "(1/6)")
    offered(pi, "le")  # leaving is for members
    offered(pi, "join cr", "crew")
    crew.join("boss")
    crew.join("coder").leave()
    offered(pi, "join crew ", "coder")  # whose session has left
    pi.submit("/team join crew lead")
    shows(pi, "crew · lead")
    in_order("\n".join(offered(pi, "", "send", "note", "members", "status", "inbox")), "(1/17)")
    in_order("\n".join(offered(pi, "send ", "boss", "coder")), "→ boss", "idle", "coder", "offline")
    offered(pi, "send b", "boss")
    offered(pi, "remove ", "boss", "coder")
    offered(pi, "wake")
    pi.type("/team no")
    pi.until(lambda _: len(pi.menu()) == 1)
    pi.press("tab")
    pi.until(lambda _: pi.editor() == "/team note")
    pi.type("c")
    pi.until(lambda _: pi.menu()[:1] != [] and "coder" in pi.menu()[0])
    pi.press("enter")
    pi.until(lambda _: pi.editor() == "/team note coder")
    pi.type("it works")
    pi.until(lambda _: pi.editor() == "/team note coder it works" and not pi.menu())
    pi.press("enter")
    crew.has(kind="note", recipient="coder", body="it works")


def test_what_cannot_be_undone_is_asked_first(start_terminal: StartTerminal, crew: Team) -> None:
    """A member or a team was gone after one slip, or the answer no was taken for yes."""
    crew.mailbox.create("other")
    crew.join("coder").leave()
    crew.join("boss")
    crew.mailbox.create("third")
    crew.mailbox.join("third", "boss")
    pi = seat_member(start_terminal, "fake-1", "lead")
    for line, question, done, name in (
        ("/team remove coder", "Remove coder from crew?", "coder is no member of crew any more.", "coder"),
        ("/team delete other", "Delete team other?", "Team other is deleted.", "other"),
    ):
        for keys, answer in ((("down", "enter"), "Nothing was changed."), (("enter",), done)):
            earlier = pi.text().count(answer)
            pi.submit(line)
            in_order(pi.until(question), question, "Yes", "No")
            pi.press(*keys)
            _until_more(pi, answer, earlier)
            names = {*crew.mailbox.teams(), *(place.member.alias for place in crew.view().members)}
            assert (name in names) is (answer != done)
    for line, refusal in (
        ("/team remove boss", "boss is a living session and cannot be removed"),
        ("/team delete third", "third has living members: boss"),
    ):
        pi.submit(line)  # what cannot be done is not asked
        pi.until(refusal)
    pi.submit("/team delete crew")
    pi.until("this session is in crew, which cannot be deleted then")
    assert widget(pi).startswith("crew · lead · receiving")


def test_without_a_model_nothing_is_claimed(
    start_terminal: StartTerminal, crew: Team, pi_home: PiHome, model_server: ModelServer
) -> None:
    """A request was claimed by a session that cannot work, and ended as failed."""
    (pi_home.agent / "models.json").write_text('{"providers":{}}', "utf-8")
    pi = seat(start_terminal, None)
    pi.submit("/team join crew coder")
    shows(pi, "crew · coder · receiving")
    request = crew.join("boss").send("coder", "Work")
    crew.join("other").send("coder", "Something to know", kind="note")
    pi.until("Something to know")  # the session does look
    shows(pi, "1 pending")
    assert crew.message(request).state == "pending"
    assert pi.quit() == 0
    assert crew.message(request).state == "pending"
    assert model_server.requests == []


def node(*words: str) -> Any:
    ended = subprocess.run([NODE, *words], capture_output=True, text=True, check=True)
    return json.loads(ended.stdout)


@pytest.fixture(scope="module")
def extension_says() -> Any:
    """What the extension's own list of subcommands says."""
    path = repository.ROOT / "pi_team" / "hosts" / "pi" / "extension" / "commands.ts"
    return node("--disable-warning=ExperimentalWarning", "--input-type=module", "-e", ASKING, str(path))


def test_the_extension_knows_the_commands_that_there_are(extension_says: Any) -> None:
    """Both sides have the list: the extension offered what nobody does, or described it otherwise."""
    joined, detached = (
        {item["label"]: item["description"].rpartition(" — ")[2] for item in items}
        for items in extension_says["items"]
    )
    assert [*joined.items()] == [(name, usage.says) for name, usage in COMMANDS.items()]
    assert [*detached] == [name for name, usage in COMMANDS.items() if not usage.joined]
    assert all(len(item["description"]) <= MENU_ROOM for item in extension_says["items"][0])
    assert extension_says["complete"] is None
    lines = extension_says["usage"]["lines"]
    arguments = [" ".join(("/team", name, *usage.arguments)) for name, usage in COMMANDS.items()]
    assert [line.split("  ")[0] for line in lines] == arguments

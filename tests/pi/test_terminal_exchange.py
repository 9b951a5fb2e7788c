"""Two people in front of two terminals: what each sees of their sessions' work for each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_host.model_server import Call, Reply
from pi_team_host.terminals import in_order, seat, seat_member, shows, widget

if TYPE_CHECKING:
    from pi_host.home import PiHome
    from pi_host.model_server import ModelServer
    from pi_host.terminal import StartTerminal
    from pi_team_host.team import Team

LONG = "Mended.\n\nNot done:\n- the docs\n- the notes\n- the changelog\n- the last line"


def test_a_request_is_seen_on_both_screens_from_the_question_to_the_result(
    start_terminal: StartTerminal, crew: Team, model_server: ModelServer, pi_home: PiHome
) -> None:
    """Somebody cannot see who asked, what is being worked on, what came back, or all of it."""
    lead = seat_member(start_terminal, "fake-1", "lead")
    coder = seat_member(start_terminal, "fake-2", "coder")
    shows(lead, "crew · lead · receiving · 0 pending · 1 teammate online")
    hold = model_server.hold()
    written = Call("write", {"path": "a.py", "content": "mended"})
    model_server.script("fake-2", Reply("I write.", written), Reply("Half of it. ", hold, LONG))
    model_server.script("fake-1", "Verified.")
    lead.submit("/team send coder Mend the parser in a.py")
    in_order(lead.until("request queued"), "request queued  lead → coder", "Mend the parser in a.py")
    hold.wait_reached()
    shows(coder, "crew · coder · working on a request from lead")
    in_order(
        coder.until("Half of it."),
        "request  lead → coder  crew · ",
        "Mend the parser in a.py",
        "write a.py",
    )
    shows(lead, "1 result awaited")
    assert coder.text().count("Mend the parser") == 1  # as the subject, and not again as the text

    hold.release()
    screen = lead.until("Verified.")
    in_order(
        screen, "result completed  coder → lead  crew · ", "Mend the parser in a.py", "Mended.", "Not done:"
    )
    in_order(screen, "… 3 more lines · ctrl+o", f"1 file: {pi_home.work}/a.py", "Verified.")
    assert "the last line" not in screen
    assert crew.has(kind="result").id not in screen
    shows(lead, "crew · lead · receiving · 0 pending · 1 teammate online")
    assert "awaited" not in widget(lead)
    lead.press("ctrl+o")
    screen = lead.until("the last line")
    in_order(screen, crew.has(kind="result").id, "- the last line", "1 file:\n", f"{pi_home.work}/a.py")
    lead.press("ctrl+o")
    lead.until(lambda shown: "the last line" not in shown)

    # A note is for the person: it is shown, and the model is not asked.
    lead.submit("/team note coder The build server is down.")
    in_order(coder.until("is down."), "note  lead → coder", "The build server")
    assert len(model_server.requests) == 3
    lead.submit("/team members")
    in_order(lead.until("Team crew: 1 teammate of lead"), "● coder  idle  ", str(pi_home.work)[-50:])
    lead.submit("/team inbox")
    screen = lead.until("The last 3 messages of lead in crew")
    in_order(
        screen, "request  lead → coder  completed: Mend", "result   coder → lead  completed, delivered: Mend"
    )
    in_order(screen, "note     lead → coder  seen: The build")
    lead.submit("/team status")
    in_order(lead.until("Requests without a result: none"), "lead in crew", "Now: receiving", "1 of 5")

    assert coder.quit() == 0
    shows(lead, "0 teammates online")
    lead.submit("/team members")
    lead.until("○ coder  offline")
    lead.submit("/team leave")
    lead.until("Left crew.")
    lead.until(lambda _: widget(lead) == "")
    assert lead.quit() == 0


def test_a_person_who_types_is_not_disturbed(
    start_terminal: StartTerminal, crew: Team, model_server: ModelServer
) -> None:
    """A request began a turn under the hands of somebody who was typing, or never began."""
    coder = seat_member(start_terminal, "fake-2", "coder")
    boss = crew.join("boss")
    coder.type("I am thinking ab")
    coder.until(lambda _: coder.editor() == "I am thinking ab")
    request = boss.send("coder", "Look at it", subject="Please")
    shows(coder, "receiving", "1 pending")
    assert crew.message(request).state == "pending"
    model_server.script("fake-2", "Looked.")
    coder.press("ctrl+c")  # clears the editor
    coder.until("Looked.")
    result = crew.result_of(request)
    assert (result.body, result.report is not None) == ("Looked.", True)
    assert "I am thinking" not in model_server.asked("fake-2").context


def test_taking_over_and_stopping_interrupt_the_work(
    start_terminal: StartTerminal, crew: Team, model_server: ModelServer
) -> None:
    """What a person said to their own session went to a teammate, or the team carried on regardless."""
    coder = seat_member(start_terminal, "fake-2", "coder")
    boss = crew.join("boss")
    hold = model_server.held("fake-2", "Working on")
    first = boss.send("coder", "The first task")
    hold.wait_reached()
    shows(coder, "working on a request from boss")
    coder.submit("Stop that and keep this secret")
    coder.until("You took over")
    assert "interrupted" in str(crew.result_of(first))
    model_server.script("fake-2", "The secret is kept.")
    hold.release()
    coder.until("The secret is kept.")
    shows(coder, "crew · coder · paused")
    second = boss.send("coder", "The second task")
    shows(coder, "paused", "1 pending")

    hold = model_server.held("fake-2", "Beginning with")
    coder.submit("/team resume")
    hold.wait_reached()
    shows(coder, "working on a request from boss")
    coder.press("escape")
    coder.until("You stopped team work")
    result = crew.result_of(second)
    assert result.report is not None
    assert result.report.outcome == "interrupted"
    shows(coder, "paused; /team resume goes on")
    assert all("secret" not in message.body for message in crew.messages())
    coder.submit("/team resume")
    shows(coder, "receiving")


def test_a_shell_command_of_a_person_takes_over(
    start_terminal: StartTerminal, crew: Team, model_server: ModelServer
) -> None:
    """What `!…` printed during team work went into the context, and with the result to a teammate."""
    coder = seat_member(start_terminal, "fake-2", "coder")
    boss = crew.join("boss")
    hold = model_server.held("fake-2", "It printed secret")
    asked = boss.send("coder", "The first task")
    hold.wait_reached()
    coder.submit("!echo secret")
    coder.until("You took over")
    result = crew.result_of(asked)
    assert result.report is not None
    assert (result.report.outcome, "secret" in result.body) == ("interrupted", False)
    hold.release()
    shows(coder, "crew · coder · paused")


def test_whoever_comes_back_finds_everything_again(
    start_terminal: StartTerminal, crew: Team, model_server: ModelServer
) -> None:
    """After a restart the messages looked otherwise or were gone, or the session was no member."""
    coder = seat_member(start_terminal, "fake-2", "coder")
    boss = crew.join("boss")
    boss.send("coder", "The build server\nis down.", kind="note", subject="FYI")
    coder.until("is down.")
    model_server.script("fake-2", "It is mended.")
    crew.result_of(boss.send("coder", LONG, subject="Mend it"))
    coder.submit("/team pause")
    shows(coder, "crew · coder · paused")
    before = [line for line in coder.lines() if "boss →" in line or "mended" in line or "down." in line]
    assert len(before) == 4
    assert coder.quit() == 0
    assert crew.displayed("coder") == "offline"

    waiting = boss.send("coder", "Something else")
    again = seat(start_terminal, "fake-2", "--continue")
    again.until("Back in crew as coder. Reception is paused.")
    shows(again, "crew · coder · paused", "1 pending")
    assert [line for line in again.lines() if line in before] == before
    model_server.script("fake-2", "Done as well.")
    again.submit("/team resume")
    assert crew.result_of(waiting).body == "Done as well."

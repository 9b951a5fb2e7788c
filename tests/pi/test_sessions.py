"""Which of the sessions that a Pi opens is the member: resumed, new, forked, reloaded, opened twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_team.session import wording
from pi_team_host.team_pi import quiet

if TYPE_CHECKING:
    from pi_host.home import PiHome
    from pi_host.model_server import ModelServer
    from pi_team_host.team import Team
    from pi_team_host.team_pi import StartMembers, StartTeamPi, TeamPi

RELOADING = """
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

export default function (pi: ExtensionAPI): void {
  pi.registerCommand("again", { description: "Reloads", handler: async (_args, ctx) => ctx.reload() });
}
"""


def spoken(pi: TeamPi, model_server: ModelServer) -> str:
    """Let a person and the model speak, whereupon there is a session file; the session's id."""
    model_server.script(pi.model, "Hello.")
    pi.ask("Hello")
    session: str = pi.state()["sessionId"]
    return session


def test_a_resumed_session_is_the_same_member(
    start_members: StartMembers, start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer
) -> None:
    """A session forgot its team, came back twice, or lost what was asked of it while it was closed."""
    (coder,) = start_members(coder="fake-2")
    session = spoken(coder, model_server)
    assert coder.close() == 0
    assert crew.displayed("coder") == "offline"
    boss = crew.join("boss")
    request = boss.send("coder", "When you are back")
    model_server.script("fake-2", "Back, and done.")
    again = start_team_pi("--session", session, model="fake-2")
    again.shows("crew · coder")
    assert crew.result_of(request).body == "Back, and done."
    assert again.tells(wording.rejoined("crew", "coder", None)) == "info"
    assert crew.member("coder").session == session
    assert len(crew.view().members) == 2


def test_an_explicit_pause_outlasts_the_process(
    start_members: StartMembers, start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer
) -> None:
    """A session that its user had paused went to work as soon as it was opened again."""
    (coder,) = start_members(coder="fake-2")
    coder.team("pause")
    session = spoken(coder, model_server)
    coder.close()
    request = crew.join("boss").send("coder", "Do it")
    again = start_team_pi("--session", session, model="fake-2")
    again.shows("crew · coder", "paused", "1 pending")
    assert crew.message(request).state == "pending"
    crew.until(lambda _: crew.displayed("coder") == "paused")


def test_new_and_forked_sessions_are_no_members(
    start_members: StartMembers, crew: Team, model_server: ModelServer
) -> None:
    """A new or forked session took the place of the one that it came from, or that one did not come back."""
    (coder,) = start_members(coder="fake-2")
    session = spoken(coder, model_server)
    file = coder.state()["sessionFile"]
    coder.command("new_session")
    quiet(coder, lambda: not coder.widget)
    assert crew.displayed("coder") == "offline"
    model_server.script("fake-2", "I am nobody.")
    coder.ask("Who are you?")
    assert "pi-team" not in model_server.asked("fake-2", 2).system.replace("pi-team-tests", "")

    coder.command("switch_session", sessionPath=file)
    coder.shows("crew · coder")
    assert coder.state()["sessionId"] == session
    crew.until(lambda _: crew.displayed("coder") == "idle")
    first = coder.command("get_fork_messages")["messages"][0]["entryId"]
    coder.command("fork", entryId=first)
    quiet(coder, lambda: not coder.widget)
    assert coder.state()["sessionId"] != session
    assert crew.displayed("coder") == "offline"
    coder.command("switch_session", sessionPath=file)
    coder.shows("crew · coder")
    coder.command("clone")
    quiet(coder, lambda: not coder.widget)
    assert crew.displayed("coder") == "offline"
    assert crew.member("coder").session == session


def test_a_fork_from_the_command_line_is_no_member(
    start_members: StartMembers, start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer
) -> None:
    """A copy of the session's entries was taken for the session, which Pi calls a startup here."""
    (coder,) = start_members(coder="fake-2")
    session = spoken(coder, model_server)
    fork = start_team_pi("--fork", session, model="fake-3")
    assert fork.state()["sessionId"] != session
    quiet(fork, lambda: not fork.widget and not fork.helpers())
    assert crew.displayed("coder") == "idle"
    fork.team("join crew tester")
    fork.shows("crew · tester", "1 teammate online")
    assert {place.displayed for place in crew.view().members} == {"idle"}


def test_reloading_keeps_the_member(
    start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer, pi_home: PiHome
) -> None:
    """A reload left a second Python side behind, forgot the membership, or could not register its tools."""
    coder = start_team_pi(model="fake-2", extensions=(pi_home.extension("again", RELOADING),))
    coder.team("join crew coder")
    former = coder.helper()
    token = crew.member("coder").token
    coder.command("prompt", message="/again")
    coder.shows("crew · coder")
    crew.until(lambda _: crew.member("coder").token != token and crew.displayed("coder") == "idle")
    assert coder.helper() != former
    model_server.script("fake-2", "Done.")
    assert crew.result_of(crew.join("boss").send("coder", "Do it")).body == "Done."
    assert {"team_send", "team_members", "team_status"} <= model_server.asked("fake-2").tools
    assert coder.stderr == ""


def test_a_session_that_is_open_already_is_not_joined_again(
    start_members: StartMembers, start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer
) -> None:
    """The second took the membership of the first, or stayed silent about having none."""
    (coder,) = start_members(coder="fake-2")
    session = spoken(coder, model_server)
    token = crew.member("coder").token
    second = start_team_pi("--session", session, model="fake-3")
    assert second.tells("open elsewhere") == "error"
    assert not second.widget
    model_server.script("fake-2", "The first.")
    assert crew.result_of(crew.join("boss").send("coder", "Who is it?")).body == "The first."
    assert crew.member("coder").token == token
    coder.shows("receiving")


def test_a_member_renames_itself_at_work(
    start_members: StartMembers, start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer
) -> None:
    """The result of what was in flight was lost, or came from a name that nobody has."""
    (coder,) = start_members(coder="fake-2")
    boss = crew.join("boss")
    hold = model_server.held("fake-2", "Done under another name.")
    request = boss.send("coder", "Do it")
    hold.wait_reached()
    coder.team("rename-member coder builder")
    coder.shows("crew · builder", "working")
    hold.release()
    result = crew.result_of(request)
    assert (result.sender, result.body) == ("builder", "Done under another name.")
    assert crew.message(request).recipient == "builder"
    assert coder.memberships[-1]["alias"] == "builder"
    # Offline it is renamed by somebody else, and comes back under the name that it has by then.
    session = spoken(coder, model_server)
    coder.close()
    crew.mailbox.rename_member("crew", "builder", "mason", actor=boss.owner)
    again = start_team_pi("--session", session, model="fake-2")
    again.shows("crew · mason")
    assert again.tells(wording.rejoined("crew", "mason", "builder")) == "info"


def test_a_session_finds_its_renamed_team(
    start_members: StartMembers, start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer
) -> None:
    """After a crash at work and a rename of the team, nobody told the requester, or the session was lost."""
    (coder,) = start_members(coder="fake-2")
    boss = crew.join("boss")
    session = spoken(coder, model_server)
    hold = model_server.held("fake-2", "half")
    request, later = boss.send("coder", "Do it"), boss.send("coder", "Then this")
    hold.wait_reached()
    coder.kill()
    boss.leave()
    crew.mailbox.rename_team("crew", "squad")
    crew.name = "squad"
    again = start_team_pi("--session", session, model="fake-2")
    again.shows("squad · coder", "paused", "1 pending")
    result = crew.result_of(request)
    assert result.report is not None
    assert (result.report.outcome, result.recipient) == ("interrupted", "boss")
    assert crew.message(later).state == "pending"
    assert again.memberships[-1]["team"] == "squad"
    again.team("resume")
    model_server.script("fake-2", "Done.")
    assert crew.result_of(later).body == "Done."


def test_a_session_that_was_removed_meanwhile_says_so(
    start_members: StartMembers, start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer
) -> None:
    """A removed session came back by itself, or opened without a word about it."""
    (coder,) = start_members(coder="fake-2")
    session = spoken(coder, model_server)
    coder.close()
    crew.mailbox.remove_member("crew", "coder", actor=crew.join("boss").owner)
    again = start_team_pi("--session", session, model="fake-2")
    assert again.tells(wording.gone("crew", "coder")) == "warning"
    quiet(again, lambda: not again.widget)
    again.eventually(lambda: again.memberships == [{"version": 1, "left": True}])
    assert [place.member.alias for place in crew.view().members] == ["boss"]


def test_a_session_whose_team_was_deleted_meanwhile_says_so(
    start_members: StartMembers, start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer
) -> None:
    """A deleted team was created again by a session that came back."""
    (coder,) = start_members(coder="fake-2")
    session = spoken(coder, model_server)
    coder.close()
    crew.mailbox.delete_team("crew")
    again = start_team_pi("--session", session, model="fake-2")
    assert again.tells(wording.gone("crew", "coder")) == "warning"
    quiet(again, lambda: not again.widget)
    again.eventually(lambda: again.memberships == [{"version": 1, "left": True}])
    assert crew.mailbox.teams() == []
    again.close()
    third = start_team_pi("--session", session, model="fake-2")
    quiet(third, lambda: not third.notifications and not third.helpers())


def test_a_session_without_a_file_can_be_a_member(
    start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer
) -> None:
    """What a session remembers has to be written before a claim, and there is nowhere to write to."""
    coder = start_team_pi("--no-session", model="fake-2")
    coder.team("join crew coder")
    model_server.script("fake-2", "Done.")
    assert crew.result_of(crew.join("boss").send("coder", "Do it")).body == "Done."
    coder.close()
    assert crew.displayed("coder") == "offline"

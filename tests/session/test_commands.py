"""A person's `/team` commands: what they do, what they show, how they refuse and ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pi_team.session.effects import Answer, Confirm, Show
from pi_team.session.events import Command, Confirmed
from pi_team.session.usage import COMMANDS
from scripted_host import notices, of

if TYPE_CHECKING:
    from pi_team.session.effects import Effect
    from scripted_host import Host, OpenHost


def shown(effects: list[Effect]) -> list[str]:
    """The lines of the entry that was shown."""
    (show,) = of(Show, effects)
    lines: list[str] = show.entry["lines"]
    return lines


# --- the line


@pytest.mark.parametrize(
    "line", ["", "  ", "help", "frobnicate", "join", "join crew", "join a b c", "send bob", "list x"]
)
def test_every_line_is_answered_and_explained(alice: Host, line: str) -> None:
    """Nothing, an unknown word, too few words, too many: usage, and an answer to the host."""
    effects = alice.team(line)
    assert len(of(Answer, effects)) == 1
    assert of(Show, effects) or notices(effects, "error")


def test_help_shows_every_command(alice: Host) -> None:
    """With its arguments, and what it does."""
    lines = shown(alice.team("help"))
    assert [line.split()[1] for line in lines] == list(COMMANDS)
    assert "/team join TEAM ALIAS          make this session a member" in lines


def test_help_tells_newcomers_how_to_begin(host: OpenHost) -> None:
    """And members not."""
    assert shown(host("lonely").team(""))[-1].startswith("First /team create TEAM, then")


@pytest.mark.parametrize("name", [name for name, usage in COMMANDS.items() if usage.joined])
def test_what_is_for_members_is_refused_to_others(host: OpenHost, name: str) -> None:
    """A session in no team hears how to join one."""
    lonely = host("lonely")
    line = " ".join([name, *("x" for argument in COMMANDS[name].arguments)])
    assert notices(lonely.team(line), "error") == [
        "This session is in no team. /team join TEAM ALIAS joins one."
    ]


def test_the_rest_of_the_line_is_the_text_as_it_is(alice: Host, bob: Host) -> None:
    """Spaces, quotes, several lines; the subject is its first line, cut."""
    alice.team('send  bob   Fix "the  parser"\n\n  and @this file, /team leave  ')
    message = bob.messages()[0]
    assert message.subject == 'Fix "the  parser"'
    assert message.body == 'Fix "the  parser"\n\n  and @this file, /team leave'
    alice.team("send bob " + "long " * 100)
    subject = bob.messages()[1].subject
    assert len(subject) <= 160
    assert subject.endswith("…")


# --- teams


def test_unknown_teams_are_refused_and_not_made(host: OpenHost) -> None:
    """A typing error makes no team."""
    lonely = host("lonely")
    assert "/team create TEAM makes one" in notices(lonely.team("join crwe x"), "error")[0]
    assert lonely.mailbox.teams() == []
    assert shown(lonely.team("list")) == ["None yet. /team create TEAM makes one."]


def test_joining_twice_is_refused(alice: Host) -> None:
    """One team at a time."""
    alice.team("create other")
    assert "/team leave first" in notices(alice.team("join other alice"), "error")[0]
    assert alice.state == "receiving"


def test_an_alias_of_a_living_session_is_refused(alice: Host, host: OpenHost) -> None:
    """Loudly, and the holder is not disturbed."""
    other = host("other")
    assert "living session" in notices(other.team("join crew alice"), "error")[0]
    alice.poll()
    assert (alice.state, other.state) == ("receiving", "detached")


def test_teams_are_renamed_and_deleted_when_nobody_is_alive(alice: Host) -> None:
    """The own team is refused before anybody is asked."""
    assert "/team leave first" in notices(alice.team("rename-team crew guild"), "error")[0]
    assert "/team leave first" in notices(alice.team("delete crew"), "error")[0]
    alice.team("leave")
    assert notices(alice.team("rename-team crew guild")) == ["Team crew is called guild now."]
    assert notices(alice.team("delete guild")) == ["Team guild is deleted."]
    assert alice.mailbox.teams() == []


def test_a_no_changes_nothing(alice: Host, bob: Host) -> None:
    """Deleting and removing ask, and take no for an answer."""
    bob.team("leave")
    alice.yes = False
    assert of(Confirm, alice.team("remove bob"))[0].title == "Remove bob from crew?"
    assert notices(alice.team("remove bob")) == ["Nothing was changed."]
    alice.yes = True
    assert "bob is no member of crew any more" in notices(alice.team("remove bob"))[0]
    assert [entry.member.alias for entry in alice.mailbox.look("crew").members] == ["alice"]


def test_a_command_is_answered_after_its_question(alice: Host, bob: Host) -> None:
    """Meanwhile everything else goes on; a second question is refused; an answer counts once."""
    bob.team("leave")
    alice.answers = False
    effects = alice.tell(Command("c1", "remove bob"))
    (question,) = of(Confirm, effects)
    assert of(Answer, effects) == []
    assert notices(alice.tell(Command("c2", "remove bob")), "error") == [
        "Another question is open: answer that one first."
    ]
    alice.poll()
    alice.tell(Confirmed("q9", yes=True))
    effects = alice.tell(Confirmed(question.question, yes=True))
    assert of(Answer, effects) == [Answer("c1", {})]
    assert of(Answer, alice.tell(Confirmed(question.question, yes=True))) == []


def test_a_yes_after_leaving_changes_nothing(alice: Host, bob: Host) -> None:
    """The session left the team while the question was open."""
    bob.team("leave")
    alice.answers = False
    (question,) = of(Confirm, alice.team("remove bob"))
    alice.team("leave")
    effects = alice.tell(Confirmed(question.question, yes=True))
    assert notices(effects, "error") == ["This session is in no team. /team join TEAM ALIAS joins one."]
    assert len(of(Answer, effects)) == 1


# --- members


def test_the_roster_omits_the_own_alias(alice: Host, bob: Host) -> None:
    """Teammates, with what their presence says."""
    assert shown(alice.team("members")) == ["● bob  idle  /bob/project"]
    assert bob.state == "receiving"


def test_renaming_oneself_and_others(alice: Host, bob: Host) -> None:
    """Oneself at any time; others while they are offline."""
    alice.team("rename-member alice chief")
    assert alice.entry is not None
    assert alice.entry["alias"] == "chief"
    assert "cannot be renamed" in notices(alice.team("rename-member bob robert"), "error")[0]
    bob.team("leave")
    assert notices(alice.team("rename-member bob robert")) == ["bob is called robert now."]
    assert "/team members shows them" in notices(alice.team("rename-member bob b"), "error")[0]


def test_removing_refuses_before_it_asks(alice: Host, bob: Host) -> None:
    """Oneself, and whom nobody knows; a living one after the question."""
    assert of(Confirm, alice.team("remove alice")) == []
    assert of(Confirm, alice.team("remove nobody")) == []
    assert "living session" in notices(alice.team("remove bob"), "error")[0]
    assert bob.state == "receiving"


# --- messages


def test_wake_asks_everybody_and_says_whom_it_could_not(alice: Host, bob: Host, host: OpenHost) -> None:
    """The own message for each teammate; a repetition is refused for each, and that is said."""
    carol = host("carol")
    carol.team("join crew carol")
    assert shown(alice.team("wake")) == ["queued for bob, carol"]
    lines = shown(alice.team("wake"))
    assert lines[0] == "queued for nobody"
    assert [line[:22] for line in lines[1:]] == ["not queued for bob: th", "not queued for carol: "]
    assert shown(alice.team("wake How far are you?")) == ["queued for bob, carol"]
    assert {message.body for message in alice.messages()[2:]} == {"How far are you?"}
    assert {message.kind for message in alice.messages()} == {"request"}
    assert bob.state == "receiving"


def test_the_inbox_takes_nothing_and_is_capped(alice: Host, bob: Host) -> None:
    """The last twenty from and to me, and where the rest is."""
    bob.team("pause")
    for number in range(23):
        alice.team(f"send bob Number {number:02}")
    lines = shown(bob.team("inbox"))
    assert len(lines) == 21
    assert lines[0] == "… 3 earlier, left out here; `pi-team log crew` shows all"
    assert "  request  alice → bob  pending: Number 22" in lines[-1]
    assert {message.state for message in bob.messages()} == {"pending"}


def test_the_inbox_says_how_a_request_ended(alice: Host, bob: Host) -> None:
    """A request whose turn has failed was called completed, as the record calls what has a result."""
    alice.team("send bob Fix the parser")
    bob.poll()
    bob.settle(None, "error", "no credit")
    request, result = shown(alice.team("inbox"))
    assert "  request  alice → bob  failed: Fix the parser" in request
    assert "  result   bob → alice  failed, not delivered yet: Fix the parser" in result


def test_status_says_what_the_session_does_and_who_owes_whom(alice: Host, bob: Host) -> None:
    """With the automatic turns so far."""
    alice.team("send bob Fix the parser")
    bob.poll()
    assert shown(bob.team("status")) == [
        "Now: working on a request from alice",
        "Automatic turns since your last prompt: 1, no cap",
        "Requests without a result: 1",
        "alice → bob  processing for 2 s: Fix the parser",
    ]


def test_what_a_person_sends_is_in_no_thread_of_the_model(alice: Host, bob: Host) -> None:
    """`/team send` during work is the person's, not the turn's."""
    alice.team("send bob Fix the parser")
    bob.poll()
    bob.team("send alice A question of mine")
    assert bob.messages()[1].parent_id is None


def test_pause_and_resume_say_what_is(alice: Host) -> None:
    """Also where nothing changes."""
    assert notices(alice.team("resume")) == ["Reception is not paused."]
    assert "Reception is paused." in notices(alice.team("pause"))[0]
    assert notices(alice.team("resume")) == ["Receiving again."]


# --- completion


def test_completion_offers_commands_then_names(alice: Host, bob: Host) -> None:
    """Each item replaces the whole of what was typed; the own alias is never offered."""
    assert "send " in alice.completions("")
    assert alice.completions("re") == ["resume", "rename-member ", "remove ", "rename-team "]
    assert alice.completions("send ") == ["send bob "]
    assert alice.completions("send b") == ["send bob "]
    assert alice.completions("send x") == []
    assert alice.completions("status") == []  # a menu would take the Enter that submits it
    assert alice.completions("remove bob") == []
    assert alice.completions("remove ") == ["remove bob"]
    assert alice.completions("send bob text") == []
    assert alice.completions("join cr") == ["join crew "]
    assert alice.completions("create cr") == []
    assert alice.completions("frobnicate ") == []
    assert bob.completions("rename-member ") == ["rename-member alice "]


def test_completion_without_a_team(alice: Host, host: OpenHost) -> None:
    """Teams, and the aliases that nobody holds; commands for members are left out."""
    lonely = host("lonely")
    assert "send " not in lonely.completions("")
    assert lonely.completions("join ") == ["join crew "]
    assert lonely.completions("join crew ") == []
    alice.team("leave")
    assert lonely.completions("join crew ") == ["join crew alice"]
    assert lonely.completions("join nowhere ") == []

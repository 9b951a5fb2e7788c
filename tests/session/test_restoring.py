"""Coming back: the same session, a fork, twice at once, renamed meanwhile, with nothing to go to."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from pi_team.presence import process_of
from pi_team.session.effects import Deliver, Remember
from pi_team.session.events import Shutdown
from scripted_host import kill, notices, of

if TYPE_CHECKING:
    import subprocess

    from scripted_host import Host, OpenHost


def test_the_same_session_comes_back(bob: Host, host: OpenHost) -> None:
    """Ended in order and resumed: it is a member again, under a new token, and receives."""
    entry = bob.entry
    assert of(Remember, bob.tell(Shutdown())) == []
    again = host("bob")
    effects = again.restore(entry)
    assert again.state == "receiving"
    assert notices(effects) == ["Back in crew as bob."]
    assert len(of(Remember, effects)) == 1  # another place; all else is true already
    assert entry is not None
    assert again.entry == entry | {"place": again.entry and again.entry["place"]}


def test_what_waited_is_delivered_after_coming_back(alice: Host, bob: Host, host: OpenHost) -> None:
    """Pending messages survive the absence."""
    bob.tell(Shutdown())
    alice.team("send bob Fix the parser")
    again = host("bob")
    assert of(Deliver, again.restore(bob.entry))


@pytest.mark.parametrize("how", ["pause", "work"])
def test_a_pause_comes_back(alice: Host, bob: Host, host: OpenHost, how: str) -> None:
    """An explicit one; and the one of a session that was at work when it ended, whose work is interrupted."""
    if how == "pause":
        bob.team("pause")
    else:
        alice.team("send bob Fix the parser")
        bob.poll()
    bob.tell(Shutdown())
    again = host("bob")
    effects = again.restore(bob.entry)
    assert again.state == "paused"
    alice.team("send bob Another")
    assert of(Deliver, again.poll()) == []
    if how == "work":
        assert "look at what was done" in notices(effects, "warning")[0]
        report = again.messages()[1].report
        assert report is not None
        assert report.outcome == "interrupted"
    again.team("resume")
    assert again.delivered is not None
    assert again.delivered.details["subject"] == "Another"


def test_the_pause_of_the_cap_does_not_come_back(alice: Host, host: OpenHost) -> None:
    """A restart lifts it."""
    carol = host("carol", cap=1)
    carol.team("join crew carol")
    alice.team("send carol Fix the parser")
    carol.poll()
    carol.settle("done")
    assert carol.state == "paused"
    carol.tell(Shutdown())
    again = host("carol", cap=1)
    again.restore(carol.entry)
    assert again.state == "receiving"


def test_a_crash_at_work(alice: Host, host: OpenHost, dead: subprocess.Popen[bytes]) -> None:
    """The host is killed: its emitter gets an interrupted result, and the session comes back paused."""
    bob = host("bob", process=process_of(dead.pid))
    bob.team("join crew bob")
    alice.team("send bob Fix the parser")
    bob.poll()
    kill(dead)
    alice.poll()
    report = alice.messages()[1].report
    assert report is not None
    assert report.outcome == "interrupted"
    again = host("bob")
    again.restore(bob.entry)
    assert again.state == "paused"
    assert alice.messages()[0].state == "interrupted"


def test_a_helper_that_died_at_work(alice: Host, bob: Host, host: OpenHost) -> None:
    """Same session, same process, another helper: it joins at once; the running turn is not reported."""
    alice.team("send bob Fix the parser")
    bob.poll()
    again = host("bob")
    again.restore(bob.entry)
    assert again.state == "paused"
    again.settle("the end of the old helper's turn")
    report = again.messages()[1].report
    assert report is not None
    assert report.outcome == "interrupted"
    assert "old helper" not in report.body


def test_a_helper_that_died_between_turns(alice: Host, host: OpenHost) -> None:
    """Nobody was there meanwhile: the count of automatic turns goes on, and the pause at the cap stays."""
    first, second, third = (host("carol", cap=2) for _ in range(3))
    first.team("join crew carol")
    alice.team("send carol Fix the parser")
    first.poll()
    first.settle()
    second.restore(first.entry, goes_on=True)
    assert second.state == "receiving"
    alice.team("send carol And the printer")
    second.poll()
    second.settle()
    assert (second.state, second.entry and second.entry["paused"]) == ("paused", None)
    effects = third.restore(second.entry, goes_on=True)
    assert "2 automatic turns without you, which is the cap" in notices(effects, "warning")[0]
    alice.team("send carol And the scanner")
    assert of(Deliver, third.poll()) == []
    third.type()
    assert of(Deliver, third.poll())


@pytest.mark.parametrize("how", ["type", "resume"])
def test_a_person_between_two_helpers(alice: Host, host: OpenHost, how: str) -> None:
    """Who typed has begun the count anew, for the next helper as well."""
    carol = host("carol", cap=2)
    carol.team("join crew carol")
    alice.team("send carol First")
    carol.poll()
    carol.settle()
    assert carol.entry is not None
    assert carol.entry["turns"] == 1
    if how == "type":
        carol.type()
    else:
        carol.team("resume")
    assert carol.entry["turns"] == 0
    again = host("carol", cap=2)
    again.restore(carol.entry, goes_on=True)
    alice.team("send carol Second")
    again.poll()
    again.settle()
    assert again.state == "receiving"


def test_a_helper_that_died_during_a_review(bob: Host, host: OpenHost) -> None:
    """A review has no claim that would make the session come back paused; its turn counts all the same."""
    carol = host("carol", cap=2)
    carol.team("join crew carol")
    carol.team("send bob Fix the parser")
    carol.poll(301)
    assert carol.delivered is not None
    assert carol.delivered.kind == "review"
    again = host("carol", cap=2)
    again.restore(carol.entry, goes_on=True)
    assert again.delivered is not None
    assert again.delivered.kind == "review"
    again.settle()
    assert (again.state, bob.state) == ("paused", "receiving")


@pytest.mark.parametrize("pause", ["explicit", "recovery"])
def test_a_pause_outlasts_a_restore_that_failed(alice: Host, bob: Host, host: OpenHost, pause: str) -> None:
    """The `/team join` that was said to try it again began to work at once."""
    bob.tell(Shutdown())
    again = host("bob")
    again.fs.at("create").fail(errno.ENOSPC).always()
    assert bob.entry is not None
    (told,) = notices(again.restore(bob.entry | {"paused": pause}), "error")
    assert "/team join crew bob tries it again" in told
    again.fs.forget()
    alice.team("send bob Fix the parser")
    (told,) = notices(again.team("join crew bob"))
    assert "aused" in told
    assert of(Deliver, again.poll()) == []
    assert (again.state, again.entry and again.entry["paused"]) == ("paused", pause)
    again.team("leave")
    again.team("join crew bob")
    assert of(Deliver, again.effects)


def test_a_fork_inherits_nothing(bob: Host, host: OpenHost) -> None:
    """Its entry is a copy and names another session."""
    fork = host("fork")
    assert notices(fork.restore(bob.entry)) == []
    assert fork.state == "detached"


def test_the_same_session_twice(bob: Host, host: OpenHost, dead: subprocess.Popen[bytes]) -> None:
    """The second is refused loudly while the first is alive, keeps its entry, and the first goes on."""
    second = host("bob", process=process_of(dead.pid))
    effects = second.restore(bob.entry)
    assert second.state == "detached"
    assert of(Remember, effects) == []
    (told,) = notices(effects, "error")
    assert "open elsewhere" in told
    bob.poll()
    assert bob.state == "receiving"


def test_under_the_alias_that_the_roster_has(alice: Host, bob: Host, host: OpenHost) -> None:
    """Somebody renamed the absent member."""
    bob.tell(Shutdown())
    alice.team("rename-member bob robert")
    again = host("bob")
    effects = again.restore(bob.entry)
    assert notices(effects) == ["Back in crew as robert (bob was renamed)."]
    assert again.entry is not None
    assert again.entry["alias"] == "robert"


def test_advice_names_the_place_by_its_present_names(
    alice: Host, host: OpenHost, dead: subprocess.Popen[bytes]
) -> None:
    """The alias in the entry is out of date, and the session is open elsewhere: to join under it, as the
    notice said, made a second member, whose pause was lost, and what waited for the first one waited on.
    """
    first = host("bob", process=process_of(dead.pid))
    first.team("join crew bob")
    entry = first.entry
    assert entry is not None
    first.team("rename-member bob robert")
    assert alice.state == "receiving"
    again = host("bob")
    (told,) = notices(again.restore(entry | {"paused": "explicit"}), "error")
    assert "only the other one is robert in crew" in told
    assert "/team join crew robert joins here" in told
    first.tell(Shutdown())
    again.team("join crew robert")
    assert (again.state, again.entry and again.entry["paused"]) == ("paused", "explicit")
    assert [place.member.alias for place in again.mailbox.look("crew").members] == ["alice", "robert"]


def test_advice_names_the_team_by_its_present_name(alice: Host, bob: Host, host: OpenHost) -> None:
    """Coming back is refused for another reason, in a team that was renamed."""
    bob.tell(Shutdown())
    alice.team("leave")
    alice.team("rename-team crew guild")
    again = host("bob")
    again.fs.at("create").fail(errno.ENOSPC).always()
    assert bob.entry is not None
    (told,) = notices(again.restore(bob.entry | {"paused": "recovery"}), "error")
    assert "Could not rejoin guild as bob" in told
    assert "/team join guild bob tries it again" in told
    again.fs.forget()
    again.team("join guild bob")
    assert (again.state, again.entry and again.entry["paused"]) == ("paused", "recovery")


def test_in_the_team_that_was_renamed(alice: Host, bob: Host, host: OpenHost) -> None:
    """The name that the session knew is gone; its session id is found in another team."""
    bob.tell(Shutdown())
    alice.team("create distraction")
    alice.team("leave")
    alice.team("rename-team crew guild")
    again = host("bob")
    again.restore(bob.entry)
    assert again.state == "receiving"
    assert again.entry is not None
    assert again.entry["team"] == "guild"


@pytest.mark.parametrize("taken", ["", "other", "bob"])
def test_in_the_team_whose_name_another_took(alice: Host, bob: Host, host: OpenHost, taken: str) -> None:
    """The team was renamed and its name given to a new one, in which other sessions may be by now."""
    bob.tell(Shutdown())
    alice.team("leave")
    alice.team("rename-team crew guild")
    alice.team("create crew")
    if taken:
        alice.team(f"join crew {taken}")
    again = host("bob")
    assert notices(again.restore(bob.entry)) == ["Back in guild as bob."]
    assert again.entry is not None
    assert (again.entry["team"], again.entry["alias"]) == ("guild", "bob")


def test_in_its_team_where_one_that_it_left_took_the_name(alice: Host, bob: Host, host: OpenHost) -> None:
    """It was bob in both; the place tells them apart, not the names."""
    bob.team("leave")
    bob.team("create guild")
    bob.team("join guild bob")
    bob.tell(Shutdown())
    alice.team("leave")
    alice.team("rename-team guild league")
    alice.team("rename-team crew guild")
    again = host("bob")
    assert notices(again.restore(bob.entry)) == ["Back in league as bob."]


def test_an_entry_without_a_place_names_its_team(alice: Host, bob: Host, host: OpenHost) -> None:
    """Another version kept none: where the team is there, the id in another may be of one that it left."""
    bob.team("leave")
    bob.team("create guild")
    bob.team("join guild bob")
    bob.tell(Shutdown())
    alice.mailbox.remove_member("guild", "bob")
    entry = {"version": 1, "team": "guild", "alias": "bob", "session": "session-bob", "paused": None}
    again = host("bob")
    assert "is no member any more" in notices(again.restore(entry), "warning")[0]


def detached(host: OpenHost, entry: object) -> str:
    """What bob's session is told when it has nothing to come back to with that entry, which it remembers."""
    again = host("bob")
    effects = again.restore(entry)
    assert (again.state, again.entry) == ("detached", {"version": 1, "left": True})
    return notices(effects, "warning")[0]


@pytest.mark.parametrize("alias", ["bob", "bobby"])
def test_not_in_a_team_that_it_left(alice: Host, bob: Host, host: OpenHost, alias: str) -> None:
    """Its team was deleted, and it came back to one that the person had left, whose roster has its id."""
    bob.team("leave")
    bob.team("create guild")
    bob.team(f"join guild {alias}")
    bob.tell(Shutdown())
    alice.team("delete guild")
    assert "was deleted" in detached(host, bob.entry)


@pytest.mark.parametrize("renamed", ["b2 carol", "b2 carol, bob b2"])
def test_not_under_an_alias_that_it_left(alice: Host, bob: Host, host: OpenHost, renamed: str) -> None:
    """It had left one alias for another in the same team, and that was renamed, or given to the first one."""
    bob.team("leave")
    bob.team("join crew b2")
    bob.tell(Shutdown())
    for names in renamed.split(", "):
        alice.team(f"rename-member {names}")
    again = host("bob")
    assert notices(again.restore(bob.entry)) == ["Back in crew as carol (b2 was renamed)."]


def test_not_under_an_alias_that_it_left_where_its_own_is_gone(
    alice: Host, bob: Host, host: OpenHost
) -> None:
    """The alias that counts was removed: the one that the person had left before is none to come back to."""
    bob.team("leave")
    bob.team("join crew b2")
    bob.tell(Shutdown())
    alice.team("remove b2")
    assert "was b2 in crew, and is no member any more" in detached(host, bob.entry)


def test_under_its_alias_where_the_last_entry_was_not_kept(bob: Host, host: OpenHost) -> None:
    """It ended between a join and the entry behind it: the place is another one, the alias is still its."""
    before = bob.entry
    bob.team("leave")
    bob.team("join crew bob")
    bob.tell(Shutdown())
    again = host("bob")
    assert notices(again.restore(before)) == ["Back in crew as bob."]


@pytest.mark.parametrize("end", ["remove bob", "delete"])
def test_nothing_to_come_back_to(alice: Host, bob: Host, host: OpenHost, end: str) -> None:
    """Removed, or the team deleted: said once, and the entry says `left` from then on."""
    bob.tell(Shutdown())
    if end == "delete":
        alice.team("leave")
        alice.team("delete crew")
    else:
        alice.team(end)
    again = host("bob")
    effects = again.restore(bob.entry)
    assert again.state == "detached"
    assert again.entry == {"version": 1, "left": True}
    assert len(notices(effects, "warning")) == 1
    assert notices(again.restore(again.entry)) == []


def test_the_alias_went_to_another_session(bob: Host, host: OpenHost) -> None:
    """It is not taken back from whoever has it now, dead or alive."""
    bob.tell(Shutdown())
    other = host("other")
    other.team("join crew bob")
    again = host("bob")
    again.restore(bob.entry)
    assert again.state == "detached"
    assert other.state == "receiving"
    other.poll()
    assert other.state == "receiving"


def test_an_entry_that_cannot_be_read(host: OpenHost) -> None:
    """Said once; nothing is overwritten."""
    broken = host("broken")
    effects = broken.restore({"version": 9})
    assert len(notices(effects, "warning")) == 1
    assert of(Remember, effects) == []
    assert broken.state == "detached"


def test_a_second_restore_changes_nothing(bob: Host) -> None:
    """A host that says it twice."""
    token = bob.controller._context.owner.token
    bob.restore(bob.entry)
    assert bob.controller._context.owner.token == token


def test_after_the_end_nothing_happens(alice: Host, bob: Host) -> None:
    """Closed is final: no poll, no command, no tool brings it back."""
    bob.tell(Shutdown())
    alice.team("send bob Fix the parser")
    bob.script.clear()
    bob.poll()
    bob.team("join crew bob")
    bob.restore(bob.entry)
    assert bob.state == "closed"
    assert [line for line in bob.script if line.startswith("<")] == []

"""Single stories: what the machine found once, and what it would find too seldom to be relied on."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from play import Play
from players import Fate
from possible import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from players import Seat

BETWEEN_LINK_AND_RENAME = ("rename", "* -> state.json")


@pytest.fixture
def perform() -> Iterator[Callable[..., Play]]:
    """Opens plays, and closes them after the test."""
    plays: list[Play] = []

    def opened(**options: Any) -> Play:
        plays.append(Play(Counter(), **options))
        return plays[-1]

    yield opened
    for play in plays:
        play.close()


def two_members(play: Play) -> tuple[Seat, Seat]:
    """A team, and two members that live in processes of their own; the second works for the first."""
    first, second = play.enter(), play.enter()
    play.create(first, "crew")
    ana, ben = play.join(first, "crew", "ana"), play.join(second, "crew", "ben")
    assert ana is not None
    assert ben is not None
    play.send(ana, "ben", "request")
    play.claim(ben)
    return ana, ben


def test_a_note_of_the_dead_is_delivered_once(perform: Callable[..., Play]) -> None:
    """A sender is killed between its link and its rename: the recipient sees the note, and only once."""
    play = perform()
    ana, ben = two_members(play)
    play.send(ana, "ben", "note", fate=Fate("kill", *BETWEEN_LINK_AND_RENAME))
    assert ana.player.died is not None
    assert len(play.notes(ben)) == 1
    assert play.notes(ben) == ()
    play.end()


def test_a_claim_of_a_sleeper_is_its_own(perform: Callable[..., Play]) -> None:
    """A claimant sleeps between its link and its rename while others go on; the claim is its own."""
    play = perform()
    ana, ben = two_members(play)
    play.settle(ben, "request s3")
    play.claim(ana, fate=Fate("stop", *BETWEEN_LINK_AND_RENAME))
    play.send(ben, "ana", "note")
    play.wake(ana.player)
    assert play.settle(ana, "result s3") is True
    play.end()


def test_a_sleeper_that_was_replaced_can_do_nothing(perform: Callable[..., Play]) -> None:
    """The clock is set forward, a member that said nothing since is replaced, and then wants to settle."""
    play = perform()
    ana, ben = two_members(play)
    play.set_clock(60.0)
    assert play.join(play.enter(), "crew", "ben") is not None
    play.settle(ben, "request s3")
    play.heartbeat(ben)
    play.heartbeat(ana)
    play.end()


def half_renamed(play: Play) -> Seat:
    """A rename of crew to gang died midway, and another crew was made since; who made it."""
    ana, ben = two_members(play)
    play.leave(ana)
    play.leave(ben)
    play.rename_team(ana.player, "crew", "gang", fate=Fate("kill", "rename", "crew -> gang", when="after"))
    play.create(ben.player, "crew")
    return ben


def test_a_rename_cut_in_half_is_completed(perform: Callable[..., Play]) -> None:
    """A rename dies when the directory has moved; another team takes the old name; then it is repeated."""
    play = perform()
    ben = half_renamed(play)
    assert play.records.teams["gang"].title == "crew"
    play.look("gang")
    assert play.join(ben.player, "gang", "ben") is None
    play.end()
    assert play.records.teams["gang"].title == "gang"


def test_completing_a_rename_tells_nothing_of_who_took_the_old_name(perform: Callable[..., Play]) -> None:
    """A rename that died midway is repeated: what is pending in the team made since stays pending."""
    play = perform()
    ben = half_renamed(play)
    again = play.join(ben.player, "crew", "ben")
    other = play.enter()
    assert again is not None
    assert play.join(other, "crew", "cay") is not None
    play.send(again, "cay", "note", fate=Fate("kill", "rename", "*.tmp -> state.json"))
    play.rename_team(other, "crew", "gang")
    assert set(play.records.teams) == {"crew", "gang"}
    play.join(other, "crew", "dan")
    play.end()


def test_who_keeps_its_name_is_still_there(perform: Callable[..., Play]) -> None:
    """A member gives itself the name that it has, which is refused: its presence stays."""
    play = perform()
    ana, ben = two_members(play)
    play.leave(ben)
    play.rename_member(ana.player, ana, "crew", "ana", "ana")
    play.rename_team(ben.player, "crew", "gang")
    assert "crew" in play.records.teams
    play.end()


def test_an_old_name_takes_nothing_away(perform: Callable[..., Play]) -> None:
    """A member renames itself, and again by its old name, which is refused: it is still there."""
    play = perform()
    ana, ben = two_members(play)
    play.leave(ben)
    for _ in range(2):
        play.rename_member(ana.player, ana, "crew", "ana", "cay")
    play.rename_team(ben.player, "crew", "gang")
    assert "crew" in play.records.teams
    play.end()


def slept_over_a_pruning(play: Play) -> None:
    """A writer sleeps before its link while others publish so much that its slot is pruned."""
    ana, ben = two_members(play)
    play.send(ana, "ben", "note", fate=Fate("stop", "link", "*.tmp -> *"))
    for _ in range(5):
        play.send(ben, "ana", "note")
    play.wake(ana.player)
    play.end()


def test_a_writer_that_slept_over_a_pruning_begins_anew(perform: Callable[..., Play]) -> None:
    """It takes a slot that is free again only because it is old; the record does not go back."""
    slept_over_a_pruning(perform(kept=1))


def test_a_writer_that_does_not_look_puts_the_record_back(perform: Callable[..., Play]) -> None:
    """Control: the same without the look after the link."""
    with pytest.raises(Violation, match=r"^Forward: "):
        slept_over_a_pruning(perform(kept=1, broken="the look after the link"))

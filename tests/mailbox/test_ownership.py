"""A session that was replaced, renamed away, removed or swept can change nothing any more."""

from __future__ import annotations

import errno
import json
import time
from typing import TYPE_CHECKING, Any, Final

import attrs
import pytest

import evidence
from grounds import COMPLETED, Ground, as_given, ground, membership
from interposition import InterposedFileSystem
from nursery import Refused
from pi_team.errors import AliasAlive, MemberAlive, MembershipLost, OutcomeUnknown, PiTeamError
from pi_team.mailbox import Mailbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from nursery import Nursery
    from pi_team.domain.model import Membership

NOTE: Final[dict[str, Any]] = {"kind": "note", "subject": "too late", "body": "x"}


@pytest.fixture
def field(tmp_path: Path) -> Ground:
    """The teams."""
    return ground(tmp_path)


@pytest.fixture
def mailbox(field: Ground) -> Iterator[Mailbox]:
    """Somebody's."""
    mailbox = Mailbox(field.path, interval=0.05, expiry=0.3)
    yield mailbox
    mailbox.close()


def owner_operations(field: Ground, lost: Membership) -> dict[str, Callable[[Mailbox], object]]:
    """Every operation that takes a membership."""
    claimed = field.ids["for the ghost"]
    report = as_given(COMPLETED)
    return {
        "send": lambda box: box.send(lost, "carol", **NOTE),
        "notes": lambda box: box.notes(lost),
        "claim": lambda box: box.claim(lost),
        "claim one": lambda box: box.claim(lost, message_id=field.ids["waiting for the ghost"]),
        "release": lambda box: box.release(lost, claimed),
        "settle": lambda box: box.settle(lost, claimed, report),
        "sweep": lambda box: box.sweep(lost),
        "rename itself": lambda box: box.rename_member("crew", lost.alias, "phantom", actor=lost),
        "rename another": lambda box: box.rename_member("crew", "erin", "eric", actor=lost),
        "remove another": lambda box: box.remove_member("crew", "erin", actor=lost),
        "snapshot": lambda box: box.snapshot(lost),
        "heartbeat": lambda box: box.heartbeat(lost, "idle"),
        "leave": lambda box: box.leave(lost),
    }


def replace(mailbox: Mailbox) -> None:
    mailbox.join("crew", "ghost")


def rename_away(mailbox: Mailbox) -> None:
    mailbox.rename_member("crew", "ghost", "spirit")


def remove(mailbox: Mailbox) -> None:
    mailbox.remove_member("crew", "ghost")


def sweep(mailbox: Mailbox) -> None:
    mailbox.sweep(mailbox.join("crew", "sweeper"))


def leave(mailbox: Mailbox) -> None:
    ghost = mailbox.look("crew").members[-1].member
    mailbox.leave(membership(ghost.to_json()))


def rename_team(mailbox: Mailbox) -> None:
    mailbox.rename_team("crew", "band")


def delete_team(mailbox: Mailbox) -> None:
    mailbox.delete_team("crew")


def contents(path: Path) -> dict[str, bytes | None]:
    """Every file and what it holds, but for the ghost's own presence, which it may take away."""
    prints = evidence.fingerprint(path)
    return {name: fields[-1] for name, fields in prints.items() if "presence/ghost" not in name}


@pytest.mark.parametrize("lose", [replace, rename_away, remove, sweep, leave, rename_team, delete_team])
def test_nothing_can_be_done_with_a_lost_membership(
    field: Ground, mailbox: Mailbox, lose: Callable[[Mailbox], None]
) -> None:
    """Its token is known and stands in the history; each operation with it is refused and changes nothing."""
    lose(mailbox)
    lost = membership(field.owners["ghost"])
    before = contents(field.path)
    own = Mailbox(field.path)
    expected = "TEAM_UNKNOWN" if lose in {rename_team, delete_team} else "MEMBERSHIP_LOST"
    for name, operate in owner_operations(field, lost).items():
        with pytest.raises(PiTeamError) as refused:
            operate(own)
        assert refused.value.code in {"MEMBERSHIP_LOST", expected}, name
    assert contents(field.path) == before


@pytest.mark.parametrize("forged", ["token", "alias", "team"])
def test_pair_that_never_was_one_is_no_membership(field: Ground, mailbox: Mailbox, forged: str) -> None:
    """A token of another member, of another alias, or of another team: only the pair counts."""
    alice = membership(field.owners["alice"])
    other = membership(field.owners["bob"])
    values = {"token": other.token, "alias": "bob", "team": "quiet"}
    lost = attrs.evolve(alice, **{forged: values[forged]})
    for operate in owner_operations(field, lost).values():
        with pytest.raises(MembershipLost):
            operate(mailbox)
    assert evidence.revision(field.crew) == field.revision


def test_self_rename_whose_answer_was_lost(field: Ground) -> None:
    """A session renamed itself and could not know whether: its token in the roster tells, and it goes on."""
    fs = InterposedFileSystem()
    session = Mailbox(field.path, filesystem=fs)
    alice = membership(field.owners["alice"])
    session.heartbeat(alice, "busy")
    fs.at("fsync", "*revisions").fail(errno.EIO)
    with pytest.raises(OutcomeUnknown):
        session.rename_member("crew", "alice", "anna", actor=alice)
    roster = {entry.member.token: entry.member.alias for entry in session.look("crew").members}
    now = attrs.evolve(alice, alias=roster[alice.token])
    assert now.alias == "anna"
    with pytest.raises(MembershipLost):
        session.send(alice, "bob", **NOTE)
    session.heartbeat(now, "busy")
    assert session.send(now, "bob", **NOTE).sender == "anna"
    presence = json.loads((field.crew / "presence" / "anna.json").read_bytes())
    assert (presence["token"], presence["status"]) == (alice.token, "busy")
    view = Mailbox(field.path).look("crew")
    assert {entry.member.alias: entry.displayed for entry in view.members}["anna"] == "busy"


@pytest.mark.parametrize("operate", ["leave", "heartbeat"])
def test_former_alias_after_a_self_rename(field: Ground, operate: str) -> None:
    """Both pairs have one token: the old one writes no presence, and takes nothing from the new one.

    A session that lost its seat would watch for two intervals like a one-shot command before it judges.
    """
    alice = membership(field.owners["alice"])
    session = Mailbox(field.path, interval=30.0)
    session.heartbeat(alice, "busy")
    anna = session.rename_member("crew", "alice", "anna", actor=alice)
    assert anna is not None
    with pytest.raises(MembershipLost):
        session.leave(alice) if operate == "leave" else session.heartbeat(alice, "idle")
    names = {path.name for path in (field.crew / "presence").iterdir()}
    assert "anna.json" in names
    assert "alice.json" not in names
    (field.crew / "presence" / "bob.json").unlink()
    with pytest.raises(MemberAlive):  # at once, and not after 60 s of watching
        session.remove_member("crew", "bob", actor=anna)
    session.heartbeat(anna, "idle")
    session.leave(anna)
    assert "anna.json" not in {path.name for path in (field.crew / "presence").iterdir()}
    session.close()


def test_removal_settles_what_was_in_flight(field: Ground, mailbox: Mailbox) -> None:
    """The removed member was at work for one and asked for by another: both hear of it, at once."""
    removal = mailbox.remove_member("crew", "ghost")
    assert (removal.refused, removal.cancelled, removal.discarded) == (2, 0, 0)
    assert evidence.revision(field.crew) == field.revision + 1
    messages = {message.id: message for message in mailbox.look("crew").messages}
    for subject in ("for the ghost", "waiting for the ghost"):
        request = messages[field.ids[subject]]
        (result,) = (message for message in messages.values() if message.parent_id == request.id)
        assert request.state == "interrupted"
        assert (result.recipient, result.state) == (request.sender, "pending")
        assert result.report is not None
        assert result.report.outcome == "interrupted"
    assert "ghost" not in {entry.member.alias for entry in mailbox.look("crew").members}


def test_removal_of_who_asked_cancels_what_it_asked_for(field: Ground, mailbox: Mailbox) -> None:
    """A member that is gone has asked another who is at work on it: that one's settling is final already."""
    bob = membership(field.owners["bob"])
    mailbox.leave(membership(field.owners["alice"]))
    removal = mailbox.remove_member("crew", "alice", actor=bob)
    assert removal.cancelled == 3
    assert removal.discarded == 2  # a note, and the result of what was settled before
    assert mailbox.settle(bob, field.ids["at work"], as_given(COMPLETED)) is False
    assert mailbox.claim(bob) is None


def test_renamed_team_keeps_what_is_pending(mailbox: Mailbox) -> None:
    """Messages wait for a member that is offline; the team gets another name; the member comes back."""
    mailbox.rename_team("quiet", "hushed")
    two = mailbox.join("hushed", "two")
    assert [note.subject for note in mailbox.notes(two)] == ["quiet 0", "quiet 1", "quiet 2"]


def test_renamed_member_keeps_what_is_pending(field: Ground, mailbox: Mailbox) -> None:
    """A request waits for a member that is offline and gets another alias; who joins that one finds it."""
    mailbox.rename_member("crew", "erin", "eric")
    eric = mailbox.join("crew", "eric")
    claimed = mailbox.claim(eric)
    assert claimed is not None
    assert claimed.id == field.ids["for erin"]


# --- taking an alias ------------------------------------------------------------------------------


def test_one_shot_waits_for_another_one_shot(nursery: Nursery, field: Ground) -> None:
    """Two commands use one alias for the moment: the second waits until the first has left."""
    first, second = nursery.actor(field.path), nursery.actor(field.path)
    holder = first.ask("join", "crew", "me")
    second.begin("join", "crew", "me", wait=30.0)
    assert first.ask("look", "crew")["members"][-1]["alive"] is True
    first.ask("leave", holder)
    assert second.answer()["token"] != holder["token"]
    with pytest.raises(Refused, match="MEMBERSHIP_LOST"):
        first.ask("leave", holder)


def test_one_shot_does_not_wait_for_ever(nursery: Nursery, field: Ground) -> None:
    """The first command goes on and on: the second is refused when its time is over."""
    first, second = nursery.actor(field.path), nursery.actor(field.path)
    first.ask("join", "crew", "me")
    began = time.monotonic()
    with pytest.raises(Refused, match="ALIAS_ALIVE"):
        second.ask("join", "crew", "me", wait=0.3)
    assert 0.3 <= time.monotonic() - began < 10


@pytest.mark.slow
def test_nobody_waits_for_a_living_session(nursery: Nursery, field: Ground) -> None:
    """The alias is a session's, which has renewed its presence: waiting for it would be in vain."""
    session, second = nursery.actor(field.path), nursery.actor(field.path)
    owner = session.ask("join", "crew", "me")
    session.begin("attend", owner, 0.3)
    while session.told()["poll"] < 4:
        pass
    began = time.monotonic()
    with pytest.raises(Refused, match="ALIAS_ALIVE"):
        second.ask("join", "crew", "me", wait=60.0)
    assert time.monotonic() - began < 10
    session.finish()


def test_same_session_joins_again_after_its_helper_restarted(nursery: Nursery, field: Ground) -> None:
    """The session's process lives, its helper was restarted: the same session and process join anew."""
    helper = nursery.actor(field.path)
    old = helper.ask("member", "crew", "me", pid=nursery.pid, session="s")
    helper.kill()
    helper = nursery.actor(field.path)
    with pytest.raises(Refused, match="ALIAS_ALIVE"):
        helper.ask("member", "crew", "me", pid=nursery.pid, session="another")
    new = helper.ask("member", "crew", "me", pid=nursery.pid, session="s")
    assert new["token"] != old["token"]
    with pytest.raises(Refused, match="MEMBERSHIP_LOST"):
        helper.ask("send", old, "bob", **NOTE)


# --- judging by one-shots -------------------------------------------------------------------------


def peer_presence(field: Ground, alias: str, **values: Any) -> None:
    """Write a presence as an older peer does, which says nothing of its process."""
    path = field.crew / "presence" / f"{alias}.json"
    now = round(time.time() * 1_000)
    path.write_text(
        json.dumps({"token": field.owners[alias]["token"], "status": "idle", "seen": now} | values)
    )


@pytest.mark.parametrize("doubt", ["another token", "no presence", "stale"])
def test_one_shot_watches_whom_it_cannot_judge_for_two_intervals(field: Ground, doubt: str) -> None:
    """Nothing proves that a member is dead: a command watches for two intervals, hears nothing, goes on."""
    if doubt == "no presence":
        (field.crew / "presence" / "alice.json").unlink()
    else:
        values = {"token": "x"} if doubt == "another token" else {"seen": round(time.time() * 1_000) - 60_000}
        peer_presence(field, "alice", **values)
    interval = 0.1
    began = time.monotonic()
    Mailbox(field.path, interval=interval).remove_member("crew", "alice")
    assert 2 * interval <= time.monotonic() - began < 10


def test_one_shot_hears_who_is_there_after_all(nursery: Nursery, field: Ground) -> None:
    """Its presence was stale because the session slept: it wakes up while it is watched, and is heard."""
    session = nursery.actor(field.path, interval=0.2)
    peer_presence(field, "alice", seen=round(time.time() * 1_000) - 60_000)
    command = nursery.actor(field.path, interval=2.0)
    command.begin("remove_member", "crew", "alice")
    session.begin("attend", field.owners["alice"], 0.1)
    session.told()
    began = time.monotonic()
    with pytest.raises(Refused, match="MEMBER_ALIVE"):
        command.answer()
    assert time.monotonic() - began < 3  # as soon as it is heard, and not after both intervals
    session.finish()


def test_alive_member_is_never_watched(field: Ground) -> None:
    """The answer is known at once: no command lets a person wait for it."""
    box = Mailbox(field.path, interval=5.0)
    box.join("crew", "me")
    began = time.monotonic()
    with pytest.raises(AliasAlive):
        Mailbox(field.path, interval=5.0).join("crew", "me")
    assert time.monotonic() - began < 5

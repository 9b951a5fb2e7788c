"""What a mailbox keeps open of its memberships: of each one place, and none of those that are lost."""

from __future__ import annotations

import contextlib
import errno
from typing import TYPE_CHECKING

import attrs
import pytest

from interposition import InterposedFileSystem
from pi_team import Mailbox
from pi_team.errors import MembershipLost, OutcomeUnknown, TeamMoved
from worlds import StillClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pi_team import Membership


@pytest.fixture
def fs() -> InterposedFileSystem:
    return InterposedFileSystem()


@pytest.fixture
def mailbox(tmp_path: Path, fs: InterposedFileSystem) -> Iterator[Mailbox]:
    with Mailbox(tmp_path / "teams", filesystem=fs) as mailbox:
        mailbox.create("crew")
        yield mailbox


def join(mailbox: Mailbox) -> Membership:
    """Join, beat and look, always as the same session."""
    owner = mailbox.join("crew", "alice", session="s")
    mailbox.heartbeat(owner, "idle")
    mailbox.snapshot(owner)
    mailbox.look("crew")
    return owner


def test_session_that_joins_again_holds_no_more_open(mailbox: Mailbox, fs: InterposedFileSystem) -> None:
    """Each join has a token of its own, and the seat of the one before would stay open with the process."""
    join(mailbox)
    before = len(fs.open_names)
    for _ in range(5):
        join(mailbox)
    assert len(fs.open_names) == before


CALLS: dict[str, Callable[[Mailbox, Membership], object]] = {
    "heartbeat": lambda mailbox, owner: mailbox.heartbeat(owner, "idle"),
    "snapshot": lambda mailbox, owner: mailbox.snapshot(owner),
    "sweep": lambda mailbox, owner: mailbox.sweep(owner),
    "leave": lambda mailbox, owner: mailbox.leave(owner),
    "rename": lambda mailbox, owner: mailbox.rename_member("crew", "alice", "bob", actor=owner),
    "remove": lambda mailbox, owner: mailbox.remove_member("crew", "alice", actor=owner),
}


@pytest.mark.parametrize("call", CALLS)
def test_lost_membership_holds_nothing_open(mailbox: Mailbox, fs: InterposedFileSystem, call: str) -> None:
    """A program may go on calling with it; what that opens is closed with the refusal."""
    lost = [join(mailbox) for _ in range(3)]
    owner = join(mailbox)
    before = len(fs.open_names)
    for each in lost:
        with pytest.raises(MembershipLost):
            CALLS[call](mailbox, each)
    assert len(fs.open_names) == before
    mailbox.heartbeat(owner, "busy")


def test_membership_that_another_process_took_is_let_go(
    mailbox: Mailbox, fs: InterposedFileSystem, tmp_path: Path
) -> None:
    """The session joined again elsewhere: the seat of this process closes when it finds that out."""
    mailbox.look("crew")
    before = len(fs.open_names)
    owner = join(mailbox)
    with Mailbox(tmp_path / "teams") as other:
        other.join("crew", "alice", session="s")
    with pytest.raises(MembershipLost):
        mailbox.snapshot(owner)
    assert len(fs.open_names) == before


@pytest.mark.parametrize("beats", [0, 1], ids=["first", "after a gap"])
def test_heartbeat_that_looks_for_a_team_that_is_gone(tmp_path: Path, beats: int) -> None:
    """It looks whether the member is current, and finds no team: it moved, as for any other heartbeat."""
    clock = StillClock()
    with Mailbox(tmp_path / "teams", clock=clock) as mailbox:
        mailbox.create("crew")
        owner = mailbox.join("crew", "alice")
        for _ in range(beats):
            mailbox.heartbeat(owner, "idle")
        clock.sleep(60)
        (tmp_path / "teams" / "crew").rename(tmp_path / "teams" / "gone")
        with pytest.raises(TeamMoved):
            mailbox.heartbeat(owner, "idle")


def interrupt() -> None:
    raise KeyboardInterrupt


def test_interrupted_look_leaves_nothing_open(mailbox: Mailbox, fs: InterposedFileSystem) -> None:
    """Ctrl-C while a member's presence is looked at."""
    join(mailbox)
    before = len(fs.open_names)
    for _ in range(3):
        fs.at("stat", "alice.json").before(interrupt)
        with pytest.raises(KeyboardInterrupt):
            mailbox.look("crew")
    assert len(fs.open_names) == before


INTERRUPTED = {name: CALLS[name] for name in ("heartbeat", "snapshot", "leave")} | {
    "look": lambda mailbox, _: mailbox.look("crew"),
    "join": lambda mailbox, _: mailbox.join("crew", "alice", session="s"),
}


@pytest.mark.slow
@pytest.mark.parametrize("call", INTERRUPTED)
def test_call_interrupted_anywhere_leaves_nothing_open(tmp_path: Path, call: str) -> None:
    """Ctrl-C at each system call of the first use of a mailbox; what it knows to be open is all that is."""

    def run(fs: InterposedFileSystem, teams: Path) -> None:
        with Mailbox(teams) as other:
            other.create("crew")
            owner = other.join("crew", "alice", session="s")
        mailbox = Mailbox(teams, filesystem=fs)
        with contextlib.suppress(KeyboardInterrupt), mailbox:
            INTERRUPTED[call](mailbox, owner)
        mailbox.close()

    model = InterposedFileSystem()
    run(model, tmp_path / "model")
    for index, made in enumerate(model.calls):
        if made.method in {"write", "fsync"}:  # amidst a publication: these open nothing
            continue
        fs = InterposedFileSystem()
        fs.at_call(index).before(interrupt)
        run(fs, tmp_path / f"{index}")
        assert fs.open_names == {}, f"{index}: {made}"


@pytest.mark.parametrize("call", [("fsync", "revisions"), ("rename", "* -> state.json")], ids="/".join)
def test_rename_of_oneself_whose_answer_was_lost_leaves_no_second_place(
    mailbox: Mailbox, fs: InterposedFileSystem, tmp_path: Path, call: tuple[str, str]
) -> None:
    """The place and the presence under the former alias stayed for as long as the process."""
    owner = join(mailbox)
    before = len(fs.open_names)
    fs.at(*call).fail(errno.EIO)
    with pytest.raises(OutcomeUnknown):
        mailbox.rename_member("crew", "alice", "bob", actor=owner)
    mailbox.look("crew")  # completes it
    renamed = attrs.evolve(owner, alias="bob")
    mailbox.heartbeat(renamed, "idle")
    mailbox.snapshot(renamed)
    assert len(fs.open_names) <= before
    assert [path.name for path in (tmp_path / "teams/crew/presence").iterdir()] == ["bob.json"]
    with pytest.raises(MembershipLost):
        mailbox.heartbeat(owner, "idle")
    mailbox.heartbeat(renamed, "idle")
    assert [path.name for path in (tmp_path / "teams/crew/presence").iterdir()] == ["bob.json"]

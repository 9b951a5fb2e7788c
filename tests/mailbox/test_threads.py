"""One mailbox in several threads: none closes, or writes into, what another has open, nor waits for long."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
import warnings
from functools import partial
from typing import TYPE_CHECKING

import filelock
import pytest

from interposition import UnsyncedFileSystem
from pi_team import Mailbox, Report
from pi_team.errors import MembershipLost, PiTeamError
from pi_team.presence import Observer
from pi_team.record import library_locks
from threads import AnnouncedLock, Role, StoppingFileSystem, announced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

    from pi_team import Membership


class Crew:
    """A team of two, and the mailbox of one process that several threads use.

    Attributes:
        path: the teams directory.
        fs: the port, in which its threads stop.
        mailbox: it has looked, judged, written and beaten before.
        me, other: the members, both of this mailbox.
    """

    def __init__(self, teams: Path) -> None:
        self.path = teams
        self.fs = StoppingFileSystem()
        self.mailbox = Mailbox(teams, filesystem=self.fs)
        self.mailbox.create("crew")
        self.me = self.mailbox.join("crew", "me")
        self.other = self.mailbox.join("crew", "other")
        self.mailbox.heartbeat(self.me, "idle")
        self.send("before")
        self.mailbox.snapshot(self.me)
        self.mailbox.look("crew")

    def send(self, subject: str) -> None:
        self.mailbox.send(self.me, "other", kind="note", subject=subject, body="x")

    def beat(self) -> None:
        self.mailbox.heartbeat(self.me, "busy")

    def subjects(self) -> list[str]:
        with Mailbox(self.path) as mailbox:
            return [message.subject for message in mailbox.look("crew").messages]

    def present(self) -> list[str]:
        return sorted(os.listdir(self.path / "crew" / "presence"))

    def replace_record(self) -> None:
        """Another process writes."""
        with Mailbox(self.path) as mailbox:
            mailbox.send(self.other, "me", kind="note", subject="another's", body="x")

    def replace_presence(self) -> None:
        """A person moves the directory away, not all that was in it, and makes another one."""
        presence = self.path / "crew" / "presence"
        (presence / "other.json").unlink()
        presence.rename(self.path / "crew" / "presence-away")
        presence.mkdir(mode=0o700)


@pytest.fixture
def crew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crew]:
    """Its locks tell whether a thread waits for them."""
    with announced(monkeypatch):
        crew = Crew(tmp_path / "teams")
    with crew.mailbox:
        yield crew


# --- descriptors ----------------------------------------------------------------------------------


def test_two_looks_and_a_send_and_a_heartbeat(crew: Crew) -> None:
    """Both looks close one number; in between it is the private file of the send, then the heartbeat's."""
    crew.replace_record()
    looks = [Role(lambda: crew.mailbox.look("crew"), ("close", "state.json")) for _ in range(2)]
    send = Role(lambda: crew.send("acknowledged"), ("create", ".*.tmp"), ("write", ".*.tmp"))
    beat = Role(crew.beat, ("create", ".me-*"), ("write", ".me-*"))
    looks[0].end()
    send.step()
    looks[1].end()
    beat.step()
    send.end()
    beat.end()
    assert crew.subjects() == ["before", "another's", "acknowledged"]


CLOSING = {
    "leave": lambda crew: crew.mailbox.leave(crew.me),
    "close": lambda crew: crew.mailbox.close(),
    "snapshot": lambda crew: crew.mailbox.snapshot(crew.me),
}


@pytest.mark.parametrize("closing", CLOSING)
def test_presence_that_is_closed_under_a_heartbeat(crew: Crew, closing: str, tmp_path: Path) -> None:
    """The directory's number is a foreign directory's when the heartbeat makes its file there."""
    beat = Role(crew.beat, ("create", ".me-*"))
    if closing == "snapshot":
        crew.replace_presence()
    other = Role(lambda: CLOSING[closing](crew))
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    taken = [os.open(foreign, os.O_RDONLY) for _ in range(8)]
    beat.end()
    other.end()
    assert os.listdir(foreign) == []
    assert [os.fstat(fd).st_ino for fd in taken] == [foreign.stat().st_ino] * 8
    for fd in taken:
        os.close(fd)
    assert ("me.json" in crew.present()) == (closing == "close")


def test_heartbeat_behind_a_leave(crew: Crew) -> None:
    """It waited for the seat, which is closed when it comes to it: it finds that it is no member any more."""
    leave = Role(lambda: crew.mailbox.leave(crew.me), ("unlink", "me.json"))
    beat = Role(crew.beat)
    assert beat.waited
    leave.end()
    with pytest.raises(MembershipLost):
        beat.end()
    assert crew.present() == ["other.json"]


def test_heartbeat_behind_a_rename(crew: Crew) -> None:
    """The seat is given to the new name while the heartbeat under the old one waits for it."""
    rename = Role(
        lambda: crew.mailbox.rename_member("crew", "me", "you", actor=crew.me), ("unlink", "me.json")
    )
    beat = Role(crew.beat)
    assert beat.waited
    renamed = rename.end()
    with pytest.raises(MembershipLost):
        beat.end()
    crew.mailbox.heartbeat(renamed, "busy")
    assert crew.present() == ["other.json", "you.json"]


# --- waiting --------------------------------------------------------------------------------------

HOLDING: dict[str, Callable[[Crew], object]] = {
    "send": lambda crew: crew.send("slow"),
    "sweep": lambda crew: crew.mailbox.sweep(crew.me),
    "rename": lambda crew: crew.mailbox.rename_member("crew", "other", "friend", actor=crew.other),
    "join": lambda crew: crew.mailbox.join("crew", "third"),
    "leave": lambda crew: crew.mailbox.leave(crew.other),
}


@pytest.mark.parametrize("holding", HOLDING)
def test_heartbeat_does_not_wait_for_a_write(crew: Crew, holding: str) -> None:
    """A write waits up to 15 s for the locks of a team; a heartbeat that came after it would be too late."""
    write = Role(lambda: HOLDING[holding](crew), ("create", "state.json.lock"))
    Role(crew.beat).end()
    Role(lambda: crew.mailbox.snapshot(crew.me)).end()
    write.end()


def test_heartbeat_does_not_wait_for_a_look_that_helps(crew: Crew) -> None:
    """The look waits for the locks of the team up to half a second, and other looks with it."""
    dead = Role(lambda: crew.send("pending"), ("rename", ".*.tmp -> state.json"))
    look = Role(lambda: crew.mailbox.look("crew"), ("stat", "*crew.lock"))
    other = Role(lambda: crew.mailbox.snapshot(crew.me))
    assert other.waited
    Role(crew.beat).end()
    dead.end()
    assert [message.subject for message in look.end().messages] == ["before", "pending"]
    other.end()


def test_an_observer_judges_one_at_a_time(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it remembers of others is gone through and changed; two threads must not do both at once."""
    weighing: list[int] = []
    weigh = Observer._weigh

    def watched(*arguments: Any) -> Any:
        weighing.append(threading.get_ident())
        assert len(set(weighing)) == 1
        try:
            return weigh(*arguments)
        finally:
            weighing.pop()

    monkeypatch.setattr(Observer, "_weigh", watched)
    first = Role(lambda: crew.mailbox.look("crew"), ("stat", "me.json"))
    second = Role(lambda: crew.mailbox.look("crew"))
    assert second.waited
    first.end()
    second.end()


def test_warnings_are_told_again_after_two_first_locks(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread silences one warning of the library for a moment; one that ended first gave it back."""
    monkeypatch.setattr(library_locks, "_warning", AnnouncedLock(), raising=False)
    make = filelock.SoftFileLock

    def stopping(path: str, **options: Any) -> filelock.SoftFileLock:
        crew.fs.stop("make", path)
        return make(path, **options)

    monkeypatch.setattr(filelock, "SoftFileLock", stopping)
    before = list(warnings.filters)
    with Mailbox(crew.path, filesystem=crew.fs) as mailbox:
        firsts = [Role(partial(mailbox.notes, owner), ("make", "*")) for owner in (crew.me, crew.other)]
        for first in firsts:
            first.end()
    assert warnings.filters == before
    assert firsts[1].waited


# --- everything at once ---------------------------------------------------------------------------


class Player:
    """A thread that uses a mailbox as a program would, at random, and notes what was acknowledged.

    Args:
        mailbox: shared with the other players.
        number: its own, which is in its names.
        until: when it ends, by the monotonic clock.
    """

    def __init__(self, mailbox: Mailbox, number: int, until: float) -> None:
        self.mailbox = mailbox
        self.me: Membership = mailbox.join("crew", f"p{number}")
        self.sent: list[str] = []
        self.errors: list[BaseException] = []
        self._random = random.Random(number)
        self._name = f"own{number}"
        self._until = until
        self._partner = f"p{number ^ 1}"
        self._names = [f"p{number}", f"q{number}"]
        self.thread = threading.Thread(target=self._play, daemon=True)

    def _play(self) -> None:
        often, at_times = [self._send, self._take, self._look, self._beat], [self._again, self._own]
        acts = 10 * often + 10 * [self._look] + at_times
        while time.monotonic() < self._until:
            try:
                self._random.choice(acts)()
            except PiTeamError as error:
                # A thread that shares what it holds with the others is refused nothing but these.
                if not error.code.startswith("LIMIT_"):
                    self.errors.append(error)
            except BaseException as error:  # noqa: BLE001 - told by the test
                self.errors.append(error)

    def _send(self) -> None:
        message = self.mailbox.send(
            self.me, self._partner, kind="request", subject=f"{time.time()}", body="x"
        )
        self.sent.append(message.id)

    def _take(self) -> None:
        self.mailbox.notes(self.me)
        message = self.mailbox.claim(self.me)
        if message is not None:
            self.mailbox.settle(self.me, message.id, Report("completed", "done", (), ()))

    def _look(self) -> None:
        view = self.mailbox.snapshot(self.me)
        assert {message.id for message in view.messages} >= set(self.sent)
        assert len(self.mailbox.look("crew").messages) >= len(view.messages)

    def _beat(self) -> None:
        self.mailbox.heartbeat(self.me, self._random.choice(["idle", "busy"]))

    def _again(self) -> None:
        self.mailbox.sweep(self.me)
        self.me = self.mailbox.join("crew", self.me.alias, session=self.me.session)

    def _own(self) -> None:
        self.mailbox.create(self._name)
        owner = self.mailbox.join(self._name, "me")
        self.mailbox.heartbeat(owner, "idle")
        renamed = self.mailbox.rename_member(self._name, "me", "you", actor=owner)
        assert renamed is not None
        self.mailbox.snapshot(renamed)
        self.mailbox.leave(renamed)
        self.mailbox.delete_team(self._name)


@pytest.fixture
def restless() -> Iterator[None]:
    """The interpreter switches between threads as often as it can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.slow
@pytest.mark.usefixtures("restless")
def test_players_in_one_mailbox(tmp_path: Path) -> None:
    """Six threads do all that a mailbox offers: nothing acknowledged is lost, nothing fails or leaks."""
    before = len(os.listdir("/dev/fd"))
    with Mailbox(tmp_path / "teams", filesystem=UnsyncedFileSystem()) as mailbox:
        mailbox.create("crew")
        until = time.monotonic() + 2
        players = [Player(mailbox, number, until) for number in range(6)]
        for player in players:
            player.thread.start()
        for player in players:
            player.thread.join(60)
        assert [error for player in players for error in player.errors] == []
        there = {message.id for message in mailbox.look("crew").messages}
        for player in players:
            assert player.sent
            assert there >= set(player.sent)
    assert len(os.listdir("/dev/fd")) == before

"""A program that goes on after a Ctrl-C: what was open is closed, once."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import pytest

from interposition import InterposedFileSystem
from pi_team import Mailbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def interrupted() -> Iterator[None]:
    """A person interrupts a part of this, and the program goes on."""
    with contextlib.suppress(KeyboardInterrupt):
        yield


def use_on(mailbox: Mailbox, teams: Path) -> None:
    """Open, exchange and close all that a mailbox keeps open, and go on after an interrupt."""
    with Mailbox(teams) as other:
        other.create("crew")
        sender = other.join("crew", "bob")
        owner = other.join("crew", "alice")
        for number in range(2):
            other.send(sender, "alice", kind="note", subject=f"{number}", body="x")
            with interrupted():
                mailbox.look("crew")
            with interrupted():
                mailbox.heartbeat(owner, "idle")
            with interrupted():
                mailbox.snapshot(owner)
            with interrupted():
                mailbox.notes(owner)
        (teams / "crew" / "presence").rename(teams / "crew" / "away")
        (teams / "crew" / "presence").mkdir(mode=0o700)
        with interrupted():
            mailbox.heartbeat(owner, "idle")
        with interrupted():
            mailbox.leave(owner)
        (teams / "crew").rename(teams / "crew-away")
        other.create("crew")
        with interrupted():
            mailbox.look("crew")
        with interrupted():
            mailbox.close()
        mailbox.close()


@pytest.mark.slow
def test_number_is_closed_once_where_its_close_was_interrupted(tmp_path: Path) -> None:
    """Ctrl-C comes at the return of a close: the number is a foreign file's by the next time.

    Nor does a lock stay until its lifetime is over.
    """
    counting = InterposedFileSystem()
    use_on(Mailbox(tmp_path / "counting", filesystem=counting), tmp_path / "counting")
    names = counting.names("close")
    assert {"close state.json", "close crew", "close presence"} <= set(names)
    foreign = tmp_path / "foreign"
    foreign.touch()
    for index, name in enumerate(names):
        fs = InterposedFileSystem()
        opened: list[int] = []

        def interrupt(opened: list[int] = opened) -> None:
            opened.append(os.open(foreign, os.O_RDONLY))
            raise KeyboardInterrupt

        fs.at("close", nth=index + 1).before(interrupt)  # which is told after it took effect
        use_on(Mailbox(tmp_path / f"{index}", filesystem=fs), tmp_path / f"{index}")
        for fd in opened:
            assert os.path.samestat(os.fstat(fd), foreign.stat()), f"{index}: {name}"
            os.close(fd)
        assert opened, f"{index}: {name}"
        assert os.listdir(tmp_path / f"{index}" / ".locks") == [], f"{index}: {name}"

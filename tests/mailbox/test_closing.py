"""A mailbox lets go of what it holds open."""

from __future__ import annotations

import gc
import os
import threading
from typing import TYPE_CHECKING

from pi_team import Mailbox
from pi_team.watching import Changes

if TYPE_CHECKING:
    from pathlib import Path


def use(mailbox: Mailbox) -> None:
    """Open all that a mailbox keeps open: a pinned record, a seat, an onlooker's looks."""
    if "crew" not in mailbox.teams():
        mailbox.create("crew")
    owner = mailbox.join("crew", "alice")
    mailbox.heartbeat(owner, "idle")
    mailbox.snapshot(owner)
    mailbox.look("crew")
    mailbox.leave(owner)


def test_context_manager_closes(tmp_path: Path) -> None:
    """A program that opens a mailbox for each of a thousand tasks runs out of descriptors."""
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        with Mailbox(tmp_path / "teams") as mailbox:
            use(mailbox)
            assert len(os.listdir("/dev/fd")) > before
        assert len(os.listdir("/dev/fd")) == before


def test_dropped_mailbox_closes(tmp_path: Path) -> None:
    """The same for one that was never closed."""
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        use(Mailbox(tmp_path / "teams"))
    gc.collect()
    assert len(os.listdir("/dev/fd")) <= before


def test_watch_that_the_system_refuses(tmp_path: Path) -> None:
    """What waits for changes of a team that was deleted, or when no watch is left, looks instead.

    A session that begins to wait each time it is told to would run out of descriptors and threads.
    """
    Changes(str(tmp_path / "warm")).close()  # what is imported for it stays
    before = len(os.listdir("/dev/fd")), threading.active_count()
    for _ in range(5):
        with Changes(str(tmp_path / "gone")) as changes:
            assert not changes.wait(0.0)
            (tmp_path / "gone").mkdir()
            (tmp_path / "gone" / "state.json").touch()
            assert changes.wait(5.0)
        (tmp_path / "gone" / "state.json").unlink()
        (tmp_path / "gone").rmdir()
    assert (len(os.listdir("/dev/fd")), threading.active_count()) == before

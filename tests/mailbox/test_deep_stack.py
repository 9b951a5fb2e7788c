"""A host that calls a mailbox deep in its own recursion."""

from __future__ import annotations

import errno
import shutil
from functools import partial
from typing import TYPE_CHECKING

import pytest

from interposition import InterposedFileSystem, UnsyncedFileSystem
from pi_team import Mailbox
from pi_team.errors import OutcomeUnknown
from stack import with_frames_left

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pi_team import Membership


def plant(teams: Path) -> Membership:
    """A team with a message that only a slot holds, as after a power cut; who sent it."""
    fs = InterposedFileSystem()
    with Mailbox(teams, filesystem=fs) as mailbox:
        mailbox.create("crew")
        mailbox.create("other")
        me = mailbox.join("crew", "me")
        mailbox.join("crew", "you")
        fs.at("rename", "* -> state.json").fail(errno.EIO)
        with pytest.raises(OutcomeUnknown):
            mailbox.send(me, "you", kind="note", subject="acknowledged", body="x")
    for private in (teams / "crew" / "revisions").glob(".*.tmp"):
        private.unlink()
    return me


ACTS: dict[str, Callable[[Mailbox, Membership], object]] = {
    "look": lambda mailbox, _: mailbox.look("crew"),
    "snapshot": lambda mailbox, me: mailbox.snapshot(me),
    "notes": lambda mailbox, me: mailbox.notes(me),
}


@pytest.mark.slow
@pytest.mark.parametrize("act", ACTS)
def test_slot_is_not_passed_for_want_of_stack(tmp_path: Path, act: str) -> None:
    """What cannot be read for that reason is not damaged: publishing past it would lose what it holds."""
    me = plant(tmp_path / "planted")
    answers = set()
    for frames in range(10, 80):
        teams = tmp_path / f"{frames}"
        shutil.copytree(tmp_path / "planted", teams)
        with Mailbox(teams, filesystem=UnsyncedFileSystem()) as mailbox:
            mailbox.join("other", "me")  # what is imported or found out once is there
            try:
                with_frames_left(frames, partial(ACTS[act], mailbox, me))
            except RecursionError:
                answers.add("no stack")
            else:
                answers.add("done")
        with Mailbox(teams) as mailbox:
            messages = mailbox.look("crew").messages
            assert [message.subject for message in messages] == ["acknowledged"], frames
    assert answers == {"no stack", "done"}

"""A process is stopped while it takes the lock of a dead one over, inside the library of the locks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import pytest

import evidence
from grounds import ground

if TYPE_CHECKING:
    from pathlib import Path

    from grounds import Kind
    from nursery import Nursery

OPTIONS: Final[dict[str, Any]] = {"lock_lifetime": 0.1, "patience": 3.0, "unsynced": True}
NOTE: Final[dict[str, Any]] = {"kind": "note", "body": "x"}


@pytest.mark.parametrize("kind", ["locked", "future"])
@pytest.mark.parametrize("event", ["os.chmod *", "os.remove *.break.*"])
def test_who_was_stopped_in_a_takeover_blocks_nobody(
    nursery: Nursery, tmp_path: Path, event: str, kind: Kind
) -> None:
    """Its own marker stands in the lock's place and the dead one's is set aside, or is not yet.

    The library respects what a living process has set aside, however long ago that was.
    """
    field = ground(tmp_path, kind)
    victim, other = nursery.actor(field.path, **OPTIONS), nursery.actor(field.path, **OPTIONS)
    victim.ask("audit", "stop", event=event)
    victim.begin("send", field.owners["alice"], "bob", subject="the victim's", **NOTE)
    victim.stopped()
    began = time.monotonic()
    for subject in ("one", "two"):
        other.ask("send", field.owners["dora"], "carol", subject=subject, **NOTE)
    assert time.monotonic() - began < 1
    victim.go_on()
    victim.answer()
    other.ask("send", field.owners["dora"], "carol", subject="three", **NOTE)
    subjects = evidence.subjects(field.crew)
    assert [subjects[subject] for subject in ("the victim's", "one", "two", "three")] == [1] * 4
    assert list(field.path.glob(".locks/*")) == []

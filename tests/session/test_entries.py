"""What a session keeps of its membership, and what it makes of what others have written there."""

from __future__ import annotations

from typing import Any

import pytest

from pi_team.domain.model import Membership
from pi_team.session import entries

OWNER = Membership("crew", "bob", "s", "token")
GOOD: dict[str, Any] = {
    "version": 1,
    "team": "crew",
    "alias": "bob",
    "session": "s",
    "place": entries.place(OWNER.token),
    "paused": None,
    "turns": 0,
}


@pytest.mark.parametrize(
    ("pause", "endangered", "kept"),
    [
        (None, False, None),
        (None, True, "recovery"),
        ("explicit", False, "explicit"),
        ("explicit", True, "explicit"),
        ("recovery", False, "recovery"),
        ("budget", False, None),
        ("budget", True, "recovery"),
    ],
)
def test_which_pause_is_kept(pause: entries.Pause | None, endangered: bool, kept: str | None) -> None:
    """The cap's pause ends with the session; what may be claimed makes it come back paused."""
    entry = entries.written(OWNER, "s", pause, endangered=endangered, turns=0)
    assert entry == GOOD | {"paused": kept}
    read = entries.read(entry)
    assert read is not None
    assert (read.team, read.alias, read.session, read.paused) == ("crew", "bob", "s", kept)
    assert "token" not in str(entry)


def test_fields_of_other_versions_are_ignored() -> None:
    """A pending compaction, say, that the TypeScript version has written."""
    assert entries.read(GOOD | {"pendingCompaction": {"x": [1]}}) == entries.read(GOOD)


def test_an_unknown_pause_counts_as_one() -> None:
    """Whatever a later version means by it, work must not start by itself."""
    entry = entries.read(GOOD | {"paused": "until-monday"})
    assert entry is not None
    assert entry.paused == "recovery"


@pytest.mark.parametrize(
    ("turns", "counted"), [(3, 3), (0, 0), (-1, 0), (True, 0), ("3", 0), (1.5, 0), (None, 0)]
)
def test_turns_that_are_no_count_are_none(turns: object, counted: int) -> None:
    """Another version's, or broken: the count begins anew."""
    entry = entries.read(GOOD | {"turns": turns})
    assert entry is not None
    assert entry.turns == counted


def test_a_session_that_left_has_no_membership() -> None:
    """Also where fields of its membership are still there."""
    assert entries.read(entries.LEFT) is None
    assert entries.read(GOOD | {"left": True}) is None


@pytest.mark.parametrize(
    "value",
    [
        "crew", 7, [], {}, {"version": 2, "left": True}, GOOD | {"version": "1"}, GOOD | {"team": "../crew"},
        GOOD | {"team": "crew\n"}, GOOD | {"alias": 5}, GOOD | {"alias": "Bob"}, GOOD | {"session": ""},
        GOOD | {"session": "s" * 129}, {"version": 1, "team": "crew"},
    ],
)  # fmt: skip
def test_what_is_no_entry_is_refused(value: object) -> None:
    """Broken, of a later version, or with a name that would be a path."""
    with pytest.raises(entries.UnreadableEntry):
        entries.read(value)

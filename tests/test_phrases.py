"""Times and ids as people say them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_team.phrases import ago, clock_time, plural, short_ids


@pytest.mark.parametrize(
    ("age", "said"),
    [
        (-5, "0 s"),
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (3_599, "59 min"),
        (7_300, "2 h"),
        (200_000, "2 d"),
    ],
)
def test_an_age_has_one_number_and_one_unit(age: float, said: str) -> None:
    """A moment ahead of the clock, which another machine's clock may have written, is no negative age."""
    assert ago(1_000_000 - age * 1_000, 1_000) == said


@given(st.lists(st.text("abc", min_size=1, max_size=12), max_size=20))
def test_a_short_id_means_one_message_only(ids: list[str]) -> None:
    for identifier, short in short_ids(ids).items():
        assert identifier.startswith(short)
        others = {other for other in ids if other != identifier and other.startswith(short)}
        assert not others or short == identifier


def test_no_moment_and_no_number_breaks_a_table() -> None:
    assert clock_time(1e30) == "?"
    assert (plural(1, "request"), plural(0, "request")) == ("1 request", "0 requests")

"""How deep a text is nested is told without reading it, in time that grows with its length."""

from __future__ import annotations

import pytest

from pi_team.nesting import is_deeper, is_text_deeper


@pytest.mark.parametrize(
    ("text", "deeper"),
    [
        ('["a"]', False),
        ("[[1]]", True),
        ('{"a":{}}', True),
        ('["[[",1]', False),
        (r'["\"[["]', False),
        (r'["\\",[1]]', True),
        ("[1],[[2]]", False),
        ('"[["', False),
        ('"begun [[', False),
        ('["begun\\', False),
        ("", False),
    ],
)
def test_brackets_count_outside_strings_up_to_the_end_of_the_value(text: str, *, deeper: bool) -> None:
    """A string that is not closed hides what follows: that is no JSON in any case."""
    assert is_text_deeper(text, 0, 1) is deeper


def test_a_string_that_is_not_closed_is_passed_once() -> None:
    """Each escaped quotation mark in it was taken for the begin of another string: hours, for a megabyte."""
    assert not is_text_deeper('{"a":"' + '\\"' * 500_000, 0, 64)


@pytest.mark.parametrize(("levels", "deeper"), [(0, True), (1, True), (2, False), (3, False)])
def test_the_bound_is_exact(levels: int, *, deeper: bool) -> None:
    """One level more or less is a record that one reader takes and another refuses."""
    assert is_deeper([{"a": 1}, "x"], levels) is deeper
    assert is_text_deeper('[{"a":1},"x"]', 0, levels) is deeper

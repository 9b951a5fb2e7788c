"""The canonical text is JavaScript's, and what is not JSON is refused by everybody alike."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_team.json_text import JsonValue, NotJson, Reader, Span, canonical, members_of, parse, well_paired
from pi_team.limits import JSON_DEPTH
from stack import with_frames_left

# What Node 20 answers: `JSON.stringify(JSON.parse(text))` for "written", an exception of JSON.parse for
# "refused", JSON.stringify of doubles with random bits and of decimal fractions for "doubles".
VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "data/javascript_json.json").read_text())

texts = st.text(st.characters(exclude_categories=()), max_size=20)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | numbers.filter(lambda number: abs(number) < 1e300) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(("text", "written"), VECTORS["written"])
def test_it_writes_what_javascript_writes(text: str, written: str) -> None:
    """A byte of difference is another content hash, and then a peer calls the record corrupt."""
    assert canonical(parse(text)) == written


def test_it_lays_out_doubles_as_javascript_does() -> None:
    """A fractional time in an old record has to survive to the digit."""
    assert len(VECTORS["doubles"]) > 100
    for written in VECTORS["doubles"]:
        assert canonical(float(written)) == written
        assert canonical(parse(written)) == written


@pytest.mark.parametrize("text", VECTORS["refused"])
def test_it_refuses_what_javascript_refuses(text: str) -> None:
    """A reader that took more than its peers would keep a record alive that they call corrupt."""
    with pytest.raises(NotJson):
        parse(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a":1,"a":1}', "duplicate key 'a'"),
        ('{"a":1,"\\u0061":2}', "duplicate key 'a'"),
        ('[{"x":{"b":1,"c":2,"b":3}}]', "duplicate key 'b'"),
        ("[NaN]", "NaN"),
        ("[-Infinity]", "-Infinity"),
        ("1e999", "too large"),
        ("-1e999", "too large"),
        ("1" + "0" * 309, "too large"),
        ("9" * 309, "too large"),
        ("1" * 5000, "too large"),
    ],
)
def test_it_refuses_what_has_two_readings(text: str, reason: str) -> None:
    """JavaScript keeps the last of doubled keys and reads 1e999 as Infinity: a rewrite changes both."""
    with pytest.raises(NotJson, match=reason):
        parse(text)


def test_the_largest_double_is_a_number() -> None:
    """The bound on digits must not refuse what a double holds."""
    assert canonical(parse(str(int(sys.float_info.max)))) == "1.7976931348623157e+308"


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_depth_is_bounded_by_a_number(opening: str, closing: str) -> None:
    """Whether a record can be read must not depend on how deep the reader's own stack is at the moment."""
    deepest = opening * JSON_DEPTH + "1" + closing * JSON_DEPTH
    assert canonical(parse(deepest)) == deepest
    for levels in (JSON_DEPTH + 1, 100_000):
        with pytest.raises(NotJson):
            parse(opening * levels + "1" + closing * levels)


def test_depth_that_fits_is_no_matter_of_the_stack() -> None:
    """A host calls deep in its recursion: what is JSON for everybody else is not said to be none."""
    text = '{"x":[{"subject":"[[\\"{","y":[[{}]]}]}'
    answers = set()
    for frames in range(4, 120):
        try:
            assert with_frames_left(frames, lambda: parse(text)) == json.loads(text)
        except RecursionError:
            answers.add("no stack")
        else:
            answers.add("read")
    assert answers == {"no stack", "read"}


@pytest.mark.parametrize("opening", ["[", '{"[":', '[{"":'])
def test_depth_that_is_too_much_is_found_with_little_stack(opening: str) -> None:
    """And what nobody takes for JSON is found to be none, or not looked at; never read."""
    answers = set()
    for frames in range(4, 200):
        for levels in (JSON_DEPTH + 1, 5_000):
            with pytest.raises((NotJson, RecursionError)) as caught:
                with_frames_left(frames, partial(parse, opening * levels))
            answers.add(caught.type)
    assert answers == {NotJson, RecursionError}


@given(values)
def test_reading_undoes_writing(value: JsonValue) -> None:
    """What is written reads as itself, and writing that again gives the same bytes."""
    text = canonical(value)
    assert canonical(parse(text)) == text
    text.encode()  # a lone surrogate is written as an escape, so the text can always be stored


@given(values)
def test_reformatting_changes_nothing(value: JsonValue) -> None:
    """A record that somebody pretty-printed still has its canonical text."""
    assert canonical(parse(json.dumps(parse(canonical(value)), indent=2))) == canonical(value)


@given(texts)
def test_pairs_are_joined_as_writing_joins_them(text: str) -> None:
    """Two halves of a character in one text are that character after the next reading."""
    assert well_paired(text) == parse(canonical(text))


def test_lone_surrogates_survive() -> None:
    """They are escaped in lower case, and a high one before a low one is a character."""
    assert canonical("\ud83d \udd11\ud83d \ud83d\udd11") == '"\\ud83d \\udd11\\ud83d 🔑"'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_numbers_that_are_none_have_no_text(value: JsonValue) -> None:
    """JavaScript would write null, and the number would be lost without a word."""
    with pytest.raises(ValueError, match="no text"):
        canonical(value)


def test_values_that_are_not_json_have_no_text() -> None:
    """A programming error shows itself where it is made."""
    with pytest.raises(TypeError, match="bytes"):
        canonical([b"x"])  # type: ignore[list-item]


def test_members_say_where_their_text_is() -> None:
    """The hash covers the payload's text as it is in the file, white space included."""
    text = ' {"a" : [1, 2] ,"b":{"c":"}"} , "":"é"}\n'
    spans = members_of(text)
    assert spans == [Span("a", [1, 2], 8, 14), Span("b", {"c": "}"}, 20, 29), Span("", "é", 35, 38)]
    assert [text[span.start : span.end] for span in spans] == ["[1, 2]", '{"c":"}"}', '"é"']


@pytest.mark.parametrize(
    "text", ["[]", "1", "", '{"a":1', '{"a":1} x', '{"a":1,"a":1}', '{"a":1,}', "{1:2}", '{"a"}']
)
def test_members_of_refuse_other_texts(text: str) -> None:
    """Only one whole object has members."""
    with pytest.raises(NotJson):
        members_of(text)


def test_a_reader_passes_what_the_caller_knows() -> None:
    """An array's known elements are skipped without being parsed."""
    reader = Reader('[ {"id":1} , {"id":2} ]')
    reader.enter("[")
    assert reader.more("]")
    reader.passed(reader.position + len('{"id":1}'))
    assert reader.more("]")
    assert reader.value() == {"id": 2}
    assert not reader.more("]")
    reader.finish()

"""Peer text cannot act on a terminal, and cuts keep characters whole and say what they left out."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from pi_team.text import Excerpt, cut, first_line, fit, harmless, head_and_tail

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
ACTIVE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e0fff]"
)

HOSTILE = {
    "colour": ("\x1b[31mred\x1b[0m", "red"),
    "clear screen and home": ("\x1b[2J\x1b[Hgone", "gone"),
    "clipboard write (OSC 52), ended by BEL": ("a\x1b]52;c;cm0gLXJmIH4=\x07b", "ab"),
    "title, ended by ST": ("a\x1b]0;evil\x1b\\b", "ab"),
    "title, 8-bit introducer and end": ("a\x9d0;evil\x9cb", "ab"),
    "hyperlink": ("\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\", "click"),
    "device control string": ("a\x1bP1$r0m\x1b\\b", "ab"),
    "8-bit colour": ("a\x9b31mb", "ab"),
    "OSC without an end": ("a\x1b]52;c;AAAA", "a52;c;AAAA"),
    "CSI without an end": ("a\x1b[", "a"),
    "CSI cut by the end of the text": ("a\x1b[31", "a31"),
    "escape at the very end": ("a\x1b", "a"),
    "sequence put together by a removal": ("\x1b\x1b[0m[31mx", "[31mx"),
    "charset switch": ("a\x1b(0b", "ab"),
    "backspace and bell": ("safe\b\b\b\bevil\x07", "safeevil"),
    "right-to-left override": ("photo\u202egnp.exe", "photognp.exe"),
    "isolates": ("\u2066a\u2069\u2068b", "ab"),
    "zero-width space, word joiner, byte order mark": ("a\u200bb\u2060c\ufeffd", "abcd"),
    "invisible tag letters": ("hi\U000e0065\U000e0076", "hi"),
    "bytes in variation selectors": ("x\U000e0101\U000e0102\ufe01", "x"),
    "lone surrogate": ("a\ud800b", "a\ufffdb"),
    "joiners with nothing to join": ("\u200da\u200d\u200db\u200d", "ab"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_shown_without_what_a_terminal_acts_on(name: str) -> None:
    text, shown = HOSTILE[name]
    assert harmless(text, multiline=True) == shown


@pytest.mark.parametrize(
    "text",
    [
        "café",
        FAMILY,
        "\U0001f1e9\U0001f1ea",
        "\u2764\ufe0f",
        "नमस्ते",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "שלום",
        "漢字",
    ],
)
def test_ordinary_text_of_any_script_stays_as_it_is(text: str) -> None:
    """Emoji sequences, Persian non-joiners and right-to-left scripts need characters that tricks also use."""
    assert harmless(text, multiline=False) == text


def test_line_ends_of_every_kind_are_kept_as_newlines_or_become_one_space() -> None:
    text = "a\r\nb\rc\x85d\u2028e\tf\n\n\ng"
    assert harmless(text, multiline=True) == "a\nb\nc\nd\ne\tf\n\n\ng"
    assert harmless(text, multiline=False) == "a b c d e f g"


@given(st.text(st.characters(codec=None), max_size=40))
def test_nothing_active_survives_whatever_the_text(text: str) -> None:
    for multiline in (True, False):
        assert not ACTIVE.search(harmless(text, multiline=multiline))


def test_a_text_of_nothing_but_introducers_takes_linear_time() -> None:
    """A peer cannot make a reader hang with sequences that begin and never end."""
    for piece in ("\x9d", "\x1b]", "\x1b[", "\x9b1;", "\x1b]52;c;"):
        started = time.perf_counter()
        harmless(piece * (200_000 // len(piece)), multiline=True)
        assert time.perf_counter() - started < 1.0


def test_a_cut_states_how_much_it_left_out() -> None:
    shown = cut("x" * 2_000, 100)
    assert len(shown) <= 100
    kept, left_out = re.fullmatch(r"(x+) \[… ([\d,]+) more characters\]", shown).groups()  # type: ignore[union-attr]
    assert len(kept) + int(left_out.replace(",", "")) == 2_000


@pytest.mark.parametrize("characters", range(6))
def test_a_cut_with_no_room_for_words_is_an_ellipsis_within_the_bound(characters: int) -> None:
    assert len(cut("abcdefgh", characters)) <= characters


@pytest.mark.parametrize(
    "cluster",
    [FAMILY, "\U0001f1e9\U0001f1ea", "e\u0301\u0302", "\U0001f44d\U0001f3fd", "\u2764\ufe0f", "\r\n", "각"],
)
def test_no_cut_parts_what_is_shown_as_one_character(cluster: str) -> None:
    """Every length of cut falls, for some length, in the middle of a family, a flag or an accent."""
    for characters in range(1, 25):
        kept = cut(cluster * 8, characters, mark="…").removesuffix("…")
        assert kept == cluster * (len(kept) // len(cluster)), characters


def test_a_grapheme_without_end_is_cut_inside_rather_than_lost() -> None:
    assert len(cut("a" + "\u0301" * 5_000, 1_000, mark="…")) > 900


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("one\ntwo", "one"),
        ("\n \t\n\ufeff\n  two  \n", "two"),
        ("", ""),
        (" \n\ufeff", ""),
        ("\U0001f468\u200d\U0001f469" * 200, "\U0001f468\u200d\U0001f469" * 53 + "…"),
    ],
)
def test_the_default_subject_is_the_first_line_with_something_in_it(text: str, subject: str) -> None:
    assert first_line(text) == subject
    assert len(subject) <= 160


@pytest.mark.parametrize("cells", range(8))
def test_fitting_counts_terminal_cells_and_not_characters(cells: int) -> None:
    for text in ("漢字漢字漢字", FAMILY * 3, "plain text", "\x1b[31mred\x1b[0m and more"):
        assert cell_len(fit(text, cells)) <= cells
    assert fit("漢字漢字", 5) == "漢字…"


@given(
    st.text(st.sampled_from('ab\n"\\\x00é漢\U0001f600\ud800\u0301'), max_size=400),
    st.integers(80, 300),
    st.integers(120, 600),
)
def test_head_and_tail_keep_both_bounds_and_state_the_cut(text: str, characters: int, size: int) -> None:
    shown = head_and_tail(text, characters, size)
    assert len(shown) <= characters
    assert len(json.dumps(shown, ensure_ascii=False).encode("utf-8", "backslashreplace")) <= size
    if shown != text:
        head, left_out, tail = re.fullmatch(
            r"(?s)(.*)\n\[… (\d+) characters left out …\]\n(.*)", shown
        ).groups()  # type: ignore[union-attr]
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len(head) + int(left_out) + len(tail) == len(text)


def test_an_excerpt_of_a_long_stream_holds_little_and_counts_all() -> None:
    """The bound holds while reading, not only at the end: a 10 GB output must not be held."""
    excerpt = Excerpt(1_000)
    for number in range(2_000):
        excerpt.add(f"{number:08d}" * 100)
        assert len(excerpt._head) + len(excerpt._tail) <= 2_000
    shown = excerpt.text(5_000)
    assert shown.startswith("00000000")
    assert shown.endswith("00001999")
    assert excerpt.length == 2_000 * 800
    assert 900 < len(shown) <= 1_000

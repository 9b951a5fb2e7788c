"""Text of other people, made harmless for display and cut to size.

Whatever a peer wrote is data: it may hold terminal sequences that move the cursor, write the
clipboard (OSC 52) or reverse the reading direction. Everything that shows such text, in a terminal
or in a model's context, passes it through here first (docs/safety.md, "Peer text is data"). Lengths
are in code points unless a name says bytes or cells, and every cut is stated in the text itself.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Final

from pi_team import limits

__all__ = ["Excerpt", "cut", "first_line", "fit", "harmless", "head_and_tail", "skeleton"]

_SEQUENCES: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, screen
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x00-\x08\x0a-\x1f\x7f-\x9f]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, …
    r"|\x1b[ -/]*[0-~]"  # two-character escapes, and the introducer of a sequence without an end
)
_LINE_ENDS: Final = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_CONTROLS: Final = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_INVISIBLE: Final = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0d\ufeff\ufff9-\ufffb"
    "\U00013430-\U00013438\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Bidirectional controls and characters that show nothing; what emoji need (joiners, U+FE0E/F) stays."""
_STRAY_JOINERS: Final = re.compile(
    "(?<![^\\s\u200c\u200d])[\u200c\u200d]|[\u200c\u200d](?![^\\s\u200c\u200d])"
)
"""A joiner joins two visible characters; anywhere else, and in runs, it only hides."""
_SURROGATES: Final = re.compile("[\ud800-\udfff]")

_BLANK_SIGNS: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and a symbol by their category, which show nothing."""
_LOOKALIKES: Final = str.maketrans(
    {
        sign: letter
        for letter, signs in {
            "-": "\u02d7\u0640\u1173\u30fc\u4e00",
            "a": "\u0251\u03b1\u0430\u1d00",
            "b": "\u0185\u0299\u03b2\u044c\u0432\u1d03",
            "d": "\u0111\u0256\u0257\u0501\u1d05",
            "e": "\u03b5\u0435\u04bd\u1d07",
            "g": "\u0261\u0262\u0581",
            "i": "\u0131\u0269\u026a\u03b9\u0456\u04cf",
            "m": "\u03bc\u043c\u1d0d",
            "n": "\u0274\u03b7\u03bd\u0578\u057c",
            "p": "\u03c1\u0440\u1d18\u1d29",
            "t": "\u03c4\u0442\u1d1b",
            "x": "\u03c7\u0445",
        }.items()
        for sign in signs
    }
)
"""Signs, folded by case, that look like a dash or a Latin letter; of the letters, those of our own marks."""

_MORE: Final = " [… {left_out:,} more characters]"
_LEFT_OUT: Final = "\n[… {left_out:,} characters left out …]\n"
_GRAPHEME_REACH: Final = 64
"""How far a cut looks for the edge of a grapheme; a longer one (only a hostile one is) is cut inside."""


def harmless(text: str, *, multiline: bool) -> str:
    """The text without anything that a terminal would act on.

    Terminal sequences that have an end are removed whole; of one without, only what introduces it.
    Other controls, bidirectional overrides and isolates, and invisible format characters are
    removed; a lone surrogate becomes U+FFFD.

    Args:
        text: any text, up to megabytes: the time is linear.
        multiline: keep line ends (all kinds become a newline) and tabs; otherwise they become one space.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _SEQUENCES.sub("", text)
    text = _LINE_ENDS.sub("\n", text)
    text = _CONTROLS.sub("", text)
    text = _INVISIBLE.sub("", text)
    text = _STRAY_JOINERS.sub("", text)
    text = _SURROGATES.sub("\ufffd", text)
    return text if multiline else re.sub(r"[\n\t]+", " ", text)


def skeleton(line: str) -> str:
    """What a line looks like, for comparison only: it is never stored and never shown.

    Lines that look alike have one skeleton as far as they differ in: case; compatibility forms (letters that
    are wide, mathematical, circled, raised, or joined in one sign); accents and other combining marks;
    characters that show nothing, among them joiners, variation selectors and fillers, which are left out;
    kinds of blanks; letters that are drawn like a dash; and the Greek, Cyrillic and Armenian letters, small
    capitals and variants that look like one of the Latin letters a b d e g i m n p t x.

    Not covered: all other letters of all scripts; signs that only recall a letter ("1" for "l", "€" for "e",
    letters in squares); several signs for one ("rn" for "m"); other spellings and languages.

    Args:
        line: harmless text, of any length: the time is linear.
    """
    if line.isascii():
        return line.casefold()
    # Before as well: to normalise takes quadratic time for a long run of combining marks.
    folded = _shown(unicodedata.normalize("NFKD", _shown(line))).casefold()
    return folded.translate(_LOOKALIKES)


def _shown(text: str) -> str:
    """The text without combining marks and what shows nothing."""
    return "".join(
        sign
        for sign in text
        if sign not in _BLANK_SIGNS and unicodedata.category(sign) not in {"Mn", "Mc", "Me", "Cf"}
    )


def cut(text: str, characters: int, *, mark: str = _MORE) -> str:
    """The text if it has at most so many characters, else its beginning and a mark.

    Args:
        text: the text.
        characters: the most characters of the answer, the mark included.
        mark: what states the cut; `{left_out}` in it is the number of characters left out. Where it
            does not fit, a single ellipsis stands.
    """
    if len(text) <= characters:
        return text
    if len(mark.format(left_out=len(text))) > characters:
        mark = "…"[:characters]
    end = _edge_before(text, characters - len(mark.format(left_out=len(text))))
    return text[:end] + mark.format(left_out=len(text) - end)


def first_line(text: str) -> str:
    """The first line that is not blank, trimmed and cut to a subject's length; "" where there is none."""
    for line in text.splitlines():
        # A byte order mark is blank to JavaScript's trim, by which an older peer judges a subject.
        subject = line.strip().strip("\ufeff").strip()
        if subject:
            return cut(subject, limits.SUBJECT_CHARACTERS, mark="…")
    return ""


def fit(text: str, cells: int) -> str:
    """One harmless line of at most so many terminal cells; an ellipsis states a cut."""
    from rich.cells import cell_len  # noqa: PLC0415 - only terminals need the width tables

    line = harmless(text, multiline=False)
    if cell_len(line) <= cells:
        return line
    if cells < 1:
        return ""
    low, high = 0, len(line)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cell_len(line[:middle]) <= cells - 1 else (low, middle - 1)
    return line[: _edge_before(line, low)] + "…"


def head_and_tail(text: str, characters: int, serialized_bytes: int) -> str:
    """The text if it fits, else its head and its tail with the cut stated between them.

    Args:
        text: the text.
        characters: the most characters of the answer.
        serialized_bytes: the most bytes of the answer as a JSON string, its quotes included.
    """
    excerpt = Excerpt(characters)
    excerpt.add(text)
    return excerpt.text(serialized_bytes)


class Excerpt:
    """Head and tail of a text of any length, kept in bounded memory.

    Args:
        characters: the most characters of the answer; about twice as many are held.
    """

    __slots__ = ("_characters", "_head", "_tail", "length")

    def __init__(self, characters: int) -> None:
        self._characters = characters
        self._head = ""
        self._tail = ""
        self.length = 0

    def add(self, text: str) -> None:
        """Append a piece of the text."""
        self.length += len(text)
        room = self._characters - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        if text:
            self._tail = (self._tail + text)[-self._characters :]

    def text(self, serialized_bytes: int) -> str:
        """What was added if it fits, else head and tail; see :func:`head_and_tail` for the bounds."""
        whole = self._head + self._tail
        if self.length == len(whole):
            if self._fits(whole, serialized_bytes):
                return whole
            front = back = whole
        else:
            front, back = self._head, self._tail
        low, high = 0, self._characters
        while low < high:
            middle = (low + high + 1) // 2
            fits = self._fits(self._pieces(front, back, middle), serialized_bytes)
            low, high = (middle, high) if fits else (low, middle - 1)
        return self._pieces(front, back, low)

    def _pieces(self, front: str, back: str, kept: int) -> str:
        head = front[: _edge_before(front, kept - kept // 2)]
        tail = back[_edge_after(back, len(back) - kept // 2) :]
        return head + _LEFT_OUT.format(left_out=self.length - len(head) - len(tail)) + tail

    def _fits(self, text: str, serialized_bytes: int) -> bool:
        return len(text) <= self._characters and _serialized_bytes(text) <= serialized_bytes


def _serialized_bytes(text: str) -> int:
    """Bytes of the text as a JSON string, a lone surrogate counting as its escape."""
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "backslashreplace"))


def _edge_before(text: str, index: int) -> int:
    """The last edge between graphemes at or before the index."""
    for edge in range(index, max(index - _GRAPHEME_REACH, -1), -1):
        if not _inside_grapheme(text, edge):
            return edge
    return max(index, 0)


def _edge_after(text: str, index: int) -> int:
    """The first edge between graphemes at or after the index."""
    for edge in range(index, min(index + _GRAPHEME_REACH, len(text) + 1)):
        if not _inside_grapheme(text, edge):
            return edge
    return index


def _inside_grapheme(text: str, index: int) -> bool:
    """Whether a cut at the index would part what is shown as one character.

    The part of Unicode's grapheme rules that text in the wild needs: combining marks, joiners,
    variation selectors, skin tones, tags, flags, Hangul syllables in parts, CR LF.
    """
    if not 0 < index < len(text):
        return False
    before, after = text[index - 1], text[index]
    if after < "\u0300":
        return before + after == "\r\n"
    return (
        before == "\u200d"
        or after in "\u200c\u200d"
        or unicodedata.category(after).startswith("M")
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or "\U000e0020" <= after <= "\U000e007f"
        or "\u1160" <= after <= "\u11ff"
        or (_is_flag_letter(after) and _flag_letters_before(text, index) % 2 == 1)
    )


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_letters_before(text: str, index: int) -> int:
    count = 0
    while count < min(index, _GRAPHEME_REACH) and _is_flag_letter(text[index - 1 - count]):
        count += 1
    return count

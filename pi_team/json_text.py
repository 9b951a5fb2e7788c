"""JSON as JavaScript writes it: the canonical text of a value, and a reader that refuses what is not JSON.

The record is shared with peers that write it with ``JSON.stringify`` (docs/record-format.md,
"Canonical text"), and a content hash covers the bytes, so that our text has to be the same to the
byte. Two readers must also agree on whether a text is JSON at all: what Python's reader takes
beyond the standard (NaN, Infinity, duplicate keys, numbers that no double holds) is refused here,
and the depth of nesting is bounded by a number and not by the height of the caller's stack. Where that
leaves too little room to read what is JSON, the interpreter's RecursionError says so: nobody may take the
text for broken then.

Text is a ``str``; lone surrogates are allowed in it and survive.
"""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeAlias

from pi_team import nesting
from pi_team.limits import JSON_DEPTH

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

_EXACT = 2**53
"""Integers up to here are what a double holds exactly; JavaScript rounds those beyond."""
_FIXED_POINT = 21
"""JavaScript writes numbers below 1e21 without an exponent …"""
_SMALLEST_FIXED_POINT = -6
"""… and those from 1e-6 on."""
_INTEGER_DIGITS = 309
"""No double has more digits before its point."""
_INDEX_END = 2**32 - 1
"""Keys below it that look like an integer come first in a JavaScript object, in ascending order."""

_SPACE = re.compile(r"[ \t\n\r]*")
_SURROGATES = re.compile("([\ud800-\udbff])([\udc00-\udfff])|[\ud800-\udfff]")
_INDEX = re.compile(r"0|[1-9][0-9]{0,9}")


class NotJson(ValueError):
    """The text is not one JSON value: broken, doubled keys, not a number, or too deeply nested."""


class Span(NamedTuple):
    """One entry of an object: its key, its value, and where the value's text is: ``text[start:end]``."""

    key: str
    value: JsonValue
    start: int
    end: int


# --- reading --------------------------------------------------------------------------------------


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        doubled = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value] # the idiom for "first repeated"
        raise NotJson(f"duplicate key {doubled!r}")
    return value


def _integer(digits: str) -> int:
    if len(digits) <= _INTEGER_DIGITS + 1:
        value = int(digits)
        if -_EXACT <= value <= _EXACT:
            return value
        try:
            return int(float(value))  # what a double holds, hence what every peer reads
        except OverflowError:
            pass
    raise NotJson(f"a number too large for a double: {digits[:20]}…")


def _float(digits: str) -> float:
    value = float(digits)
    if not isfinite(value):
        raise NotJson(f"a number too large for a double: {digits[:20]}")
    return value


def _constant(name: str) -> NoReturn:
    raise NotJson(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
)


def _too_deep() -> NotJson:
    return NotJson(f"nested more than {JSON_DEPTH} levels deep")


class Reader:
    """Reads a text from a position on, container by container, so that parts can be skipped or reused.

    Args:
        text: the text.
        position: offset of the first character to read; white space is skipped.

    Every method raises :class:`NotJson` where the text is something else.
    """

    __slots__ = ("_first", "position", "text")

    def __init__(self, text: str, position: int = 0) -> None:
        self.text = text
        self.position = position
        self._first = False
        self._skip_space()

    def _skip_space(self) -> None:
        match = _SPACE.match(self.text, self.position)
        assert match is not None  # noqa: S101 # the pattern matches the empty text
        self.position = match.end()

    def _fail(self, wanted: str) -> NoReturn:
        found = self.text[self.position : self.position + 1]
        raise NotJson(f"{wanted} expected at character {self.position}, not {found or 'the end'!r}")

    def enter(self, bracket: str) -> None:
        """Pass the opening bracket of an object (``{``) or an array (``[``)."""
        if not self.text.startswith(bracket, self.position):
            self._fail(bracket)
        self.position += 1
        self._first = True
        self._skip_space()

    def more(self, bracket: str) -> bool:
        """Whether another entry follows, passing the comma before it; else the closing bracket is passed."""
        following = self.text[self.position : self.position + 1]
        if following == bracket:
            self.position += 1
            self._first = False
            self._skip_space()
            return False
        if self._first:
            self._first = False
            return True
        if following != ",":
            self._fail(f"',' or {bracket!r}")
        self.position += 1
        self._skip_space()
        if self.text.startswith(bracket, self.position):
            self._fail("a value")
        return True

    def key(self) -> str:
        """Read an entry's key and pass the colon after it."""
        if not self.text.startswith('"', self.position):
            self._fail("a key")
        key = self.value()
        assert isinstance(key, str)  # noqa: S101 # what begins with a quotation mark is a string
        if not self.text.startswith(":", self.position):
            self._fail("':'")
        self.position += 1
        self._skip_space()
        return key

    def value(self) -> JsonValue:
        """Read one whole value."""
        return self.span().value

    def span(self, key: str = "", levels: int = JSON_DEPTH) -> Span:
        """Read one whole value, nested at most ``levels`` deep, and say where its text is.

        Raises RecursionError where the caller's stack leaves no room for that.
        """
        start = self.position
        try:
            value, end = _DECODER.raw_decode(self.text, start)
        except NotJson:
            raise
        except ValueError as error:
            raise NotJson(str(error)) from error
        except RecursionError as error:
            if not nesting.is_text_deeper(self.text, start, levels):
                raise
            raise _too_deep() from error
        if nesting.is_deeper(value, levels):
            raise _too_deep()
        self.passed(end)
        return Span(key, value, start, end)

    def passed(self, end: int) -> None:
        """Go on at ``end``, the end of a value that the caller knows already."""
        self.position = end
        self._first = False
        self._skip_space()

    def finish(self) -> None:
        """Make sure that nothing follows."""
        if self.position != len(self.text):
            self._fail("the end")


def parse(text: str) -> JsonValue:
    """Read a text that is one JSON value.

    Raises:
        NotJson: it is not, has duplicate keys, NaN, Infinity, a number that no double holds, or more
            than :data:`pi_team.limits.JSON_DEPTH` levels.
    """
    reader = Reader(text)
    value = reader.value()
    reader.finish()
    return value


def members_of(text: str, start: int = 0) -> list[Span]:
    """Read the object that is the text from ``start`` on, and say where each value's text is.

    Raises:
        NotJson: as :func:`parse`, or the value is not an object.
    """
    reader = Reader(text, start)
    reader.enter("{")
    spans: list[Span] = []
    while reader.more("}"):
        spans.append(reader.span(reader.key()))
    reader.finish()
    _object([(span.key, span.value) for span in spans])
    return spans


# --- writing --------------------------------------------------------------------------------------


def canonical(value: JsonValue) -> str:
    """Write a value exactly as JavaScript's ``JSON.stringify`` does.

    Raises:
        ValueError: a number that is not finite.
        TypeError: something that JSON has no text for.
    """
    pieces: list[str] = []
    _write(value, pieces)
    text = "".join(pieces)
    return _SURROGATES.sub(_surrogate, text) if _has_surrogates(text) else text


def ordered(keys: Collection[str]) -> Iterable[str]:
    """Keys in the order of a JavaScript object: those that look like array indices first, ascending."""
    if not keys or min(keys) >= ":":  # what follows the digits: none begins with one
        return keys
    indices = sorted((key for key in keys if _is_index(key)), key=int)
    return indices + [key for key in keys if not _is_index(key)]


def well_paired(text: str) -> str:
    """Join surrogates that stand side by side into their character, as writing and reading back would."""
    if not _has_surrogates(text):
        return text
    return _SURROGATES.sub(lambda match: _joined(match) if match[1] else match[0], text)


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()  # the encoder finds one much faster than a pattern
    except UnicodeEncodeError:
        return True
    return False


def _joined(match: re.Match[str]) -> str:
    return chr(0x10000 + ((ord(match[1]) - 0xD800) << 10) + ord(match[2]) - 0xDC00)


def _surrogate(match: re.Match[str]) -> str:
    return _joined(match) if match[1] else f"\\u{ord(match[0]):04x}"


def _write(value: JsonValue, pieces: list[str]) -> None:
    if isinstance(value, str):
        pieces.append(encode_basestring(value))
    elif isinstance(value, dict):
        _write_object(value, pieces)
    elif isinstance(value, list):
        separator = "["
        for inner in value:
            pieces.append(separator)
            _write(inner, pieces)
            separator = ","
        pieces.append("]" if value else "[]")
    elif value is None:
        pieces.append("null")
    elif isinstance(value, bool):
        pieces.append("true" if value else "false")
    elif isinstance(value, (int, float)):
        pieces.append(_number(value))
    else:
        raise TypeError(f"JSON has no text for {type(value).__name__}")


def _write_object(value: dict[str, JsonValue], pieces: list[str]) -> None:
    separator = "{"
    for key in ordered(value):
        inner = value[key]
        if isinstance(inner, str):  # nearly always, and worth the shortcut
            pieces.append(f"{separator}{encode_basestring(key)}:{encode_basestring(inner)}")
        else:
            pieces.append(f"{separator}{encode_basestring(key)}:")
            _write(inner, pieces)
        separator = ","
    pieces.append("}" if value else "{}")


def _is_index(key: str) -> bool:
    return _INDEX.fullmatch(key) is not None and int(key) < _INDEX_END


def _number(value: float) -> str:
    if isinstance(value, int) and -_EXACT <= value <= _EXACT:
        return str(value)
    number = float(value)
    if not isfinite(number):
        raise ValueError(f"JSON has no text for {number}")
    if number == 0:
        return "0"
    # Python and JavaScript agree on the shortest digits that read back; only their layout differs.
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    sign = "-" if number < 0 else ""
    if len(digits) <= point <= _FIXED_POINT:
        return sign + digits.ljust(point, "0")
    if 0 < point <= _FIXED_POINT:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if _SMALLEST_FIXED_POINT < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{point - 1:+d}"

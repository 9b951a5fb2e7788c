"""The values that TLC prints in a trace, as Python values.

A sequence becomes a tuple, a set a frozenset, a record and a function a dict (a record's keys are its
field names), a string, a number and a model value themselves.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

Value: TypeAlias = "int | bool | str | tuple[Value, ...] | frozenset[Value] | FrozenMap"

_TOKEN: Final = re.compile(
    r'\s*(?:(<<|>>|\|->|:>|@@|[\[\](){},])|("(?:[^"\\]|\\.)*")|(-?\d+)|([A-Za-z_]\w*))'
)


class FrozenMap(dict["Value", "Value"]):
    """A function or record; hashable, as sets may contain one."""

    def __hash__(self) -> int:  # type: ignore[override] # dict says None: this one never changes
        """Hash the pairs, whatever their order."""
        return hash(frozenset(self.items()))


class _Reader:
    """Reads one value after another from the text of a state."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise ValueError(f"not a TLA+ value: {text[at : at + 40]!r}")
            self._tokens.append(match.group(match.lastindex or 0))
            at = match.end()
        self._next = 0

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self, expected: str | None = None) -> str:
        token = self._peek()
        if token == "" or expected not in {None, token}:
            raise ValueError(f"expected {expected!r}, found {token!r}")
        self._next += 1
        return token

    def _until(self, closing: str) -> list[Value]:
        found: list[Value] = []
        while self._peek() != closing:
            found.append(self.value())
            if self._peek() == ",":
                self._take()
        self._take(closing)
        return found

    def value(self) -> Value:
        word = self._take()
        readers: dict[str, Callable[[], Value]] = {
            "<<": lambda: tuple(self._until(">>")),
            "{": lambda: frozenset(self._until("}")),
            "[": self._record,
            "(": self._function,
            "TRUE": lambda: True,
            "FALSE": lambda: False,
        }
        if word in readers:
            return readers[word]()
        if word.startswith('"'):
            return word[1:-1]
        return int(word) if word.lstrip("-").isdigit() else word

    def _record(self) -> FrozenMap:
        fields = FrozenMap()
        while self._peek() != "]":
            key = self._take()
            self._take("|->")
            fields[key] = self.value()
            if self._peek() == ",":
                self._take()
        self._take("]")
        return fields

    def _function(self) -> FrozenMap:
        pairs = FrozenMap()
        while self._peek() != ")":
            key = self.value()
            self._take(":>")
            pairs[key] = self.value()
            if self._peek() == "@@":
                self._take()
        self._take(")")
        return pairs


def parse_value(text: str) -> Value:
    """Read one value as TLC prints it.

    Raises:
        ValueError: the text is not a value.
    """
    return _Reader(text).value()


def parse_state(text: str) -> dict[str, Value]:
    r"""Read a state: its variables, each after ``/\``."""
    state: dict[str, Value] = {}
    for conjunct in re.split(r"(?:^|\n)\s*/\\ ", "\n" + text):
        name, equals, value = conjunct.partition(" = ")
        if equals:
            state[name.strip()] = parse_value(value)
    return state


def show(value: Value) -> str:
    """Render a value in one line, with the elements of sets and functions in order."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return "<" + ", ".join(show(item) for item in value) + ">"
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(show(item) for item in value)) + "}"
    if isinstance(value, FrozenMap):
        return "[" + ", ".join(f"{show(key)}: {show(item)}" for key, item in value.items()) + "]"
    return str(value)

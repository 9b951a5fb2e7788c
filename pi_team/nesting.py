"""How deep JSON is nested, told without recursion: the answer must not depend on the caller's stack."""

from __future__ import annotations

import re
from typing import Any

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)
"""A string as a whole, or one bracket."""


def is_deeper(value: object, levels: int) -> bool:
    """Whether a value's arrays and objects are nested more than that deep."""
    level: list[Any] = [value] if type(value) is dict or type(value) is list else []
    while level and levels:
        levels -= 1
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
    return bool(level)


def is_text_deeper(text: str, start: int, levels: int) -> bool:
    """The same of the value whose text begins at ``start``, without reading it.

    What is broken may be called either: it is no JSON in any case.
    """
    depth = 0
    for match in _TOKEN.finditer(text, start):
        bracket = text[match.start()]
        if bracket in "[{":
            depth += 1
        elif bracket in "]}":
            depth -= 1
        if depth > levels:
            return True
        if depth <= 0:
            break  # the value's end
    return False

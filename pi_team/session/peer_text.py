"""Text that a peer wrote, on its way to a model or a person: harmless, framed as data, and bounded.

Peer text stands between marks that name the message's id. The id is made when the message is queued, so its
sender cannot have known it. Besides, lines of the text that look like a mark, or like the first line of a
message, are quoted, for a process that wrote the record itself knows the id. A line looks like one by its
:func:`pi_team.text.skeleton`, which names what it does not cover.

A record may hold more than this release would write, up to its own limit of bytes. So a text is cut roughly
before it is looked at, and the time that it takes is bounded as its length is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pi_team.limits import IDENTIFIER_CHARACTERS, SUBJECT_CHARACTERS
from pi_team.phrases import plural
from pi_team.text import cut, harmless, skeleton

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOOKED_AT: Final = 8
"""Characters that are looked at for each one that may be shown; the others may be controls."""
_LEFT_OUT: Final = "[… {left_out:,} more characters, left out here]"
_MARK_ROOM: Final = 60
_IMITATION: Final = re.compile(r"[\W_]*(?:(?:begin|end)[\W_]*text|pi[\W_]*team)(?![^\W_])")
"""The skeleton of a line that looks like one of ours: its words, whatever signs stand around and between."""


def bounded(text: str, characters: int, *, multiline: bool = True, quoted: bool = False) -> str:
    """Peer text, harmless, of at most so many characters; how many are left out is said in it.

    Args:
        text: what a peer wrote.
        characters: the most characters of the answer.
        multiline: whether line ends stay.
        quoted: whether lines that look like marks or headers are to be quoted.
    """
    head = text[: _LOOKED_AT * characters]
    shown = harmless(head, multiline=multiline)
    if quoted:
        shown = "\n".join(map(_quoted, shown.split("\n")))
    unread = len(text) - len(head)
    if len(shown) <= characters and not unread:
        return shown
    kept = cut(shown, characters - _MARK_ROOM, mark="")
    mark = _LEFT_OUT.format(left_out=len(shown) - len(kept) + unread)
    return f"{kept}\n{mark}" if multiline else f"{kept} {mark}"


def _quoted(text: str) -> str:
    return f"> {text}" if _IMITATION.match(skeleton(text)) else text


def line(text: str, characters: int = SUBJECT_CHARACTERS) -> str:
    """Peer text on one harmless line."""
    return bounded(text, characters, multiline=False)


def identifier(text: str) -> str:
    """An id on one harmless line; peers may choose theirs."""
    return line(text, IDENTIFIER_CHARACTERS)


def tail(text: str, characters: int) -> str:
    """The end of a path, on one harmless line, with an ellipsis where its beginning is left out."""
    end = harmless(text[-_LOOKED_AT * characters :], multiline=False)
    if len(end) <= characters and len(text) <= _LOOKED_AT * characters:
        return end
    return "…" + end[max(len(end) - characters + 1, 0) :]


def framed(message_id: str, text: str, characters: int) -> str:
    """Peer text between its marks."""
    mark = f"text of {identifier(message_id)} ---"
    return f"--- begin {mark}\n{bounded(text, characters, quoted=True)}\n--- end {mark}"


def listed(items: Sequence[str], entries: int, what: str) -> str:
    """The first items, a line each, and how many are left out."""
    lines = [f"- {item}" for item in items[:entries]]
    if len(items) > entries:
        lines.append(f"- … {plural(len(items) - entries, 'more ' + what)}, left out here")
    return "\n".join(lines)

"""How much of what enters a model's context, or a person's session, and how often (docs/limits.md).

Lengths are in code points. Whatever is cut or left out, the text itself says how much.
"""

from __future__ import annotations

import re
from typing import Final

from pi_team.limits import AUTOMATIC_TURNS

EXCERPT_CHARACTERS: Final = 500
"""Of the original request, with its result."""
DELIVERED_CHARACTERS: Final = 16_000
"""Of a message's text, in one delivery."""
DELIVERED_FILES: Final = 20
DELIVERY_CHARACTERS: Final = 24_000
"""A whole delivery or review; what its parts are cut to fits."""
FILE_CHARACTERS: Final = 200
"""Of a file's name, from its end, where it is shown."""
DIRECTORY_CHARACTERS: Final = 60
"""Of a member's working directory, from its end."""
ERROR_CHARACTERS: Final = 500
"""Of what a model's provider said, in a result that failed."""
RULES_CHARACTERS: Final = 4_000
LIST_ENTRIES: Final = 20
"""In each list of a tool's answer, of a review, and in the inbox."""
ROSTER_ENTRIES: Final = 50
COMPLETION_ENTRIES: Final = 50
SHOWN_CHARACTERS: Final = 16_000
"""Of a text that is shown to a person."""
NOTICE_CHARACTERS: Final = 1_000
TROUBLES_REMEMBERED: Final = 50
"""Distinct messages of trouble that are not told a second time."""

_NUMBER: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


def automatic_turns(setting: str | None) -> int:
    """The cap that `PI_TEAM_AUTO_TURNS` sets; 0 is none, and what is no number means the default."""
    if setting is None or not _NUMBER.fullmatch(setting.strip()):
        return AUTOMATIC_TURNS
    return int(setting)

"""How much a run of the tests explores: what CI has time for, or as much as pleases."""

from __future__ import annotations

import os
from typing import Final

LONG: Final = os.environ.get("PI_TEAM_TESTS") == "long"
"""Whether what is sampled or bounded goes far beyond an ordinary run: for hours, and anew each time."""

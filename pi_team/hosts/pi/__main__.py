"""The Python side of a Pi session: JSON lines on standard input and output, until the input ends."""

from __future__ import annotations

import sys

from pi_team.hosts.pi.bridge import main

if __name__ == "__main__":
    sys.exit(main())

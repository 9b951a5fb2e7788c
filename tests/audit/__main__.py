"""One command for a sceptic: `python tests/audit` runs the whole ladder of evidence and prints what it found.

The exit status is 0 where every rung was run and holds, 1 where one failed or was not run.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent)]

if __name__ == "__main__":
    try:
        import audit
    except ModuleNotFoundError as missing:
        sys.exit(f"The audit lacks {missing.name}: python -m pip install '.[dev]'")
    sys.exit(audit.main())

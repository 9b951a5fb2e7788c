"""How a command says that it failed: one line, or one JSON object, on standard error.

    error TEAM_UNKNOWN: there is no team "alpha". `pi-team teams` lists them.

The exit status is 1 for a refused operation, 2 for wrong usage and a question that cannot be asked,
5 for a result that did not come in time (`ask` and `wait` have 3 and 4 for what a result says).
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from typing import Final, TextIO

from pi_team.errors import InternalError, PiTeamError

__all__ = ["as_internal", "report"]

_EXIT_STATUS: Final = {"USAGE": 2, "CONFIRMATION_REQUIRED": 2, "COMMAND_NOT_FOUND": 2, "TIMED_OUT": 5}


def as_internal(defect: Exception) -> PiTeamError:
    """The error that stands for an exception nobody foresaw; PI_TEAM_DEBUG=1 prints its traceback."""
    if os.environ.get("PI_TEAM_DEBUG"):
        traceback.print_exception(defect)
    return InternalError(f"{type(defect).__name__}: {defect}")


def report(error: PiTeamError, *, as_json: bool) -> int:
    """Print the error to standard error and return the exit status of the command that ends with it."""
    from pi_team.cli.output import write  # noqa: PLC0415 - start-up

    line = json.dumps({"error": error.to_json()}) if as_json else _line(error, sys.stderr)
    with contextlib.suppress(OSError, PiTeamError):  # whoever closed standard error does not want to know
        write(line, sys.stderr)
    return _EXIT_STATUS.get(error.code, 1)


def _line(error: PiTeamError, stream: TextIO | None) -> str:
    from pi_team.cli.output import coloured, paint  # noqa: PLC0415 - start-up
    from pi_team.text import harmless  # noqa: PLC0415 - start-up

    def one_line(text: str) -> str:
        return harmless(text, multiline=False).strip()

    colour = coloured(stream)
    message = one_line(error.message)
    stop = "" if not error.hint or message.endswith((".", "!", "?")) else "."
    line = (
        f"{paint('error', 'red', on=colour)} {paint(error.code, 'bold', on=colour)}: "
        f"{message}{stop} {paint(one_line(error.hint), 'dim', on=colour and bool(error.hint))}"
    )
    return line.rstrip()

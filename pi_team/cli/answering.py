"""Answering one request with a command: what it is given, and what its ending makes of the result."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import time
from typing import TYPE_CHECKING, Final

from pi_team import limits
from pi_team.cli.objects import message_object
from pi_team.cli.runner import CommandRun
from pi_team.cli.signals import shielded
from pi_team.domain.model import Report
from pi_team.domain.reports import report_bytes
from pi_team.text import head_and_tail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pi_team.domain.model import Membership, Message

__all__ = ["answer"]

_ERROR_BYTES: Final = 4_000
"""How much of the command's standard error a failed result tells, from its end."""
_BODY_BYTES: Final = limits.REPORT_BYTES - report_bytes(Report("completed", "")) + len('""')
_WORD: Final = re.compile(rf"[\w.-]{{1,{limits.IDENTIFIER_CHARACTERS}}}", re.ASCII)


def answer(
    command: Sequence[str],
    request: Message,
    owner: Membership,
    *,
    timeout: float | None,
    meanwhile: Callable[[], float],
) -> Report:
    """Run the command on the request and report how it ended; however this ends, the command has ended too.

    Args:
        command: its words.
        request: what it gets as a JSON object on standard input.
        owner: who answers.
        timeout: seconds after which it is ended and has failed.
        meanwhile: called again and again while it runs; the seconds until it wants to be called again.

    Returns:
        A report within its limits: completed with the standard output when the exit status is 0, else
        failed with the tail of standard error.
    """
    run: CommandRun | None = None
    late = False
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    try:
        with shielded():
            run = CommandRun(
                command,
                environment=_environment(request, owner),
                standard_input=json.dumps(message_object(request)).encode(),
                output_characters=limits.STORED_BODY_CHARACTERS,
                error_bytes=_ERROR_BYTES,
            )
        while not run.pump(max(min(meanwhile(), deadline - time.monotonic()), 0)):
            late = time.monotonic() >= deadline
            if late:
                break
    except OSError as error:
        return Report("failed", f"The command could not be started: {error.strerror}.")
    finally:
        if run is not None:
            with shielded():
                run.end()
    return _report(run, f"It was ended after {timeout:g} s." if late else "")


def _environment(request: Message, owner: Membership) -> dict[str, str]:
    """The environment, with names and ids only: nothing that a peer could write as it likes."""
    environment = os.environ | {
        "PI_TEAM_TEAM": owner.team,
        "PI_TEAM_ALIAS": owner.alias,
        "PI_TEAM_FROM": request.sender,
        "PI_TEAM_ID": request.id,
    }
    if not _WORD.fullmatch(request.id):  # an older or foreign peer chose it
        del environment["PI_TEAM_ID"]
    return environment


def _report(run: CommandRun, ended: str) -> Report:
    if run.status == 0 and not ended:
        return Report("completed", run.output.text(_BODY_BYTES).rstrip("\n"))
    parts = [f"The command failed. {ended or _ending(run.status)}"]
    if run.errors.strip():
        parts.append("Standard error:\n" + run.errors.rstrip("\n"))
    if run.output.length:
        parts.append("Standard output:\n" + run.output.text(_BODY_BYTES).rstrip("\n"))
    return Report("failed", head_and_tail("\n\n".join(parts), limits.STORED_BODY_CHARACTERS, _BODY_BYTES))


def _ending(status: int | None) -> str:
    if status is None:
        return "It could not be ended."
    if status >= 0:
        return f"Its exit status was {status}."
    try:
        return f"It was ended by {signal.Signals(-status).name}."
    except ValueError:
        return f"It was ended by signal {-status}."

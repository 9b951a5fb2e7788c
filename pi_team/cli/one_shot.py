"""Being a member for the moment of one command."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pi_team import limits
from pi_team.cli.signals import shielded
from pi_team.errors import LimitBody, MembershipLost, PiTeamError, TeamMoved, TeamUnknown, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_team.cli.output import Output
    from pi_team.domain.model import Membership
    from pi_team.mailbox import Mailbox

__all__ = ["joined", "text_of"]

_INPUT_BYTES: Final = 65_536
"""The most of standard input that is read: newlines at its end do not count, but come to an end."""


@contextmanager
def joined(
    mailbox: Mailbox, output: Output, team: str, alias: str, *, wait: float = 0.0
) -> Iterator[Membership]:
    """Join for the time of the block, and leave however it ends.

    Args:
        mailbox: the teams.
        output: where a leave that fails is remarked; it does not change how the command ends, because
            a member whose process has exited is noticed by the others.
        team: the team.
        alias: the own alias.
        wait: seconds to wait for another one-shot command that uses the alias.
    """
    owner: Membership | None = None
    try:
        with shielded():
            owner = mailbox.join(team, alias, wait=wait)
        yield owner
    finally:
        if owner is not None:
            with shielded():
                _leave(mailbox, output, owner)


def _leave(mailbox: Mailbox, output: Output, owner: Membership) -> None:
    try:
        mailbox.leave(owner)
    except (MembershipLost, TeamUnknown, TeamMoved):
        pass  # removed, renamed away or deleted meanwhile: there is nothing left to leave
    except PiTeamError as error:
        output.remark(f"could not leave {owner.team}: {error.message}; the others will notice by themselves")


def text_of(argument: str) -> str:
    """The TEXT of a message: the argument, or standard input for `-`, without the newlines at its end.

    Raises:
        UsageError: nothing in it but white space, or not valid UTF-8.
        LimitBody: standard input is longer than a body may be; a flood is not read to its end.
    """
    if argument == "-":
        text = _standard_input()
        if not text.strip():
            raise UsageError("standard input is blank", hint="TEXT is read from it: say something there.")
        return text
    if any("\udc80" <= character <= "\udcff" for character in argument):
        raise UsageError("TEXT is not valid UTF-8", hint="Put it into a file in UTF-8 and give - for TEXT.")
    if not argument.strip():
        raise UsageError("TEXT is blank", hint="Say something, or give - to read it from standard input.")
    return argument.rstrip("\n")


def _standard_input() -> str:
    if sys.stdin is None:
        raise UsageError("there is no standard input to read TEXT from", hint="Give TEXT as an argument.")
    octets = sys.stdin.buffer.read(_INPUT_BYTES)
    text = octets.rstrip(b"\n")
    if len(text) > limits.BODY_BYTES or len(octets) == _INPUT_BYTES:
        raise LimitBody(f"standard input is longer than {limits.BODY_BYTES:,} bytes")
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"standard input is not valid UTF-8: byte {error.start + 1}",
            hint="Convert it first, with iconv for example.",
        ) from error

"""Arguments and options that several commands share, with what completes them.

Completion looks at the record without a lock. Its failures are silent: `main` sees to that.
"""

from __future__ import annotations

import math
import os
import re
import sys
from typing import TYPE_CHECKING, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from pi_team._version import __version__
from pi_team.cli.output import write
from pi_team.text import fit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pi_team.domain.model import Message
    from pi_team.domain.views import TeamView
    from pi_team.mailbox import Mailbox

__all__ = [
    "ALIAS_VARIABLE",
    "alias_argument",
    "any_team_argument",
    "as_option",
    "help_option",
    "json_option",
    "limit_option",
    "member_argument",
    "reply_option",
    "request_argument",
    "team_argument",
    "timeout_option",
    "version_option",
    "yes_option",
]

_Command = TypeVar("_Command", bound="Callable[..., object] | click.Command")

ALIAS_VARIABLE: Final = "PI_TEAM_ALIAS"
"""The environment variable that `--as` defaults to."""
_HELP_CELLS: Final = 50
_WORD: Final = re.compile(r"[\w.-]+", re.ASCII)


def _mailbox() -> Mailbox:
    from pi_team.mailbox import Mailbox  # noqa: PLC0415 - only a completion needs it here

    return Mailbox()


def _items(words: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def _look(ctx: click.Context) -> TeamView:
    """The team of the line being typed; behind an option without its value click has not yet named it."""
    return _mailbox().look(ctx.params.get("team") or ctx.args[0])


def _own_alias(ctx: click.Context) -> str | None:
    return ctx.params.get("me") or os.environ.get(ALIAS_VARIABLE)


def _teams(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _items(_mailbox().teams(), incomplete)


def _members(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Every alias of the team."""
    view = _look(ctx)
    return _items((entry.member.alias for entry in view.members), incomplete)


def _teammates(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Every alias of the team but the own one."""
    own = _own_alias(ctx)
    view = _look(ctx)
    return _items((entry.member.alias for entry in view.members if entry.member.alias != own), incomplete)


def _messages(ctx: click.Context, incomplete: str, *, requests_only: bool) -> list[CompletionItem]:
    """Ids of the messages that involve the own alias, the newest first, with their subjects.

    A peer chooses its ids: one that a shell would read as more than a word is not offered.
    """
    own = _own_alias(ctx)

    def fits(message: Message) -> bool:
        if requests_only:
            return message.kind == "request" and own in {None, message.sender}
        return own in {None, message.sender, message.recipient}

    messages = reversed(_look(ctx).messages)
    return [
        CompletionItem(message.id, help=fit(message.subject, _HELP_CELLS))
        for message in messages
        if message.id.startswith(incomplete) and _WORD.fullmatch(message.id) and fits(message)
    ]


def _requests(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _messages(ctx, incomplete, requests_only=True)


def _parents(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _messages(ctx, incomplete, requests_only=False)


def _not_nan(_ctx: click.Context, _param: click.Parameter, value: float | None) -> float | None:
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is not a number of seconds")
    return value


def _seconds_option(name: str, help_text: str) -> Callable[[_Command], _Command]:
    seconds = click.FloatRange(min=0, min_open=True)
    return click.option(name, metavar="SECONDS", type=seconds, callback=_not_nan, help=help_text)


team_argument = click.argument("team", shell_complete=_teams)
any_team_argument = click.argument("team", required=False, shell_complete=_teams)
alias_argument = click.argument("alias", shell_complete=_teammates)
member_argument = click.argument("alias", shell_complete=_members)
request_argument = click.argument("identifier", metavar="ID", shell_complete=_requests)
as_option = click.option(
    "--as",
    "me",
    metavar="ALIAS",
    envvar=ALIAS_VARIABLE,
    show_envvar=True,
    required=True,
    help="Your own alias in the team.",
    shell_complete=_members,
)
reply_option = click.option(
    "--reply-to",
    "parent",
    metavar="ID",
    help="The message that this one follows up, in its thread; the beginning of its id will do.",
    shell_complete=_parents,
)
timeout_option = _seconds_option("--timeout", "Give up waiting after so many seconds; without it, never.")
limit_option = _seconds_option("--timeout", "End CMD after so many seconds, and fail the request.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
_json_option = click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    help="Print JSON, also for errors (on standard error).",
)


def _show_help(ctx: click.Context, _param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's
    if value and not ctx.resilient_parsing:
        write(ctx.get_help(), sys.stdout)
        ctx.exit()


def _show_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's
    if value and not ctx.resilient_parsing:
        write(f"{ctx.find_root().info_name} {__version__}", sys.stdout)
        ctx.exit()


def _telling_option(
    *names: str, callback: Callable[..., None], help_text: str
) -> Callable[[_Command], _Command]:
    """An option that prints something and ends, as click's own; those would print past `write`."""
    return click.option(
        *names, is_flag=True, is_eager=True, expose_value=False, callback=callback, help=help_text
    )


help_option = _telling_option("-h", "--help", callback=_show_help, help_text="Show this message and exit.")
version_option = _telling_option("--version", callback=_show_version, help_text="Show the version and exit.")


def json_option(command: _Command) -> _Command:
    """What every command has: --json and --help."""
    return _json_option(help_option(command))

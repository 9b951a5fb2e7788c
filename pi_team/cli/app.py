"""The command's table of contents: a click group that imports a sub-command only when it is run.

The sub-command `rename-team` is the attribute `rename_team` of the module named here. The short help
stands here too, so that `pi-team --help` and completion import nothing; a test keeps it equal to what
the command itself says.
"""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from pi_team.cli.parameters import help_option, version_option

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = ["SECTIONS", "app"]


class Entry(NamedTuple):
    """Where a sub-command is and what it does."""

    module: str
    help: str


SECTIONS: Final = {
    "Begin": {
        "demo": Entry("demo", "See it at work, crashes included, in a temporary directory."),
        "create": Entry("teams", "Create a team."),
        "teams": Entry("looks", "List the teams."),
    },
    "Exchange messages": {
        "send": Entry("messages", "Queue a request or a note for a member."),
        "ask": Entry("results", "Queue a request and wait for its result."),
        "wait": Entry("results", "Wait for the result of a request asked earlier."),
        "inbox": Entry("messages", "Show and take your notes and results."),
        "work": Entry("work", "Be a member that answers requests with a command."),
    },
    "Look without joining": {
        "members": Entry("looks", "List the members with their presence."),
        "status": Entry("looks", "Show who owes whom a result."),
        "log": Entry("looks", "List the messages, oldest first."),
        "watch": Entry("watch", "Keep a live view of a team open."),
    },
    "Manage teams and members": {
        "rename-team": Entry("teams", "Rename a team whose members have left."),
        "delete": Entry("teams", "Delete a team whose members have left."),
        "rename-member": Entry("members", "Give a member that is offline another alias."),
        "remove": Entry("members", "Remove a member that is offline."),
    },
    "The Pi coding agent": {
        "pi": Entry("pi", "Put the Pi extension into Pi's settings, or take it out."),
    },
    "Mend": {
        "doctor": Entry("doctor", "Check files, permissions and locks; say what mends them."),
        "recover": Entry("doctor", "Restore an intact revision of a damaged record."),
    },
    "Shell": {
        "completion": Entry("completion", "Print the completion script for a shell."),
    },
}

_ENTRIES: Final = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class CommandGroup(click.Group):
    """The sub-commands of :data:`SECTIONS`, imported one at a time."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names, in the order of the sections."""
        return list(_ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        """Import the sub-command."""
        entry = _ENTRIES.get(cmd_name)
        if entry is None:
            return None
        module = importlib.import_module(f"pi_team.cli.{entry.module}")
        command = getattr(module, cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command)  # noqa: S101 - the table is ours
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The sub-command of that name; for an unknown one, say which are like it."""
        name = args[0]
        if name not in _ENTRIES and not name.startswith("-") and not ctx.resilient_parsing:
            alike = difflib.get_close_matches(name, _ENTRIES)
            question = f"; did you mean {' or '.join(alike)}?" if alike else ""
            raise click.UsageError(f'there is no command "{name}"{question}', ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """The sections, from the table alone."""
        widest = max(map(len, _ENTRIES))
        for title, entries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), entry.help) for name, entry in entries.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names from the table alone; options as click finds them."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only completion needs it

        names = [
            CompletionItem(name, help=entry.help)
            for name, entry in _ENTRIES.items()
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)


app: Final = CommandGroup(
    name="pi-team",
    help="Named teams of agent sessions on one machine: requests, notes and results in local files.",
    epilog=(
        "Every command has --json. Teams are kept in $PI_CODING_AGENT_DIR/teams, or ~/.pi/agent/teams. "
        "`pi-team COMMAND --help` tells more; `pi-team demo` shows it at work."
    ),
    context_settings={"max_content_width": 100},
)
help_option(version_option(app))

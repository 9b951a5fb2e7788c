"""`pi-team completion`: the script that makes a shell complete commands, teams, aliases and ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import get_completion_class

from pi_team.cli.app import app
from pi_team.cli.parameters import json_option

if TYPE_CHECKING:
    from pi_team.cli.output import Output

__all__ = ["completion"]

_INSTALL: Final = {
    "bash": """eval "$(pi-team completion bash)"   # in ~/.bashrc""",
    "zsh": """eval "$(pi-team completion zsh)"   # in ~/.zshrc, after compinit""",
    "fish": "pi-team completion fish > ~/.config/fish/completions/pi-team.fish",
}


@click.command(short_help="Print the completion script for a shell.")
@click.argument("shell", type=click.Choice(list(_INSTALL)))
@json_option
@click.pass_obj
def completion(output: Output, *, shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    bash: eval "$(pi-team completion bash)"    in ~/.bashrc
    zsh:  eval "$(pi-team completion zsh)"     in ~/.zshrc, after compinit
    fish: pi-team completion fish > ~/.config/fish/completions/pi-team.fish

    It completes commands and options, the names of teams, aliases (never your own) and message ids.
    """  # noqa: D301 - click's mark for a block to leave as it is, is the character itself
    maker = get_completion_class(shell)
    assert maker is not None  # noqa: S101 - click has these three
    script = maker(app, {}, "pi-team", "_PI_TEAM_COMPLETE").source()
    output.block(f"{script}\n# To install it: {_INSTALL[shell]}")
    output.json({"shell": shell, "script": script, "install": _INSTALL[shell]})

"""The subcommands of `/team`: what each is for, and which arguments it takes."""

from __future__ import annotations

import re
from typing import Final

import attrs

_WORD: Final = re.compile(r"\S+")


@attrs.frozen
class Usage:
    """A command for its user.

    Attributes:
        arguments: their names; one in brackets may be left out.
        says: what the command does, in a few words.
        joined: whether it is for members only.
        rest: whether the last argument is the rest of the line as it is.
    """

    arguments: tuple[str, ...]
    says: str
    joined: bool = True
    rest: bool = False

    @property
    def may_end(self) -> bool:
        """Whether the name alone is a whole command."""
        return all(argument.startswith("[") for argument in self.arguments)


COMMANDS: Final = {
    "send": Usage(("ALIAS", "TEXT"), "ask a teammate for something", rest=True),
    "note": Usage(("ALIAS", "TEXT"), "tell a teammate something", rest=True),
    "members": Usage((), "show your teammates"),
    "status": Usage((), "show what this session does, who owes whom"),
    "inbox": Usage((), "show the last messages, without taking them"),
    "wake": Usage(("[TEXT]",), "ask every teammate to check in", rest=True),
    "pause": Usage((), "let requests and results wait"),
    "resume": Usage((), "receive again"),
    "leave": Usage((), "leave; present work is reported first"),
    "join": Usage(("TEAM", "ALIAS"), "make this session a member", joined=False),
    "create": Usage(("TEAM",), "make a team", joined=False),
    "list": Usage((), "show the teams", joined=False),
    "rename-member": Usage(("ALIAS", "NEW"), "rename yourself or one offline"),
    "remove": Usage(("ALIAS",), "remove an offline member"),
    "rename-team": Usage(("TEAM", "NEW"), "rename a team that nobody is in", joined=False),
    "delete": Usage(("TEAM",), "delete a team that nobody is in", joined=False),
    "help": Usage((), "show these commands", joined=False),
}
"""In the order in which they are offered: what members need most comes first."""


def usage_line(name: str, usage: Usage) -> str:
    """The command with the names of its arguments."""
    return " ".join(["/team", name, *usage.arguments])


def split(text: str) -> tuple[str, str]:
    """The first word, and what follows it."""
    match = _WORD.search(text)
    return ("", "") if match is None else (match[0], text[match.end() :].strip())


def arguments(usage: Usage, rest: str) -> list[str] | None:
    """The arguments; None where they are too few or too many."""
    names = list(usage.arguments)
    optional = sum(name.startswith("[") for name in names)
    found: list[str] = []
    while rest and len(found) < len(names):
        if usage.rest and len(found) == len(names) - 1:
            found.append(rest)
            rest = ""
        else:
            word, rest = split(rest)
            found.append(word)
    if rest or len(found) < len(names) - optional:
        return None
    return found

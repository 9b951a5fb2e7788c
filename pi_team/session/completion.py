"""What may follow behind `/team `: subcommands, then teams or teammates. It works in no team too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_team.errors import PiTeamError
from pi_team.session import bounds
from pi_team.session.usage import COMMANDS

if TYPE_CHECKING:
    from pi_team.session.context import Context


def complete(context: Context, prefix: str) -> list[dict[str, str]]:
    """The continuations; each `value` replaces the whole of what was typed. None where looking fails."""
    words = prefix.split()
    if not words or (len(words) == 1 and not prefix[-1].isspace()):
        typed = words[0] if words else ""
        return [
            {"value": name + (" " if usage.arguments else ""), "label": name, "description": usage.says}
            for name, usage in COMMANDS.items()
            if name.startswith(typed)
            and (context.is_joined or not usage.joined)
            and not (name == typed and usage.may_end)  # a menu would take the Enter that submits it
        ]
    typed = "" if prefix[-1].isspace() else words.pop()
    usage = COMMANDS.get(words[0])
    position = len(words) - 1
    if usage is None or position >= len(usage.arguments):
        return []
    try:
        names = _names(context, words, usage.arguments[position])
    except PiTeamError:
        return []
    last = position == len(usage.arguments) - 1
    if last and any(name == typed for name, _ in names):
        return []  # likewise
    found = [
        {"value": " ".join([*words, name]) + ("" if last else " "), "label": name, "description": says}
        for name, says in names
        if name.startswith(typed)
    ]
    return found[: bounds.COMPLETION_ENTRIES]


def _names(context: Context, words: list[str], argument: str) -> list[tuple[str, str]]:
    if argument == "TEAM" and words[0] != "create":
        return [(team, "team") for team in context.mailbox.teams()]
    if argument != "ALIAS":
        return []
    if words[0] == "join":
        # Whoever comes back finds the aliases that nobody holds.
        places = context.mailbox.look(words[1]).members
        return [(place.member.alias, "offline") for place in places if place.displayed == "offline"]
    if not context.is_joined:
        return []
    snapshot = context.mailbox.snapshot(context.owner)
    return [
        (place.member.alias, place.displayed)
        for place in snapshot.members
        if place.member.alias != snapshot.alias
    ]

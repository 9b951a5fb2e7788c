"""The public operations, found by introspection, and how each is carried out on the teams of `grounds`.

A public method of a mailbox without a recipe is told by :func:`missing`, and so has to get one: the crash
matrix is made from the two.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

import evidence
from grounds import COMPLETED, Ground

if TYPE_CHECKING:
    from pathlib import Path

    from grounds import Kind

State: TypeAlias = "dict[str, tuple[Any, Any]]"
BYSTANDERS: Final = "the bystander's"
"""How the subjects begin of what others send while, or after, something befalls a victim."""


@attrs.frozen
class Operation:
    """An operation of a victim.

    Attributes:
        do: its name.
        team: on which team, where nobody owns it; "" where it is about no team.
        owner: as which member of `crew`.
        actor: as which member of `crew`, where that is an option.
        message: on the message of that subject.
        back: to the revision that many below the record's.
        args, kwargs: its further arguments.
        first: what the victim does before, undisturbed.
        repeated: whether half of it waits for the same operation, as half a rename of a team does.
        judges: whether it does nothing where somebody cannot be judged.
    """

    do: str
    team: str = "crew"
    owner: str = ""
    actor: str = ""
    message: str = ""
    back: int = 0
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = attrs.field(factory=dict)
    first: tuple[Operation, ...] = ()
    repeated: bool = False
    judges: bool = False

    def order(self, field: Ground) -> tuple[list[Any], dict[str, Any]]:
        """What an actor is to be told."""
        whose = field.owners[self.owner] if self.owner else self.team
        args: list[Any] = [self.do, *([whose] if whose else [])]
        if self.message:
            args.append(field.ids[self.message])
        if self.back:
            args.append(field.revision - self.back)
        kwargs = self.kwargs | ({"actor": field.owners[self.actor]} if self.actor else {})
        return [*args, *self.args], kwargs


NOTE: Final = {"kind": "note", "subject": "the victim's", "body": "x"}
OPERATIONS: Final = {
    "send": Operation("send", owner="alice", args=("bob",), kwargs=NOTE),
    "notes": Operation("notes", owner="alice"),
    "claim": Operation("claim", owner="carol"),
    "release": Operation("release", owner="bob", message="at work"),
    "settle": Operation("settle", owner="bob", message="at work", args=(COMPLETED,)),
    "leave with a claim": Operation("leave", owner="bob"),
    "join": Operation("join", args=("newcomer",)),
    "join a dead alias": Operation("join", args=("ghost",)),
    "sweep": Operation("sweep", owner="alice", judges=True),
    "rename myself": Operation("rename_member", actor="alice", args=("alice", "anna")),
    "rename another": Operation("rename_member", actor="alice", args=("erin", "eric")),
    "remove the dead": Operation("remove_member", args=("ghost",)),
    "heartbeat": Operation("heartbeat", owner="alice", args=("busy",)),
    "create": Operation("create", team="third", repeated=True),
    "rename a team": Operation("rename_team", team="quiet", args=("hushed",), repeated=True),
    "delete a team": Operation("delete_team", team="quiet", repeated=True),
    "recover": Operation("recover", back=2),
}
"""What changes something."""
_LOOK: Final = Operation("look")
_HEARTBEAT: Final = OPERATIONS["heartbeat"]
LOOKS: Final = {
    "look": _LOOK,
    "snapshot": Operation("snapshot", owner="alice"),
    "teams": Operation("teams", team=""),
    "changes": Operation("changes"),
    "revisions": Operation("revisions"),
    "doctor": Operation("doctor", team=""),
    "close": Operation("close", team="", first=(_LOOK, _HEARTBEAT)),
    "next heartbeat": attrs.evolve(_HEARTBEAT, first=(_HEARTBEAT,)),
}
"""What changes no record, unless it completes what others left."""
RECIPES: Final = OPERATIONS | LOOKS
_DAMAGED: Final = ("recover", Operation("recover", repeated=True))
_MORE_KINDS: Final[dict[str, tuple[Kind, ...]]] = {
    "send": ("locked", "future", "pending", "lost", "long", "pruning"),
    "look": ("pending", "lost"),
    "join": ("locked", "pending"),
}
_EVERY_KIND: Final[tuple[Kind, ...]] = ("locked", "future", "pending", "lost", "pruning")


def public_methods(*services: type) -> set[str]:
    """The public methods of classes, inherited ones too."""
    return {
        name
        for service in services
        for name, _ in inspect.getmembers(service, inspect.isfunction)
        if not name.startswith("_")
    }


def missing(*services: type) -> set[str]:
    """The public methods that no recipe carries out, and those of recipes that are none."""
    return public_methods(*services) ^ {operation.do for operation in RECIPES.values()}


def recipe(name: str, kind: Kind = "plain") -> Operation:
    """The operation of that name, on teams of that kind."""
    return _DAMAGED[1] if (name, kind) == (_DAMAGED[0], "damaged") else RECIPES[name]


def pairs(*, full: bool = False) -> list[tuple[str, Kind]]:
    """Which operations are carried out on which kinds of teams.

    Each on teams as they were left, and those with which a session begins also where something was left
    behind; with `full`, each operation on `crew`.
    """
    chosen: list[tuple[str, Kind]] = [(name, "plain") for name in RECIPES]
    for name, operation in RECIPES.items():
        more = _MORE_KINDS.get(name, ())
        if full and operation.team == "crew":
            more = tuple(dict.fromkeys((*more, *_EVERY_KIND)))
        chosen += [(name, kind) for kind in more]
    return [*chosen, (_DAMAGED[0], "damaged")]


def state(path: Path) -> State:
    """Each team's members and messages, without what differs from run to run."""
    teams: State = {}
    for team in sorted(path.iterdir()):
        if not team.name.startswith("."):
            payload = evidence.payload(team)
            members = tuple((member["alias"], member["status"]) for member in payload["members"])
            teams[team.name] = (members, tuple(map(_message, payload["messages"])))
    return teams


def _message(message: dict[str, Any]) -> tuple[Any, ...]:
    outcome = message["result"]["outcome"] if "result" in message else None
    fields = ("team", "from", "to", "subject", "kind", "state")
    return (*(message[field] for field in fields), "claim" in message, outcome)


def without_bystanders(teams: State) -> State:
    """The state without what the others sent."""
    return {
        team: (members, tuple(one for one in messages if not one[3].startswith(BYSTANDERS)))
        for team, (members, messages) in teams.items()
    }

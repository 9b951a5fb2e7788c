"""Operations that are interrupted at each of their system calls, and what has to hold afterwards."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

import evidence
from grounds import COMPLETED, Ground, ground
from nursery import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from grounds import Kind
    from nursery import Actor, Nursery

LIFETIME: Final = 0.3
OPTIONS: Final[dict[str, Any]] = {
    "lock_lifetime": LIFETIME,
    "patience": 20.0,
    "interval": 0.2,
    "unsynced": True,
}
CHANGING: Final = {"create", "mkdir", "write", "fsync", "link", "rename", "unlink", "rmdir", "touch"}
"""The system calls that change something; between two others the disk is the same."""
BYSTANDERS: Final = "the bystander's"
State: TypeAlias = "dict[str, tuple[Any, Any]]"


@attrs.frozen
class Operation:
    """An operation of a victim.

    Attributes:
        do: its name.
        team: on which team, where nobody owns it.
        owner: as which member of `crew`.
        actor: as which member of `crew`, where that is an option.
        message: on the message of that subject.
        args, kwargs: its further arguments.
    """

    do: str
    team: str = "crew"
    owner: str = ""
    actor: str = ""
    message: str = ""
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = attrs.field(factory=dict)

    def order(self, field: Ground) -> tuple[list[Any], dict[str, Any]]:
        """What an actor is to be told."""
        args: list[Any] = [self.do, field.owners[self.owner] if self.owner else self.team]
        if self.message:
            args.append(field.ids[self.message])
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
    "sweep": Operation("sweep", owner="alice"),
    "rename myself": Operation("rename_member", actor="alice", args=("alice", "anna")),
    "rename another": Operation("rename_member", actor="alice", args=("erin", "eric")),
    "remove the dead": Operation("remove_member", args=("ghost",)),
    "heartbeat": Operation("heartbeat", owner="alice", args=("busy",)),
    "create": Operation("create", team="third"),
    "rename a team": Operation("rename_team", team="quiet", args=("hushed",)),
    "delete a team": Operation("delete_team", team="quiet"),
    "recover": Operation("recover", args=(17,)),
}


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


def _without_bystanders(teams: State) -> State:
    members, messages = teams["crew"]
    kept = tuple(message for message in messages if message[3] != BYSTANDERS)
    assert len(messages) - len(kept) == 1, "the bystander's message has to be there once"
    return teams | {"crew": (members, kept)}


class Trial:
    """Runs one operation again and again on fresh teams, each time interrupted elsewhere.

    Args:
        nursery: forks the victims.
        root: a directory to work in.
        name: which of the operations.
        kind: which kind of teams.

    Attributes:
        before, after: the teams without the operation, and with it.
        calls: the system calls of the undisturbed operation: method, name, error.
        audited: its audit events.
    """

    def __init__(self, nursery: Nursery, root: Path, name: str, kind: Kind = "plain") -> None:
        self._nursery = nursery
        self._root = root
        self._operation = OPERATIONS[name]
        self._kind: Kind = kind
        self._numbers = itertools.count()
        self._bystander = nursery.actor(root / "nowhere", **OPTIONS)
        field, victim = self.begin()
        victim.ask("look", "crew")  # which installs what is pending, and else changes nothing
        self.before = state(field.path)
        self.end(field, victim)
        field, victim = self.begin()
        victim.ask("audit", "kill", nth=0)
        victim.ask("count")
        self.order(victim, field)
        victim.answer()
        self.audited: list[str] = victim.ask("audited")
        self.calls: list[tuple[str, str, str]] = victim.ask("calls")
        self.after = state(field.path)
        self.end(field, victim)

    def break_bystander(self, rule: str) -> None:
        """Take a rule out of the protocol for whoever comes after the victim."""
        self._bystander.ask("break", rule)

    def begin(self) -> tuple[Ground, Actor]:
        """Fresh teams and a victim."""
        field = ground(self._root / str(next(self._numbers)), self._kind)
        return field, self._nursery.actor(field.path, **OPTIONS)

    def order(self, victim: Actor, field: Ground) -> None:
        """Let the victim begin."""
        args, kwargs = self._operation.order(field)
        victim.begin(*args, **kwargs)

    def end(self, field: Ground, victim: Actor) -> None:
        """Clear up."""
        victim.discard()
        shutil.rmtree(field.path.parent)

    def check(self, field: Ground, **options: Any) -> None:
        """Assert what has to hold after a victim of the operation has died."""
        assert evidence.revision(field.crew) >= field.revision
        bystander = self._bystander
        bystander.ask("open", str(field.path), **OPTIONS | options)
        sent = bystander.ask("send", field.owners["dora"], "carol", kind="note", subject=BYSTANDERS, body="x")
        assert sent["state"] == "pending"
        if self._operation.owner or self._operation.team == "crew":
            assert _without_bystanders(state(field.path)) in (self.before, self.after)
        else:
            # Half a rename waits for the same rename; half a creation or deletion is none.
            with contextlib.suppress(Refused):
                args, kwargs = self._operation.order(field)
                bystander.ask(*args, **kwargs)
            assert _without_bystanders(state(field.path)) == self.after
        heal(bystander, field.path)
        assert evidence.strays(field.path) == []


def heal(actor: Actor, path: Path, *, recover: bool = False) -> list[str]:
    """Run the command of each finding as it is printed, until `doctor` is content; the findings' codes.

    With `recover` that command is an order to the actor, which is faster a hundred times over.
    """
    codes: list[str] = []
    for _ in range(4):
        findings = actor.ask("doctor")
        if not findings:
            return codes
        for finding in findings:
            codes.append(finding["code"])
            assert finding["command"], finding
            if recover and finding["command"] == f"pi-team recover {finding['team']} --yes":
                actor.ask("recover", finding["team"])
            else:
                shell(finding["command"], path)
    raise AssertionError(f"doctor is not content: {findings}")


def shell(command: str, path: Path) -> str:
    """Run a command as a person would, its teams directory being `path`; what it printed."""
    environment = os.environ | {
        "PI_CODING_AGENT_DIR": str(path.parent),
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]),
    }
    ended = subprocess.run(
        ["sh", "-c", command], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, f"{command}: {ended.stderr}"
    return ended.stdout

"""Teams to do harm to: built once, unpacked for each case, with members whose processes are real.

`crew` has members that live as long as the tests, a ghost that died at its work, and messages in every
state; in `quiet` nobody is connected.
"""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import attrs

import evidence
import nursery as nurseries
from nursery import Died
from pi_team.domain.model import Membership, Report

if TYPE_CHECKING:
    from nursery import Actor

LIVING: Final = ("alice", "bob", "carol", "dora")
KEPT: Final = 4
PENDING: Final = "not installed"
GARBAGE: Final = b'{"schemaVersion":1,"revision":19,\0\0\0'
Kind: TypeAlias = Literal["plain", "locked", "future", "pending", "lost", "long", "pruning", "damaged"]
"""As it was left; with both locks of a dead writer; these from an hour ahead, as a clock that was set back
leaves them; with its publication linked and not installed too; that, and its private file lost, as in a power
cut; with 32 slots; with so many that the next write prunes; with garbage in place of the record."""
_MADE_FROM: Final[dict[Kind, Kind]] = {"future": "locked", "damaged": "plain"}
_LOCKED: Final = {"locked", "future", "pending", "lost"}
COMPLETED: Final = {"outcome": "completed", "body": "done", "files": [], "tests": []}


def membership(value: dict[str, Any]) -> Membership:
    """A membership from an object with its keys."""
    return Membership(value["team"], value["alias"], value["session"], value["token"])


def as_given(value: Any) -> Any:
    """An argument as the mailbox takes it: memberships and reports are told by their keys."""
    if isinstance(value, dict) and "token" in value:
        return membership(value)
    if isinstance(value, dict) and "outcome" in value:
        return Report(value["outcome"], value["body"], tuple(value["files"]), tuple(value["tests"]))
    return value


@attrs.frozen
class Ground:
    """An unpacked teams directory.

    Attributes:
        path: the teams directory.
        owners: the memberships of `crew` by alias, of dead members too.
        ids: message ids by subject.
        revision: of `crew`.
    """

    path: Path
    owners: dict[str, Any]
    ids: dict[str, str]
    revision: int

    @property
    def crew(self) -> Path:
        """The directory of the team."""
        return self.path / "crew"


def ground(root: Path, kind: Kind = "plain") -> Ground:
    """A fresh copy of the teams below `root`, an empty directory; which kind of `crew`, see :data:`Kind`."""
    _, owners, ids = _template()
    evidence.unpack(_packed(_MADE_FROM.get(kind, kind)), root)
    crew = root / "teams" / "crew"
    field = Ground(root / "teams", owners, ids, evidence.revision(crew))
    if kind == "damaged":
        (crew / "state.json").unlink()
        (crew / "state.json").touch(mode=0o600)
        (crew / "state.json").write_bytes(GARBAGE)
    elif kind in _LOCKED:
        # Not as young as they happen to be: what is done about a lock depends on its age.
        then = time.time() + (3_600 if kind == "future" else -5)
        for lock in (field.path / ".locks" / "crew.lock", crew / "state.json.lock"):
            os.utime(lock, (then, then))
    return field


@functools.cache
def _template() -> tuple[bytes, dict[str, Any], dict[str, str]]:
    with tempfile.TemporaryDirectory() as root:
        actor = nurseries.shared().actor(Path(root, "teams"), unsynced=True)
        owners = _crew(actor, Path(root, "teams"))
        _quiet(actor)
        ids = {
            message["subject"]: message["id"]
            for team in ("crew", "quiet")
            for message in actor.ask("look", team)["messages"]
            if message["kind"] != "result"
        }
        actor.kill()
        for slots in Path(root, "teams").glob("*/revisions"):
            _shorten(slots.parent, KEPT)  # so that a copy is cheap
        return evidence.packed(Path(root)), owners, ids


@functools.cache
def _packed(kind: Kind) -> bytes:
    if kind == "plain":
        return _template()[0]
    with tempfile.TemporaryDirectory() as root:
        field = ground(Path(root))
        actor = nurseries.shared().actor(field.path, unsynced=True)
        if kind in {"long", "pruning"}:
            actor.ask("chatter", field.owners["dora"], field.owners["carol"], "old", 20)
            _shorten(field.crew, 32 if kind == "long" else 64)
            if kind == "pruning":
                left = 64 - len(evidence.history(field.crew))
                actor.ask("chatter", field.owners["dora"], field.owners["carol"], "older", left // 2)
        else:
            call = ("open_read", "state.json") if kind == "locked" else ("rename", "* -> state.json")
            actor.ask("trap", "kill", method=call[0], name=call[1])
            with contextlib.suppress(Died):
                actor.ask("send", field.owners["alice"], "bob", kind="note", subject=PENDING, body="x")
            assert (field.path / ".locks" / "crew.lock").exists()
            assert (field.crew / "state.json.lock").exists()
        if kind == "lost":
            for private in (field.crew / "revisions").glob(".*.tmp"):
                private.unlink()
        actor.discard()
        return evidence.packed(Path(root))


def _shorten(team: Path, kept: int) -> None:
    """Leave that many slots, as a pruning would."""
    for number in evidence.history(team)[:-kept]:
        (team / "revisions" / f"{number}.json").unlink()


def _crew(actor: Actor, path: Path) -> dict[str, Any]:
    nursery = nurseries.shared()
    actor.ask("create", "crew")
    owners = {alias: actor.ask("member", "crew", alias, pid=nursery.pid) for alias in LIVING}
    owners["erin"] = actor.ask("member", "crew", "erin", pid=nursery.pid)
    actor.ask("leave", owners["erin"])
    for sender, to, kind, subject in (
        ("alice", "bob", "request", "first"),
        ("alice", "carol", "request", "for carol"),
        ("bob", "alice", "note", "note for alice"),
        ("dora", "ghost", "request", "for the ghost"),
        ("bob", "ghost", "request", "waiting for the ghost"),
        ("alice", "erin", "request", "for erin"),
        ("alice", "bob", "request", "at work"),
    ):
        if to == "ghost" and "ghost" not in owners:
            ghost = nursery.actor(path, unsynced=True)
            owners["ghost"] = ghost.ask("join", "crew", "ghost")
        actor.ask("send", owners[sender], to, kind=kind, subject=subject, body=subject)
        if subject == "first":
            claimed = actor.ask("claim", owners["bob"])
            actor.ask("settle", owners["bob"], claimed["id"], COMPLETED)
    ghost.ask("claim", owners["ghost"])
    actor.ask("claim", owners["bob"])
    ghost.kill()
    return owners


def _quiet(actor: Actor) -> None:
    actor.ask("create", "quiet")
    one, two = (actor.ask("join", "quiet", alias) for alias in ("one", "two"))
    for number in range(3):
        actor.ask("send", one, "two", kind="note", subject=f"quiet {number}", body="x")
    actor.ask("leave", one)
    actor.ask("leave", two)

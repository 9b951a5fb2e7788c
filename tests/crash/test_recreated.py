"""A team is deleted, or renamed, and created anew under a session that sleeps at a system call (SIGSTOP).

Nothing of the old team reaches the new one, and a look shows the one or the other and no mixture.
"""

from __future__ import annotations

import json
import stat
import time
from typing import TYPE_CHECKING, Any, Final

import pytest

import evidence
from grounds import Ground, ground
from nursery import Refused
from recipes import OPERATIONS
from trials import CHANGING

if TYPE_CHECKING:
    from pathlib import Path

    from nursery import Actor, Nursery

OPTIONS: Final[dict[str, Any]] = {
    "lock_lifetime": 0.1,
    "interval": 0.05,
    "expiry": 0.1,
    "patience": 20.0,
    "unsynced": True,
}
"""A sleeper is taken for dead after 0.1 s and two intervals, else nobody could delete its team."""
HARMLESS: Final = {"close", "fstat"}
"""Calls on what is open already: to sleep at the one before is the same."""
GONE: Final = {"TEAM_MOVED", "MEMBERSHIP_LOST", "TEAM_UNKNOWN"}


def files(team: Path) -> evidence.Fingerprint:
    """The files of a team; a lock may come and go, which only the time of a directory shows."""
    return {
        name: fields[:4] + fields[5:] if stat.S_ISDIR(fields[0]) else fields
        for name, fields in evidence.fingerprint(team).items()
    }


_TRIES: Final = 5


def replace(field: Ground, other: Actor, how: str) -> None:
    """Delete or rename the team, and create one of that name, with members of the same names."""
    presence = json.loads((field.crew / "presence" / "alice.json").read_bytes())
    time.sleep(max(0.0, presence["seen"] / 1_000 + OPTIONS["expiry"] - time.time()) + 0.01)
    asked = ("delete_team", "crew") if how == "delete" else ("rename_team", "crew", "band")
    for again in range(_TRIES):
        try:
            other.ask(*asked)
            break
        except Refused as refused:
            # The machine was so busy that the watch of some tenths of a second was over before it was used.
            if refused.code != "TEAM_ACTIVE" or "not known yet" not in refused.message or again == _TRIES - 1:
                raise
    other.ask("create", "crew")
    alice = other.ask("join", "crew", "alice")
    other.ask("join", "crew", "bob")
    other.ask("send", alice, "bob", kind="note", subject="of the new team", body="x")


def order(field: Ground, name: str) -> tuple[list[Any], dict[str, Any]]:
    """An operation of alice's, or a look."""
    if name == "look":
        return ["look", "crew"], {}
    if name == "snapshot":
        return ["snapshot", field.owners["alice"]], {}
    return OPERATIONS[name].order(field)


def calls(nursery: Nursery, root: Path, name: str) -> list[tuple[str, str, str]]:
    """The calls of the operation, by a session that has been there before."""
    field = ground(root)
    actor = nursery.actor(field.path, **OPTIONS)
    actor.ask("heartbeat", field.owners["alice"], "idle")
    args, kwargs = order(field, name)
    actor.ask("count")
    actor.ask(*args, **kwargs)
    found: list[tuple[str, str, str]] = actor.ask("calls")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("how", ["delete", "rename"])
@pytest.mark.parametrize("name", ["send", "heartbeat", "rename myself"])
def test_writer_that_slept_reaches_no_other_team(
    nursery: Nursery, tmp_path: Path, name: str, how: str
) -> None:
    """A writer or a heartbeat sleeps at a call, whichever it is, while its team's name is given away."""
    undisturbed = calls(nursery, tmp_path / "undisturbed", name)
    last = max(nth for nth, (method, _, _) in enumerate(undisturbed, 1) if method == "rename")
    told = set()
    for nth, (method, _, _) in enumerate(undisturbed, 1):
        if method in HARMLESS or (how == "rename" and method not in CHANGING):
            continue
        field = ground(tmp_path / str(nth))
        sleeper, other = (nursery.actor(field.path, **OPTIONS) for _ in range(2))
        sleeper.ask("heartbeat", field.owners["alice"], "idle")
        args, kwargs = order(field, name)
        sleeper.ask("trap", "stop", nth=nth)
        sleeper.begin(*args, **kwargs)
        sleeper.stopped()
        replace(field, other, how)
        before = files(field.crew)
        sleeper.go_on()
        _, code = sleeper.outcome()
        told.add(code)
        # Done: it had taken effect before the team went.
        assert code in GONE or (code == "" and nth > last), undisturbed[nth - 1]
        assert files(field.crew) == before, undisturbed[nth - 1]
        if how == "rename":
            assert max(evidence.subjects(field.path / "band").values()) == 1
            other.ask("look", "band")
        assert {path.name for path in field.path.iterdir()} <= {".locks", "crew", "quiet", "band"}
        nursery.forget()
    assert "TEAM_MOVED" in told


def aliases(view: dict[str, Any]) -> list[str]:
    return [member["alias"] for member in view["members"]]


def ids(view: dict[str, Any]) -> set[str]:
    return {message["id"] for message in view["messages"]}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "how"), [("look", "delete"), ("snapshot", "rename")])
def test_look_that_slept_shows_one_team_or_the_other(
    nursery: Nursery, tmp_path: Path, name: str, how: str
) -> None:
    """A reader sleeps at a call of its first look; its next look shows the new team, at a lower revision."""
    undisturbed = calls(nursery, tmp_path / "undisturbed", name)
    for nth, (method, _, _) in enumerate(undisturbed, 1):
        if method in HARMLESS:
            continue
        field = ground(tmp_path / str(nth))
        old = evidence.payload(field.crew)
        sleeper, other = (nursery.actor(field.path, **OPTIONS) for _ in range(2))
        args, kwargs = order(field, name)
        sleeper.ask("trap", "stop", nth=nth)
        sleeper.begin(*args, **kwargs)
        if not sleeper.stopped_or_answered():
            break  # it has found less to look at than one that has been there
        replace(field, other, how)
        sleeper.go_on()
        shown, code = sleeper.outcome()
        assert code in {*GONE, ""}, (undisturbed[nth - 1], code)
        if not code and shown["revision"] == field.revision:
            assert aliases(shown) == aliases(old)
            assert ids(shown) <= ids(old)
        elif not code:
            assert (name, shown["revision"]) == ("look", 4)
            assert [message["subject"] for message in shown["messages"]] == ["of the new team"]
        assert sleeper.ask("look", "crew")["revision"] == 4
        with pytest.raises(Refused, match="MEMBERSHIP_LOST"):
            sleeper.ask("snapshot", field.owners["alice"])
        nursery.forget()
    assert nth > 5


def test_reader_that_saw_the_old_team_goes_over_to_the_new(nursery: Nursery, tmp_path: Path) -> None:
    """What a process showed never goes back, within one team: a new one begins anew, also for its watch."""
    field = ground(tmp_path)
    reader, other = nursery.actor(field.path, **OPTIONS), nursery.actor(field.path, **OPTIONS)
    assert reader.ask("look", "crew")["revision"] == field.revision
    assert reader.ask("await_change", "crew", 0) is False
    replace(field, other, "delete")
    assert reader.ask("await_change", "crew", 5.0) is True
    assert reader.ask("look", "crew")["revision"] == 4
    assert reader.ask("await_change", "crew", 0) is False
    reader.begin("await_change", "crew", 30.0)
    other.ask("join", "crew", "carol")
    began = other.ask("wall")
    assert reader.answer() is True
    assert reader.ask("wall") - began < 5

"""An operation that is cut short from outside, and what has to hold afterwards; `doctor`'s commands."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import evidence
from grounds import Ground, ground
from recipes import BYSTANDERS, OPERATIONS, state, without_bystanders

if TYPE_CHECKING:
    from pathlib import Path

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


class Trial:
    """Runs one operation again and again on fresh teams, each time interrupted elsewhere.

    Args:
        nursery: forks the victims.
        root: a directory to work in.
        name: which of the operations.

    Attributes:
        before, after: the teams without the operation, and with it.
    """

    def __init__(self, nursery: Nursery, root: Path, name: str) -> None:
        self._nursery = nursery
        self._root = root
        self._operation = OPERATIONS[name]
        self._numbers = itertools.count()
        self._bystander = nursery.actor(root / "nowhere", **OPTIONS)
        field, victim = self.begin()
        self.before = state(field.path)
        self.end(field, victim)
        field, victim = self.begin()
        self.order(victim, field)
        victim.answer()
        self.after = state(field.path)
        self.end(field, victim)

    def begin(self) -> tuple[Ground, Actor]:
        """Fresh teams and a victim."""
        field = ground(self._root / str(next(self._numbers)))
        return field, self._nursery.actor(field.path, **OPTIONS)

    def order(self, victim: Actor, field: Ground) -> None:
        """Let the victim begin."""
        args, kwargs = self._operation.order(field)
        victim.begin(*args, **kwargs)

    def end(self, field: Ground, victim: Actor) -> None:
        """Clear up."""
        victim.discard()
        shutil.rmtree(field.path.parent)

    def check(self, field: Ground) -> None:
        """Assert what has to hold after a victim of the operation has died."""
        assert evidence.revision(field.crew) >= field.revision
        bystander = self._bystander
        bystander.ask("open", str(field.path), **OPTIONS)
        sent = bystander.ask("send", field.owners["dora"], "carol", kind="note", subject=BYSTANDERS, body="x")
        assert sent["state"] == "pending"
        assert evidence.subjects(field.crew)[BYSTANDERS] == 1
        assert without_bystanders(state(field.path)) in (self.before, self.after)
        heal(bystander, field.path)
        assert evidence.strays(field.path) == []


def heal(actor: Actor, path: Path) -> list[str]:
    """Run the command of each finding as it is printed, until `doctor` is content; the findings' codes."""
    codes: list[str] = []
    for _ in range(4):
        findings = actor.ask("doctor")
        if not findings:
            return codes
        for finding in findings:
            codes.append(finding["code"])
            assert finding["command"], finding
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

"""The kernel kills a sender at a system call (strace's fault injection), and not our own port.

Where strace is not installed or may not trace, the same calls are cut short from inside the process. Both are
real deaths of a real process at the same calls.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from nursery import Died
from trials import Trial

if TYPE_CHECKING:
    from pathlib import Path

    from grounds import Ground
    from nursery import Nursery

SENDER: Final = """
import json, sys
from pi_team.mailbox import Mailbox
from pi_team.domain.model import Membership
owner = Membership(**json.loads(sys.argv[2]))
Mailbox(sys.argv[1]).send(owner, "bob", kind="note", subject="the victim's", body="x")
"""
CALLS: Final = {
    "linkat": ("link", "*"),
    "renameat,renameat2": ("rename", "* -> state.json"),
    "fsync": ("fsync", "*.tmp"),
    "fsync:2": ("fsync", "revisions"),
    "unlinkat": ("unlink", "state.json.lock"),
}
"""A system call, the how-manieth of it where not the first, and the same one as the port names it."""


def traced(field: Ground, call: str) -> None:
    """Send a note from a process that the kernel kills at a call."""
    name, _, nth = call.partition(":")
    inject = f"inject={name}:signal=SIGKILL:when={nth or 1}"
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={name}", "-e", inject]
    program = [sys.executable, "-B", "-c", SENDER, str(field.path), json.dumps(field.owners["alice"])]
    ended = subprocess.run([*command, *program], capture_output=True, timeout=60, check=False)
    assert ended.returncode in {-signal.SIGKILL, 128 + signal.SIGKILL}, ended.stderr


def can_trace() -> bool:
    """Whether there is an strace that may trace a child and inject."""
    if shutil.which("strace") is None:
        return False
    probe = ["strace", "-qq", "-o", "/dev/null", "-e", "inject=chdir:error=EPERM", "true"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
def test_killed_by_the_kernel(nursery: Nursery, tmp_path: Path) -> None:
    """A sender dies inside its link, its rename, a sync, or as it lets go of a lock."""
    trial = Trial(nursery, tmp_path, "send")
    for call, (method, name) in CALLS.items():
        field, victim = trial.begin()
        if can_trace():
            traced(field, call)
        else:
            victim.ask("trap", "kill", method=method, name=name)
            trial.order(victim, field)
            with pytest.raises(Died):
                victim.answer()
        trial.check(field)
        trial.end(field, victim)

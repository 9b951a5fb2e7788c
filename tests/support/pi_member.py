"""The installed extension in the Pi processes of a test, and the team that their sessions join."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from pi_host.process import PATIENCE, still_there
from pi_team.mailbox import Mailbox

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import psutil

    from pi_host.home import PiHome
    from pi_host.rpc import Record, RpcPi
    from pi_team.domain.model import Message


def put_in(home: PiHome) -> None:
    """Install the extension as a person does."""
    environment = os.environ | {"PI_CODING_AGENT_DIR": str(home.agent)}
    subprocess.run([sys.executable, "-m", "pi_team", "pi", "install"], env=environment, check=True)


def mailbox(home: PiHome) -> Mailbox:
    """The teams that the sessions see."""
    return Mailbox(home.agent / "teams")


def helpers(pi: RpcPi) -> list[psutil.Process]:
    """The Python sides that a Pi has started and that live."""
    return [process for process in pi.process.family() if "pi_team.hosts.pi" in process.cmdline()]


def results(teams: Mailbox, team: str = "crew") -> list[Message]:
    """The results of the team, once there is one: a session settles its work beside Pi, not before it."""
    deadline = time.monotonic() + PATIENCE
    while not (found := [each for each in teams.look(team).messages if each.kind == "result"]):
        assert time.monotonic() < deadline, "no result has come"
        time.sleep(0.02)
    return found


def told(pi: RpcPi, text: str, *, after: int = 0) -> Record:
    """The first notification with that text, once it has come."""
    return pi.until(lambda record: text in str(record.get("message", "")) and is_notice(record), after=after)


def notices(pi: RpcPi, kind: str) -> list[str]:
    """The texts of all notifications of a kind."""
    return [text for level, text in pi.notifications if level == kind]


def is_notice(record: Record) -> bool:
    return bool(record["type"] == "extension_ui_request" and record["method"] == "notify")


def shown(pi: RpcPi, *, after: int = 0) -> list[Any]:
    """The entries that were put before the person, without a model knowing."""
    entries = [record["entry"] for record in pi.records[after:] if record["type"] == "entry_appended"]
    return [entry["data"] for entry in entries if entry["customType"] == "pi-team"]


def gone(processes: Sequence[psutil.Process]) -> bool:
    """Whether they end, within the harness's patience."""
    return still_there(processes) == []


def script(path: Path, text: str) -> str:
    """An executable shell script; its path."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)

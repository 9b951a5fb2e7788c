"""One process: its looks, its memory, and how fast it starts."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from typing import TYPE_CHECKING

import psutil

from bench.figures import Figure
from bench.team import TEAM, BenchMailbox, team_of, text

if TYPE_CHECKING:
    from collections.abc import Sequence

_SNAPSHOT = 60.0
"""Microseconds."""
_MEMORY = 40.0
"""Megabytes."""
_IMPORT = 80.0
_START = 120.0
"""Milliseconds."""


def look(path: str, *, messages: int, looks: int) -> list[Figure]:
    """Snapshots of a record that does not change, as a joined session polls.

    Args:
        path: a directory for the team.
        messages: how many are in the record.
        looks: how many snapshots.
    """
    mailbox = BenchMailbox(path)
    owner, _ = team_of(mailbox, messages)
    mailbox.heartbeat(owner, "idle")
    times: list[float] = []
    for _ in range(looks):
        start = time.perf_counter()
        mailbox.snapshot(owner)
        times.append((time.perf_counter() - start) * 1e6)
    mailbox.close()
    label = f"unchanged record with {messages} messages, 2 living members"
    return [Figure.median("snapshot", label, times, "µs", below=_SNAPSHOT)]


def remember(path: str, *, messages: int, seconds: float) -> list[Figure]:
    """What `pi-team work` takes while it waits, heartbeats, and answers a request in between.

    Args:
        path: a directory for the team.
        messages: how many are in the record.
        seconds: how long it waits before and after the request.
    """
    mailbox = BenchMailbox(path)
    asking, answering = team_of(mailbox, messages)
    mailbox.leave(answering)
    environment = os.environ | {"PI_CODING_AGENT_DIR": os.path.dirname(path)}
    command = [sys.executable, "-m", "pi_team", "work", TEAM, answering.alias, "--", sys.executable, "-c", ""]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        process.stdout.readline()  # it has joined
        time.sleep(seconds)
        request = mailbox.send(asking, answering.alias, kind="request", subject="once", body=text(1))
        while mailbox.snapshot(asking).flow:
            time.sleep(0.02)
        time.sleep(seconds)
        assert request.id
        whole = psutil.Process(process.pid).memory_full_info()
        highest = peak(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()
        mailbox.close()
    section = f"memory of `pi-team work`, {messages} messages"
    figures = [Figure(section, "resident (RSS), shared libraries included", whole.rss / 1e6, "MB")]
    if highest:
        figures.append(Figure(section, "resident at its highest", highest / 1e6, "MB", below=_MEMORY))
    figures.append(Figure(section, "its own alone (USS)", whole.uss / 1e6, "MB"))
    return figures


def peak(pid: int) -> int:
    """The highest resident size so far, in bytes; 0 where the system does not tell."""
    with (
        contextlib.suppress(OSError),
        open(f"/proc/{pid}/status", encoding="utf-8") as file,
    ):
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1_024
    return 0


def begin(path: str, *, times: int) -> list[Figure]:
    """Whole processes from start to end, in turns, with their bytecode cached as after an installation.

    Args:
        path: a directory for the bytecode.
        times: how often each, after a first time that does not count.
    """
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = path
    script = os.path.join(sysconfig.get_path("scripts"), "pi-team")
    version = [script] if shutil.which(script) else [sys.executable, "-m", "pi_team"]
    commands: dict[str, Sequence[str]] = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "import pi_team": [sys.executable, "-c", "import pi_team"],
        "from pi_team import Mailbox": [sys.executable, "-c", "from pi_team import Mailbox"],
        "pi-team --version": [*version, "--version"],
        "pi-team --help": [*version, "--help"],
    }
    targets = {"import pi_team": _IMPORT, "pi-team --version": _START}
    taken: dict[str, list[float]] = {label: [] for label in commands}
    for _ in range(1 + times):
        for label, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
            taken[label].append((time.perf_counter() - start) * 1e3)
    return [
        Figure.median("start, whole processes", label, found[1:], "ms", below=targets.get(label))
        for label, found in taken.items()
    ]

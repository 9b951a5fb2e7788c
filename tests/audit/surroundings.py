"""Where an audit was made: what somebody has to know who wants to repeat it."""

from __future__ import annotations

import datetime as dt
import os
import platform
import subprocess
import tempfile
from typing import Final

import psutil

from ladder import ROOT

_GIT: Final = ("git", "-c", "safe.directory=*")


def facts() -> dict[str, str]:
    """Facts in the order in which they are shown."""
    return {
        "code": _commit(),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": platform.platform(),
        "file system": _file_system(tempfile.gettempdir()),
        "cores": str(os.cpu_count() or 1),
        "load": f"{os.getloadavg()[0]:.1f} at the beginning",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "begun": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
    }


def _commit() -> str:
    """The commit, and whether files differ from it; the version where there is no repository."""
    try:
        commit = _asked("rev-parse", "--short=12", "HEAD")
        changed = len(_asked("status", "--porcelain").splitlines())
    except (OSError, subprocess.CalledProcessError):
        from pi_team import __version__  # noqa: PLC0415 - only where git does not say

        return f"version {__version__}, without a repository"
    return f"commit {commit}" + (f", {changed} file{'s' * (changed > 1)} changed since" if changed else "")


def _asked(*arguments: str) -> str:
    asked = [*_GIT, *arguments]
    return subprocess.run(
        asked, cwd=ROOT, capture_output=True, text=True, check=True, timeout=30
    ).stdout.strip()


def _file_system(path: str) -> str:
    """The kind of the file system that a path is on, which is where the teams of the tests are."""
    path = os.path.realpath(path)
    above = [
        partition
        for partition in psutil.disk_partitions(all=True)
        if os.path.commonpath([path, partition.mountpoint]) == partition.mountpoint
    ]
    return max(above, key=lambda partition: len(partition.mountpoint)).fstype if above else "unknown"

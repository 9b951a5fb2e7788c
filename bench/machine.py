"""Where the figures come from: the file system, which must really sync, and the machine."""

from __future__ import annotations

import contextlib
import datetime as dt
import importlib.metadata
import os
import platform
import sqlite3
import statistics
import sys
import time
from typing import TYPE_CHECKING

import attrs
import psutil

from pi_team.record.filesystem import OsFileSystem

if TYPE_CHECKING:
    from collections.abc import Iterable

_IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs", "rootfs", "hugetlbfs"})
_NO_SYNC = 10e-6
"""Seconds: no device and no journal answers an fsync of new data sooner, only a call that does nothing."""
_SYNCS = 60
_LIBRARIES = ("pi-team", "attrs", "click", "filelock", "psutil", "transitions", "watchdog")


class Unmeasurable(Exception):
    """The benchmark cannot measure here; the text says why and what to do."""


@attrs.frozen
class FileSystemFacts:
    """The file system under the benchmark.

    Attributes:
        path: the directory.
        kind: the type of its file system.
        journal: whether it has a journal; None where that is not known, or another type has its own answer.
        device: what that is mounted from.
        file_sync: median seconds of an fsync of a file that has grown by 4 KiB.
        directory_sync: median seconds of an fsync of a directory with a new name in it.
    """

    path: str
    kind: str
    journal: bool | None
    device: str
    file_sync: float
    directory_sync: float

    def lines(self) -> list[str]:
        """The facts as they are printed."""
        file, directory = f"{self.file_sync * 1e3:.2f} ms", f"{self.directory_sync * 1e3:.2f} ms"
        journal = {True: " with a journal", False: " without a journal", None: ""}[self.journal]
        return [
            f"file system  {self.kind}{journal} on {self.device}",
            f"raw fsync    {file} (file grown by 4 KiB), {directory} (new name); medians of {_SYNCS}",
        ]


@attrs.frozen
class Mount:
    """One mounted file system."""

    point: str
    kind: str
    device: str
    options: str


def mounts() -> list[Mount]:
    """What is mounted here."""
    parts = psutil.disk_partitions(all=True)
    return [Mount(part.mountpoint, part.fstype, part.device, part.opts) for part in parts]


def mount_of(path: str, mounted: Iterable[Mount]) -> Mount:
    """The mount that a path is on: the deepest point above it, and of several mounted there the last."""
    path = os.path.realpath(path)
    best = Mount("", "unknown", "unknown", "")
    for mount in mounted:
        inside = path == mount.point or path.startswith(mount.point.rstrip("/") + "/")
        if inside and len(mount.point) >= len(best.point):
            best = mount
    return best


def require_syncing(path: str, mounted: Iterable[Mount]) -> Mount:
    """The mount of a path, which must keep its data on a device.

    Raises:
        Unmeasurable: it keeps them in memory, or does not sync.
    """
    known = list(mounted)
    mount = mount_of(path, known)
    reason = ""
    if mount.kind in _IN_MEMORY:
        reason = f"{path} is on {mount.kind}, which keeps files in memory"
    elif mount.kind in {"overlay", "overlayfs", "fuse-overlayfs"}:
        options = dict(option.partition("=")[::2] for option in mount.options.split(","))
        upper = options.get("upperdir", "")
        if "volatile" in options:
            reason = f"{path} is on an overlay mounted `volatile`, which does not sync"
        elif upper and os.path.exists(upper) and mount_of(upper, known).kind in _IN_MEMORY:
            reason = f"{path} is on an overlay whose upper directory {upper} is kept in memory"
    if reason:
        raise Unmeasurable(
            f"{reason}: nothing is synced there, and a durable send would seem to cost nothing. "
            "Name a directory on a disk with --dir."
        )
    return mount


def examine(path: str, *, any_file_system: bool = False) -> FileSystemFacts:
    """The facts about the file system of a directory.

    Args:
        path: the directory.
        any_file_system: also one that does not sync, for a run that only shows that the benchmark works.

    Raises:
        Unmeasurable: as :func:`require_syncing`, or an fsync costs no time.
    """
    mount = mount_of(path, mounts()) if any_file_system else require_syncing(path, mounts())
    file_sync, directory_sync = _sync_times(path)
    if file_sync < _NO_SYNC and not any_file_system:
        raise Unmeasurable(
            f"an fsync on {mount.kind} at {path} takes {file_sync * 1e6:.1f} µs: nothing is synced there. "
            "Name a directory on a disk with --dir."
        )
    return FileSystemFacts(path, mount.kind, has_journal(mount), mount.device, file_sync, directory_sync)


def has_journal(mount: Mount, proc: str = "/proc/fs") -> bool | None:
    """Whether an ext4 has a journal, as Linux tells; None where it does not, and for other file systems."""
    device = os.path.basename(os.path.realpath(mount.device))
    if mount.kind != "ext4" or not os.path.exists(os.path.join(proc, "ext4", device)):
        return None
    journals = os.path.join(proc, "jbd2")
    return os.path.isdir(journals) and any(name.startswith(f"{device}-") for name in os.listdir(journals))


def _sync_times(path: str) -> tuple[float, float]:
    fs = OsFileSystem()  # what the mailbox syncs with: F_FULLFSYNC where there is that
    directory = os.path.join(path, f"fsync-{os.getpid()}")
    os.mkdir(directory, 0o700)
    files: list[float] = []
    names: list[float] = []
    with contextlib.ExitStack() as opened:
        opened.callback(os.rmdir, directory)
        directory_fd = os.open(directory, os.O_RDONLY)
        opened.callback(os.close, directory_fd)
        for index in range(_SYNCS):
            fd = os.open(f"{index}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=directory_fd)
            opened.callback(os.unlink, os.path.join(directory, f"{index}"))
            names.append(_timed(fs, directory_fd))
            os.write(fd, os.urandom(4_096))
            files.append(_timed(fs, fd))
            os.close(fd)
    return statistics.median(files), statistics.median(names)


def _timed(fs: OsFileSystem, fd: int) -> float:
    start = time.perf_counter()
    fs.fsync(fd)
    return time.perf_counter() - start


def describe() -> list[str]:
    """The machine, the system and the versions, a line each."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _LIBRARIES)
    memory = f"{psutil.virtual_memory().total / 1e9:.0f} GB"
    python = f"{platform.python_implementation()} {sys.version.split()[0]}"
    return [
        f"date         {dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC",
        f"processor    {_processor()}, {os.cpu_count()} cores, {memory}, load {os.getloadavg()[0]:.1f}",
        f"system       {platform.system()} {platform.release()} {platform.machine()}",
        f"python       {python}, SQLite {sqlite3.sqlite_version}",
        f"libraries    {versions}",
    ]


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()

"""The configurations that are explored."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import attrs

import programs
from behaviour import still
from disk import blank
from invariants import PublicationJudge, file_at, record_of
from powercut import persisted, synced
from programs import PATH, Process
from simulation import SimulatedFileSystem
from system import Scenario
from worlds import TEAM, envelope_text, payload_text

if TYPE_CHECKING:
    from disk import Disk


def team(revisions: int = 1, kept: int = 32) -> Disk:
    """A disk with one team, made by the real code, at that revision, all of it durable."""
    fs = SimulatedFileSystem(blank(PATH))
    process = Process(fs, "planter", kept)
    with still():
        process.store.create(TEAM, payload_text(()), process.patience(1))
        for number in range(2, revisions + 1):
            process.append(f"r{number}", process.patience(1))
    return synced(fs.disk)


def writers(count: int, writes: int, *, bound: int | None = 3, kept: int = 32) -> Scenario:
    """Some writers with some writes each."""
    history = "" if kept == 32 else f", {kept} kept"
    return Scenario(
        f"{count} writers, {writes} each{history}",
        team(),
        {name: _writes(name, writes, kept) for name in "abc"[:count]},
        PublicationJudge,
        programs.RECOVERY,
        bound=bound,
    )


def _writes(name: str, count: int, kept: int) -> list[programs.Operation]:
    return [programs.write(f"{name}{number}", kept) for number in range(1, count + 1)]


def twice_cut(scenario: Scenario) -> Scenario:
    """The same, and who comes after the crash or the power cut dies too, before each of its calls."""
    return attrs.evolve(scenario, name=f"{scenario.name}, cut twice", again=programs.AGAIN)


def pruning(writes: int, *, bound: int | None = 3) -> Scenario:
    """A writer against one that prunes: the history keeps one revision below the newest."""
    return Scenario(
        f"2 writers, 1 and {writes}, 1 kept",
        team(),
        {"a": _writes("a", 1, 1), "b": _writes("b", writes, 1)},
        PublicationJudge,
        programs.RECOVERY,
        bound=bound,
    )


def faults(count: int, *, bound: int | None = 3) -> Scenario:
    """Writers of one write each, and one call that fails with EIO, with or without having taken effect."""
    return attrs.evolve(
        writers(count, 1, bound=bound), name=f"{count} writers, 1 each, EIO once", crashes=0, faults=1
    )


def reader(looks: int, *, writers: int = 1, bound: int | None = 3) -> Scenario:
    """Writers of one write each, and a process that looks; what it showed is never taken back."""
    return Scenario(
        f"{writers} writer{'s' * (writers > 1)}, 1 each, and {looks} looks",
        team(),
        {name: _writes(name, 1, 32) for name in "abc"[:writers]} | {"r": [programs.looks(looks, 32)]},
        PublicationJudge,
        programs.RECOVERY,
        bound=bound,
    )


def adopting(count: int, *, bound: int | None = 3) -> Scenario:
    """Writers above an acknowledged publication of which a power cut left the slot and nothing else."""
    fs = SimulatedFileSystem(team())
    with still("lost"):
        process = Process(fs, "lost", 32)
        process.append("lost", process.patience(1))
    left = next(disk for disk, _ in persisted(fs.disk) if _is_slot_alone(disk))
    return attrs.evolve(
        writers(count, 1, bound=bound),
        name=f"{count} writers, 1 each, adopting",
        disk=left,
        judge=lambda: PublicationJudge(frozenset({"lost"})),
    )


def _is_slot_alone(disk: Disk) -> bool:
    files = (file_at(disk, TEAM, "revisions", name) for name in ("2.json", ".lost.lost.tmp"))
    return record_of(disk).revision == 1 and [data is not None for data in files] == [True, False]


def skipping(count: int, *, bound: int | None = 3) -> Scenario:
    """Writers below a slot whose parent, an older peer's, a power cut took; its private file is there."""
    scenario = older_peers_slot()
    fs = SimulatedFileSystem(scenario.disk)
    with still("lost"):
        process = Process(_Stopping(fs), "lost", 32)
        with contextlib.suppress(_Stopping.Stopped):
            process.append("lost", process.patience(1))
    left = next(disk for disk, lost in persisted(fs.disk) if lost == ("2.json is not there yet",))
    return attrs.evolve(writers(count, 1, bound=bound), name=f"{count} writers, 1 each, skipping", disk=left)


class _Stopping:
    """A port that dies right after its first link."""

    class Stopped(BaseException):
        """The process is no more."""

    def __init__(self, fs: SimulatedFileSystem) -> None:
        self._fs = fs
        self._stopped = False

    def __getattr__(self, name: str) -> Any:
        if self._stopped:
            raise self.Stopped
        self._stopped = name == "link"
        return getattr(self._fs, name)


def older_peers_slot() -> Scenario:
    """A writer above a slot that an older peer linked, did not install, and did not sync."""
    disk = team()
    fs = SimulatedFileSystem(disk)
    with still():
        revisions = fs.open_dir(f"{PATH}/{TEAM}/revisions")
        text = envelope_text(2, payload_text(("peer",))).encode()
        fd = fs.create("2.json.UUID.tmp", revisions)
        fs.write(fd, text)
        fs.fsync(fd)
        fs.fsync(revisions)
        fs.rename("2.json.UUID.tmp", revisions, "2.json", revisions)
        fs.die()
    return Scenario(
        "1 writer, 2, older peer's slot",
        fs.disk,
        {"a": _writes("a", 2, 32)},
        PublicationJudge,
        programs.RECOVERY,
    )

"""A record that is damaged and restored while a writer sleeps (docs/protocol.md, "Recovery").

What is restored is the newest intact revision, so payloads only grow, as where nothing is damaged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import programs
import scenarios
from behaviour import Outcome
from invariants import RECOVERY, PublicationJudge, Violation, record_of
from pi_team.errors import RecordCorrupt, RecordMissing
from pi_team.record import recovery
from pi_team.record.directory import RECORD
from programs import Operation, Process, ending
from restoring import RESTORED, restore
from simulation import SimulatedFileSystem
from system import Scenario
from worlds import TEAM, Items, ListCodec

if TYPE_CHECKING:
    from behaviour import Recorder
    from disk import Disk
    from invariants import Facts, Record

_JUNK: Final = ".junk"
_DAMAGE: Final = "damage"


def _damage() -> Operation:
    """Look at the record, and then put something that is none in its place."""

    def run(name: str, fs: Recorder) -> Outcome:
        ended: list[Outcome] = []
        with ending(ended, ""):
            process = Process(fs, name, 1_000)
            with process.open() as team:
                fs.tell(process.publisher.read(team, ListCodec()).value)
                fs.rename(_JUNK, team.fd, RECORD, team.fd)
            ended.append(Outcome("acknowledged", ""))
        return ended[0]

    return Operation(_DAMAGE, run)


def _recover(name: str, fs: Recorder) -> Outcome:
    """A fresh process restores what it has to, and writes.

    `detail` is what it saw before and after, whether it had to restore, and whether the damaged record is
    kept beside.
    """
    ended: list[Outcome] = []
    with ending(ended, ""):
        process = Process(fs, name, 1_000)
        reader, restored = process.reader(), False
        try:
            try:
                shown = reader.read()
            except (RecordCorrupt, RecordMissing):
                process.restore(None, process.patience(0.05))
                restored, shown = True, reader.read()
            process.append(RECOVERY, process.patience(0.05))
            last = reader.read()
        finally:
            reader.close()
        with process.open() as team:
            kept = any(name.startswith(recovery.EVIDENCE_PREFIX) for name in fs.listdir(team.fd))
        ended.append(Outcome("acknowledged", "", (shown.value, last.value, restored, kept)))
    return ended[0]


def _readable(disk: Disk) -> Record | None:
    """The record, or None where it is none."""
    try:
        return record_of(disk)
    except Violation:
        return None


class DamageJudge(PublicationJudge):
    """The invariants of publication where the record may be damaged."""

    def after_step(self, before: Disk, after: Disk) -> None:
        """A step changed the disk. Chain and Forward, from one record that can be read to the next."""
        if _readable(before) is not None and _readable(after) is not None:
            super().after_step(before, after)

    def after_outcome(self, disk: Disk, outcome: Outcome) -> None:
        """An operation ended; as for writers, if the record can be read."""
        if outcome.item == RESTORED or _readable(disk) is None:
            outcome = outcome._replace(item="")
        super().after_outcome(disk, outcome)

    def shown(self, disk: Disk) -> Items:
        """What a plain reader sees now, which is nothing where it cannot read."""
        record = _readable(disk)
        return record.items if record is not None else ()

    def after_recovery(self, outcome: Outcome, facts: Facts) -> None:
        """A fresh process restored the record, if it had to, and wrote; the invariants of writers hold.

        Mended: who was told that the record is restored finds no damage again. Evidence: what was damaged
        and has been replaced is kept.
        """
        if outcome.kind != "acknowledged":
            raise Violation("Writable", f"a fresh process is told: {outcome.detail}")
        shown, last, restored, kept = outcome.detail
        self._check_items(shown, facts.without(RESTORED))
        if last != (*shown, RECOVERY):
            raise Violation("CaughtUp", f"a look shows {shown}, and a write after it made {last}")
        was_restored = RESTORED in facts.acknowledged
        if restored and was_restored:
            raise Violation("Mended", "the record is said to be restored, and is damaged")
        if (restored or was_restored) and not kept:
            raise Violation("Evidence", "the damaged record was replaced, and is not kept")


def damaging(bound: int | None = None, *, writes: int = 1, restorers: int = 1) -> Scenario:
    """A writer, somebody who damages the record, and some who restore it."""
    fs = SimulatedFileSystem(scenarios.team(2))
    place = fs.open_dir(f"{programs.PATH}/{TEAM}")
    fd = fs.create(_JUNK, place)
    fs.write(fd, b"junk")
    fs.fsync(fd)
    fs.fsync(place)
    fs.die()
    return Scenario(
        f"1 writer, {writes}, a damaged record restored" + f" by {restorers}" * (restorers > 1),
        fs.disk,
        {
            "a": [programs.write(f"a{nth}", 32) for nth in range(1, writes + 1)],
            "d": [_damage()],
        }
        | {name: [restore(None)] for name in "rs"[:restorers]},
        DamageJudge,
        Operation("recovery", _recover),
        bound=bound,
    )

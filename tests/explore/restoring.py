"""A team whose payload goes back to an older revision while somebody writes (docs/protocol.md, "Recovery").

A restored payload takes back what was shown, and is meant to. So the invariants are about publications: what
was acknowledged, or shown to anybody, is among the ancestors of whatever the record is in the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import programs
import scenarios
from behaviour import Outcome
from invariants import PublicationJudge, Violation, record_of, records
from pi_team.record import recovery
from programs import Operation, Process, ending
from system import Scenario
from worlds import Items, ListCodec

if TYPE_CHECKING:
    from behaviour import Recorder
    from disk import Disk
    from invariants import Facts

RESTORED: Final = "r1"
"""The item of who restores, as its publications are called: the first operation of the process `r`."""


def restore(revision: int | None) -> Operation:
    """Restore a revision; None: the newest, where the record cannot be read."""

    def run(name: str, fs: Recorder) -> Outcome:
        ended: list[Outcome] = []
        with ending(ended, RESTORED):
            process = Process(fs, name, 1_000)
            process.restore(revision, programs.NoPatience(process.clock, 0))
            ended.append(Outcome("acknowledged", RESTORED))
        return ended[0]

    return Operation(RESTORED, run)


def _recover(name: str, fs: Recorder) -> Outcome:
    """A fresh process looks, and writes; `detail` is the newest publication, and all slots."""
    ended: list[Outcome] = []
    with ending(ended, ""):
        process = Process(fs, name, 1_000)
        reader = process.reader()
        try:
            reader.read()
        finally:
            reader.close()
        process.append("recovery", process.patience(0.05))
        with process.open() as team:
            record = process.publisher.read(team, ListCodec())
            reports = recovery.history(team, ListCodec())
        slots = tuple(
            (one.publication.id, one.parent.publication if one.parent else "", one.version.value)
            for one in reports
            if one.version is not None and one.publication is not None
        )
        ended.append(Outcome("acknowledged", "", (record.previous.publication, slots)))
    return ended[0]


class RestoringJudge(PublicationJudge):
    """The invariants of publication where payloads go back."""

    def after_outcome(self, disk: Disk, outcome: Outcome) -> None:
        """An operation ended. Installed: what is acknowledged is among the record's ancestors."""
        if outcome.kind == "broken":
            raise Violation("Expected", f"{outcome.item} ended in {outcome.detail}")
        if outcome.kind == "acknowledged" and outcome.item not in map(_operation, self.shown(disk)):
            raise Violation("Installed", f"{outcome.item} is acknowledged, and not in {self.shown(disk)}")

    def shown(self, disk: Disk) -> Items:
        """The publications that the record descends from, itself the last."""
        parents = {one.identity: one.parent for one in records(disk)}
        return tuple(_ancestry(record_of(disk).identity, parents))

    def after_recovery(self, outcome: Outcome, facts: Facts) -> None:
        """A fresh process looked and wrote.

        Writable: that worked. Durable, Refused, Once: each operation is in the record's ancestry as its
        caller was told, and never twice. Shown: so is what was shown, in that order. Restored: each payload
        is its parent's and one item more, or an ancestor's.
        """
        if outcome.kind != "acknowledged":
            raise Violation("Writable", f"a fresh process is told: {outcome.detail}")
        newest, slots = outcome.detail
        chain = _ancestry(newest, {identity: parent for identity, parent, _ in slots})
        operations = [_operation(identity) for identity in chain if not identity.startswith("planted")]
        for item in facts.acknowledged:
            if item not in operations:
                raise Violation("Durable", f"{item} is acknowledged, and the record descends from {chain}")
        for item in operations:
            if operations.count(item) > 1 and item != "recovery":  # which adopts, and then writes
                raise Violation("Once", f"{item} is twice among {chain}")
            if item in facts.refused:
                raise Violation("Refused", f"{item} was refused, and the record descends from {chain}")
        if tuple(chain[: len(facts.shown)]) != facts.shown:
            raise Violation("Shown", f"{facts.shown} were shown, and the record descends from {chain}")
        self._check_payloads([value for identity in chain for one, _, value in slots if one == identity])

    @staticmethod
    def _check_payloads(payloads: list[Items]) -> None:
        for nth in range(1, len(payloads)):
            before, after = payloads[nth - 1 : nth + 1]
            if after[:-1] != before and after not in payloads[:nth]:
                raise Violation("Restored", f"{after} follows {before}: neither one more nor an older one")


def _operation(identity: str) -> str:
    """Which operation drew an identity, at whichever attempt."""
    return identity.partition("-")[0]


def _ancestry(newest: str, parents: dict[str, str]) -> list[str]:
    """The publications that the newest one descends from, oldest first; a team begins without any."""
    chain = [newest]
    while parents[chain[-1]] in parents:
        chain.append(parents[chain[-1]])
    return chain[::-1]


def restoring(bound: int | None = None, *, writes: int = 1) -> Scenario:
    """A writer, and somebody who goes back to revision 2 of 3."""
    return Scenario(
        f"1 writer, {writes}, and a revision restored",
        scenarios.team(3),
        {"a": [programs.write(f"a{nth}", 32) for nth in range(1, writes + 1)], "r": [restore(2)]},
        RestoringJudge,
        Operation("recovery", _recover),
        bound=bound,
    )

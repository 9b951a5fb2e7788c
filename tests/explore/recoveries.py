"""What a fresh process finds once everybody has stopped, or the power was cut; and if it is cut once more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from behaviour import Behaviour, Outcome
from calls import describe, perform
from invariants import RECOVERY, Facts, Violation
from powercut import synced
from simulation import SimulatedFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from disk import Disk
    from programs import Operation
    from system import Judge, Scenario

    Lost = tuple[str, ...] | None


class Broken(NamedTuple):
    """A violation that a fresh process shows.

    Attributes:
        violation: what is broken.
        lost: what a power cut took before; None where there was none.
        again: how far a fresh process then came, and what another cut took, in words; "" for none.
    """

    violation: Violation
    lost: Lost
    again: str = ""


class Second(NamedTuple):
    """A fresh process that died too, and what the next one found.

    Attributes:
        outcome: of the next one.
        shown: what the first had shown until then.
        ended: whether the first had written.
    """

    outcome: Outcome
    shown: tuple[Any, ...]
    ended: bool

    def known(self, facts: Facts) -> Facts:
        """What is known then, of what was known before."""
        told = {RECOVERY} if self.ended else set()
        return attrs.evolve(
            facts,
            acknowledged=facts.acknowledged | told,
            begun=facts.begun | {RECOVERY},
            shown=self.shown[-1] if self.shown else facts.shown,
        )


class Recoveries:
    """Fresh processes on the disks that stops and power cuts leave; each disk is looked at once.

    Args:
        scenario: says how the power is cut, and what fresh processes do.
        judge: of what they find.
        identify: gives equal disks one number.
    """

    def __init__(self, scenario: Scenario, judge: Judge, identify: Callable[[Disk], int]) -> None:
        self._identify = identify
        self._scenario = scenario
        self._judge = judge
        self._first = self._behaviour(scenario.recovery, "recovery")
        self._next = self._behaviour(scenario.again or scenario.recovery, "again")
        self._recovered: dict[int, Outcome] = {}
        self._recovered_again: dict[int, Outcome] = {}
        self._seconds: dict[int, dict[Second, str]] = {}
        self._stopped: dict[int, list[tuple[Disk | None, Outcome, Lost]]] = {}
        self._judged: set[tuple[int, Facts]] = set()
        self.cut_states = 0

    @staticmethod
    def _behaviour(operation: Operation, name: str) -> Behaviour:
        return Behaviour(lambda fs: operation.run(name, fs), name)

    @property
    def recovered(self) -> int:
        """How many disks were recovered."""
        return len(self._recovered) + len(self._recovered_again)

    @property
    def runs(self) -> int:
        """How often the code under test was run."""
        return self._first.runs + self._next.runs

    def judge(self, disk: Disk, lasting: int, facts: Facts) -> Broken | None:
        """All processes stop for ever, and then the power is cut besides; the first violation.

        Args:
            disk: as it is in that state.
            lasting: stands for all disks that leave the same.
            facts: what everybody knows.
        """
        if lasting not in self._stopped:
            again = self._scenario.again is not None  # else nobody looks at what was left any longer
            self._stopped[lasting] = [
                (left if again else None, self._recover(left), lost) for left, lost in self._cuts(disk)
            ]
        self.cut_states += len(self._stopped[lasting]) - 1
        if (lasting, facts) not in self._judged:
            for left, outcome, lost in self._stopped[lasting]:
                broken = self._broken(left, outcome, lost, facts)
                if broken is not None:
                    return broken
            self._judged.add((lasting, facts))
        return None

    def _broken(self, left: Disk | None, outcome: Outcome, lost: Lost, facts: Facts) -> Broken | None:
        try:
            self._judge.after_recovery(outcome, facts)
        except Violation as violation:
            return Broken(violation, lost)
        if left is not None:
            for second, words in self._again(left).items():
                self.cut_states += 1
                try:
                    self._judge.after_recovery(second.outcome, second.known(facts))
                except Violation as violation:
                    return Broken(violation, lost, words)
        return None

    def replay(self, disk: Disk, facts: Facts, lost: Lost, again: str) -> Violation | None:
        """Everybody stops, the power takes just that, and perhaps a fresh process dies so; what it breaks."""
        for left, words in self._cuts(disk):
            if words == lost:
                outcomes = [(self._recover(left), facts)]
                if again:
                    seconds = self._again(left).items()
                    outcomes = [(one.outcome, one.known(facts)) for one, how in seconds if how == again]
                for outcome, known in outcomes:
                    try:
                        self._judge.after_recovery(outcome, known)
                    except Violation as violation:
                        return violation
        return None

    def _cuts(self, disk: Disk) -> Iterator[tuple[Disk, Lost]]:
        """What is left where everybody stops; and then each disk that a power cut may leave."""
        yield synced(disk), None
        if self._scenario.cuts:
            yield from self._scenario.loses(disk)

    def _recover(self, disk: Disk) -> Outcome:
        key = self._identify(disk)
        if key not in self._recovered:
            self._recovered[key] = self._first.alone(SimulatedFileSystem(disk))
        return self._recovered[key]

    def _recover_again(self, disk: Disk) -> Outcome:
        key = self._identify(disk)
        if key not in self._recovered_again:
            self._recovered_again[key] = self._next.alone(SimulatedFileSystem(disk))
        return self._recovered_again[key]

    def _again(self, disk: Disk) -> dict[Second, str]:
        """A fresh process dies before each of its calls, or after the last; and how, by what came of it."""
        key = self._identify(disk)
        if key not in self._seconds:
            self._seconds[key] = self._die_everywhere(SimulatedFileSystem(disk))
        return self._seconds[key]

    def _die_everywhere(self, fs: SimulatedFileSystem) -> dict[Second, str]:
        found: dict[Second, str] = {}
        shown: tuple[Any, ...] = ()
        node, before = self._first.begin(SimulatedFileSystem(fs.disk)), "it begins"
        while True:
            ended = node.call is None
            for left, lost in self._cuts(fs.disk):
                took = "everybody stops" if lost is None else f"the power fails: {'; '.join(lost)}"
                words = f"a fresh process until {before}, and {took}"
                found.setdefault(Second(self._recover_again(left), shown, ended), words)
            if node.call is None:
                return found
            opened = fs.descriptors
            before = describe(node.call, lambda fd, opened=opened: opened[fd].name)  # type: ignore[misc]
            answer = perform(fs, node.call)
            if node.call[0] == "show":
                shown = (*shown, node.call[1][0])
            node = self._first.after(node, answer, SimulatedFileSystem(fs.disk, fs.descriptors))

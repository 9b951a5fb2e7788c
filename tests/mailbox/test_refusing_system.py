"""The operating system refuses: disk full, quota, read-only, no descriptors, an error of the device.

An operation is refused with the old record intact, or says that its outcome is unknown. It says why, and the
files that it leaves behind do not grow in number.
"""

from __future__ import annotations

import itertools
import os
import shutil
from typing import TYPE_CHECKING, Any, Final

import pytest

import evidence
from grounds import as_given, ground, membership
from interposition import REFUSALS, Call, InterposedFileSystem, UnsyncedFileSystem
from pi_team.errors import OutcomeUnknown, PiTeamError, StorageError
from pi_team.mailbox import Mailbox
from recipes import OPERATIONS, state
from trials import CHANGING

if TYPE_CHECKING:
    from pathlib import Path

    from interposition import Point

NAMES: Final = ("send", "settle", "leave with a claim", "join a dead alias", "rename myself", "heartbeat")
"""Operations that also touch presence, and two that do not."""
NOTE: Final[dict[str, Any]] = {"kind": "note", "subject": "afterwards", "body": "x"}


class Victim:
    """One operation in this process, on a file system that can be told to refuse."""

    def __init__(self, root: Path, name: str) -> None:
        self.field = ground(root)
        self.fs = InterposedFileSystem(UnsyncedFileSystem())
        self._mailbox = Mailbox(self.field.path, filesystem=self.fs, lock_lifetime=0.2, patience=2.0)
        args, self._kwargs = OPERATIONS[name].order(self.field)
        self._do, *self._args = args

    def run(self) -> PiTeamError | None:
        """Do it; the refusal, if it was refused."""
        try:
            kwargs = {key: as_given(value) for key, value in self._kwargs.items()}
            getattr(self._mailbox, self._do)(*map(as_given, self._args), **kwargs)
        except PiTeamError as error:
            return error
        return None

    def close(self) -> None:
        self._mailbox.close()
        shutil.rmtree(self.field.path.parent)


def faults(calls: list[Call]) -> list[tuple[int, int, str]]:
    """Each call refused, with one errno after the other, and each change made although an error is told."""
    codes = itertools.cycle(REFUSALS)
    refused = [(index, next(codes), "fail") for index, call in enumerate(calls) if not call.error]
    told = [
        (index, next(codes), "fail_after")
        for index, call in enumerate(calls)
        if call.method in CHANGING and not call.error
    ]
    return refused + told


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_call_of_an_operation_is_refused(tmp_path: Path, name: str) -> None:
    """One system call fails, whichever it is, before it took effect or after: all or nothing, or unknown."""
    undisturbed = Victim(tmp_path / "undisturbed", name)
    before = state(undisturbed.field.path)
    assert undisturbed.run() is None
    after = state(undisturbed.field.path)
    told = set()
    for number, (index, code, how) in enumerate(faults(undisturbed.fs.calls)):
        victim = Victim(tmp_path / str(number), name)
        point: Point = victim.fs.at_call(index)
        (point.fail if how == "fail" else point.fail_after)(code)
        error = victim.run()
        call = victim.fs.calls[index]
        assert point.reached == 1, call
        if isinstance(error, StorageError):
            assert state(victim.field.path) == before, call
        elif error is None:
            assert state(victim.field.path) == after, call
        else:
            assert isinstance(error, OutcomeUnknown), (call, error)
        if error is not None:
            told.add(type(error))
            assert error.message
            assert error.hint
        bystander = Mailbox(victim.field.path, lock_lifetime=0.2)
        bystander.send(membership(victim.field.owners["dora"]), "carol", **NOTE)
        now = state(victim.field.path)["crew"][1][:-1]
        assert now in (before["crew"][1], after["crew"][1]), call
        if call.method != "unlink":  # what may not be removed stays
            assert evidence.strays(victim.field.path) == [], call
        bystander.close()
        victim.close()
    assert told == ({StorageError} if name == "heartbeat" else {StorageError, OutcomeUnknown})


@pytest.mark.parametrize(
    ("method", "code"), list(zip(["create", "write", "fsync", "link", "rename"], REFUSALS, strict=False))
)
def test_nothing_piles_up_while_it_is_refused(tmp_path: Path, method: str, code: int) -> None:
    """The disk stays full and a session tries fifty times: as many files lie there as after the first."""
    victim = Victim(tmp_path, "send")
    victim.fs.at(method).fail(code).always()
    descriptors = len(os.listdir("/dev/fd"))
    counts = []
    for _ in range(50):
        error = victim.run()
        assert isinstance(error, StorageError | OutcomeUnknown)
        counts.append(sum(1 for _ in tmp_path.rglob("*")))
        if isinstance(error, OutcomeUnknown):
            break  # from here on it is in the history, and a repetition is a duplicate
    assert counts == [counts[0]] * len(counts)
    assert len(os.listdir("/dev/fd")) <= descriptors + 2  # the record that it pins, and its directory
    assert counts[0] <= sum(1 for _ in tmp_path.rglob("*"))
    victim.close()

"""The operating system refuses again and again: disk full, read-only, no descriptors, a device's error.

What is left behind does not grow in number. The crash matrix has each operation refused at each call.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from grounds import as_given, ground
from interposition import REFUSALS, InterposedFileSystem, UnsyncedFileSystem
from pi_team.errors import OutcomeUnknown, PiTeamError, StorageError
from pi_team.mailbox import Mailbox
from recipes import OPERATIONS

if TYPE_CHECKING:
    from pathlib import Path


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

"""A program for `pi-team demo`: it sends a message and kills itself between the link and the rename.

That is the worst moment for a writer to die: its revision is in the history and the record does not
show it yet (docs/protocol.md, "A write").
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Final

from pi_team.mailbox import Mailbox
from pi_team.record.filesystem import OsFileSystem

__all__ = ["SUBJECT"]

SUBJECT: Final = "Written by the killed writer"


class _Deadly(OsFileSystem):
    """The operating system's file system, until it is armed."""

    armed = False

    def rename(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        """Rename, or die where the record would be replaced."""
        if self.armed and target == "state.json":
            os.kill(os.getpid(), signal.SIGKILL)
        super().rename(source, source_dir_fd, target, target_dir_fd)


def _main(team: str, alias: str, recipient: str) -> None:
    filesystem = _Deadly()
    mailbox = Mailbox(filesystem=filesystem)
    owner = mailbox.join(team, alias)
    filesystem.armed = True
    mailbox.send(owner, recipient, kind="note", subject=SUBJECT, body="It was linked, and not installed.")


if __name__ == "__main__":
    _main(*sys.argv[1:])

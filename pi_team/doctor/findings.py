"""What an examination finds, and the shell commands that mend it."""

from __future__ import annotations

import itertools
import os
import shlex
import stat
from typing import TYPE_CHECKING

import attrs

from pi_team.errors import RecordUnsafe, StorageError
from pi_team.record.filesystem import FileSystem, directory_fault, exists

if TYPE_CHECKING:
    from pi_team.errors import PiTeamError, UnsupportedSchema


@attrs.frozen(slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        code: the stable code of the error that it leads to, or `LEFTOVER`, `LOCK`, `PENDING`, `CLOCK`.
        team: the team, or "" for the teams directory itself.
        path: what it is about.
        message: what is wrong.
        command: the shell command that mends it, or "" where only a person can judge.
    """

    code: str
    team: str
    path: str
    message: str
    command: str

    def to_json(self) -> dict[str, str]:
        """The finding as `--json` prints it."""
        return {
            "code": self.code,
            "team": self.team,
            "path": self.path,
            "message": self.message,
            "command": self.command,
        }


def shell(*words: str) -> str:
    """A command of these words, quoted where that is needed."""
    return shlex.join(words)


def removal(status: os.stat_result, path: str) -> str:
    """The command that removes what nobody needs, whatever it is."""
    if stat.S_ISDIR(status.st_mode):
        return shell("rm", "-r", "--", path)
    return shell("rm", "--", path)


def moving_aside(fs: FileSystem, path: str) -> str:
    """The command that takes something away from its name and keeps it. Raises OSError."""
    for number in itertools.count(1):
        aside = f"{path}.refused" + (f"-{number}" if number > 1 else "")
        if not exists(fs, aside):
            break
    return shell("mv", "--", path, aside)


def closing(status: os.stat_result, path: str, limit: int) -> str:
    """The command that gives a file or directory its mode, or "" where that is not all that is wrong with it.

    Args:
        status: its state.
        path: its path.
        limit: the most bytes that a file may have.
    """
    if status.st_uid != os.geteuid():
        return ""
    if stat.S_ISDIR(status.st_mode):
        return shell("chmod", "700", path)
    if stat.S_ISREG(status.st_mode) and status.st_size <= limit:
        return shell("chmod", "600", path)
    return ""


def is_closed(status: os.stat_result) -> bool:
    """Whether the mode of a file or directory keeps its own user from reading it."""
    needed = 0o500 if stat.S_ISDIR(status.st_mode) else 0o400
    return status.st_uid == os.geteuid() and status.st_mode & needed != needed


def of_directory(
    fs: FileSystem, status: os.stat_result, team: str, path: str, *, replaced: bool = False
) -> Finding | None:
    """What is wrong with a directory that has to be ours alone, or None.

    Args:
        fs: the port.
        status: its state.
        team: the team, or "".
        path: its path.
        replaced: whether an empty one can take the place of what is no directory.

    Raises:
        OSError: the system refused to look.
    """
    fault = directory_fault(status)
    if not fault and is_closed(status):
        message = f"{path} is closed to you (mode {stat.S_IMODE(status.st_mode):04o})"
        return Finding(StorageError.code, team, path, message, shell("chmod", "700", path))
    if not fault:
        return None
    command = ""
    if stat.S_ISDIR(status.st_mode):
        command = closing(status, path, 0)
    elif replaced and not stat.S_ISLNK(status.st_mode):
        command = f"{moving_aside(fs, path)} && {shell('mkdir', '-m', '700', '--', path)}"
    return Finding(RecordUnsafe.code, team, path, f"{path} {fault}", command)


def of_unreadable(status: os.stat_result, team: str, path: str, error: PiTeamError) -> Finding:
    """What the system refused to read; its mode is mended where that is why."""
    command = closing(status, path, status.st_size) if is_closed(status) else ""
    return Finding(error.code, team, path, error.message, command)


def of_newer(error: UnsupportedSchema, team: str, path: str) -> Finding:
    """What a newer release wrote."""
    # How it was installed, and so how it is upgraded, is not known here.
    message = f"{error.message} ({path}): a newer pi-team wrote it, so upgrade this one"
    return Finding(error.code, team, path, message, "")

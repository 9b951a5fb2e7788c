"""Ports that leave out what the protocol asks of the real one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pi_team.record.filesystem import FileSystem


class WithoutSync:
    """A port that does not sync one descriptor."""

    def __init__(self, fs: FileSystem, fd: int) -> None:
        self._fs = fs
        self._fd = fd

    def fsync(self, fd: int) -> None:
        if fd != self._fd:
            self._fs.fsync(fd)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fs, name)


class ByPath:
    """A port that looks every name up anew, by the path that its directory had when it was opened."""

    def __init__(self, fs: FileSystem, team_fd: int, path: str) -> None:
        self._fs = fs
        self._paths = {team_fd: path}

    def _path(self, name: str, dir_fd: int | None) -> str:
        return name if dir_fd is None else f"{self._paths[dir_fd]}/{name}"

    def open_dir(self, name: str, dir_fd: int | None = None) -> int:
        fd = self._fs.open_dir(self._path(name, dir_fd))
        self._paths[fd] = self._path(name, dir_fd)
        return fd

    def link(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        paths = self._path(source, source_dir_fd), self._path(target, target_dir_fd)
        self._fs.link(paths[0], -1, paths[1], -1)

    def rename(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        paths = self._path(source, source_dir_fd), self._path(target, target_dir_fd)
        self._fs.rename(paths[0], -1, paths[1], -1)

    def __getattr__(self, method: str) -> Any:
        real = getattr(self._fs, method)
        if method not in ("open_read", "create", "mkdir", "stat", "unlink"):
            return real
        return lambda name, dir_fd=None: real(self._path(name, dir_fd))

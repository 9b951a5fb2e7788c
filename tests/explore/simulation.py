"""A file system in memory behind the port: what the kernel promises, and what it does not.

It knows what a test on a real disk cannot show: a freed inode number that comes back at once, and what is
not durable yet (powercut.py).
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
from typing import TYPE_CHECKING, Final, NoReturn

from disk import ROOT, Descriptor, Directory, Disk, File, Thing, fresh_number, status
from pi_team.record.filesystem import PRIVATE_DIRECTORY, PRIVATE_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIRST_DESCRIPTOR: Final = 3


class SimulatedFileSystem:
    """The port of one process on a disk.

    Args:
        disk: the disk; replaced at each call that changes it. Processes share one by handing it on.
        descriptors: what the process has open.
    """

    def __init__(self, disk: Disk, descriptors: Mapping[int, Descriptor] | None = None) -> None:
        self.disk = disk
        self.descriptors: Mapping[int, Descriptor] = descriptors or {}

    # --- names

    def _thing(self, fd: int) -> str:
        if fd not in self.descriptors:
            _refuse(errno.EBADF)
        return self.descriptors[fd].thing

    def _directory(self, thing: str) -> Directory:
        found = self.disk.things[thing]
        if not isinstance(found, Directory):
            _refuse(errno.ENOTDIR)
        return found

    def _place(self, name: str, dir_fd: int | None) -> tuple[str, str]:
        """The directory that a name is in, and the last part of the name."""
        at = ROOT if name.startswith("/") or dir_fd is None else self._thing(dir_fd)
        *above, last = [part for part in name.split("/") if part] or [""]
        for part in above:
            found = self._directory(at).entries.get(part)
            if found is None:
                _refuse(errno.ENOENT)
            at = found
        self._directory(at)
        return at, last

    def _find(self, name: str, dir_fd: int | None) -> str:
        place, last = self._place(name, dir_fd)
        if not last:
            return place
        found = self._directory(place).entries.get(last)
        if found is None:
            _refuse(errno.ENOENT)
        return found

    def is_directory(self, name: str, dir_fd: int | None = None) -> bool:
        """Whether a name is there and a directory's; not a call."""
        try:
            return isinstance(self.disk.things[self._find(name, dir_fd)], Directory)
        except OSError:
            return False

    # --- changing the disk

    def _replace(self, changes: Mapping[str, Thing]) -> None:
        self.disk = Disk({**self.disk.things, **changes}, self.disk.spare)

    def _count(self, thing: str, *, links: int = 0, opens: int = 0) -> None:
        found = self.disk.things[thing]
        number, links, opens = found.number, found.links + links, found.opens + opens
        spare = self.disk.spare
        if not links and not opens:
            spare |= {number}
            number = 0
        if isinstance(found, Directory):
            found = found.counted(number=number, links=links, opens=opens)
        else:
            found = File(number, links, opens, *found[3:])
        self.disk = Disk({**self.disk.things, thing: found}, spare)
        if not found.number:
            self._forget()

    def _name(self, place: str, name: str, value: str | None) -> None:
        """Let a name bear something else, or nothing; counts the links of both."""
        directory = self._directory(place)
        before = directory.entries.get(name)
        self._replace({place: directory.naming(name, value)})
        if value is not None:
            self._count(value, links=1)
        if before is not None:
            self._count(before, links=-1)

    def _forget(self) -> None:
        """Drop what has neither name nor descriptor, and what no power cut could bring back."""
        kept = {
            thing: found
            for thing, found in self.disk.things.items()
            if found.number or thing in self._recallable()
        }
        if len(kept) != len(self.disk.things):
            self.disk = Disk(kept, self.disk.spare)
            self._forget()  # what only a dropped directory remembered

    def _recallable(self) -> set[str | None]:
        return {
            thing
            for found in self.disk.things.values()
            if isinstance(found, Directory)
            for values in (*found.past.values(), found.entries.values())
            for thing in values
        }

    def _make(self, place: str, name: str) -> tuple[str, int]:
        directory = self._directory(place)
        if name in directory.entries:
            _refuse(errno.EEXIST)
        if not directory.links:
            _refuse(errno.ENOENT)
        thing = f"{place}/{name}"
        while thing in self.disk.things:
            thing += "'"
        if self.disk.spare:
            number = min(self.disk.spare)
            self.disk = Disk(self.disk.things, self.disk.spare - {number})
        else:
            number = fresh_number(thing, {found.number for found in self.disk.things.values()})
        return thing, number

    def _open(self, thing: str, name: str, *, writes: bool = False) -> int:
        self._count(thing, opens=1)
        fd = next(fd for fd in itertools.count(_FIRST_DESCRIPTOR) if fd not in self.descriptors)
        self.descriptors = {**self.descriptors, fd: Descriptor(thing, 0, writes, name)}
        return fd

    # --- the port

    def open_dir(self, name: str, dir_fd: int | None = None) -> int:
        thing = self._find(name, dir_fd)
        self._directory(thing)
        return self._open(thing, name)

    def open_read(self, name: str, dir_fd: int | None = None) -> int:
        thing = self._find(name, dir_fd)
        found = self.disk.things[thing]
        if isinstance(found, File) and found.target is not None:
            _refuse(errno.ELOOP)
        return self._open(thing, name)

    def create(self, name: str, dir_fd: int | None = None) -> int:
        place, last = self._place(name, dir_fd)
        thing, number = self._make(place, last)
        self._replace({thing: File(number, 0, 1, b"", b"")})
        self._name(place, last, thing)
        fd = self._open(thing, name, writes=True)
        self._count(thing, opens=-1)  # it was held while it had no name yet
        return fd

    def mkdir(self, name: str, dir_fd: int | None = None) -> None:
        place, last = self._place(name, dir_fd)
        thing, number = self._make(place, last)
        self._replace({thing: Directory(number, 0, 0, {}, {})})
        self._name(place, last, thing)

    def symlink(self, target: str, name: str, dir_fd: int | None = None) -> None:
        """Plant a symbolic link; the port makes none."""
        place, last = self._place(name, dir_fd)
        thing, number = self._make(place, last)
        self._replace({thing: File(number, 0, 0, target.encode(), target.encode(), target)})
        self._name(place, last, thing)

    def _state(self, thing: str) -> os.stat_result:
        found = self.disk.things[thing]
        if isinstance(found, Directory):
            return status(stat.S_IFDIR | PRIVATE_DIRECTORY, found.number, found.links, 0)
        mode = stat.S_IFREG | PRIVATE_FILE if found.target is None else stat.S_IFLNK | 0o777
        return status(mode, found.number, found.links, len(found.data))

    def fstat(self, fd: int) -> os.stat_result:
        return self._state(self._thing(fd))

    def stat(self, name: str, dir_fd: int | None = None) -> os.stat_result:
        return self._state(self._find(name, dir_fd))

    def read(self, fd: int, size: int) -> bytes:
        thing = self._thing(fd)
        found, descriptor = self.disk.things[thing], self.descriptors[fd]
        if descriptor.writes:
            _refuse(errno.EBADF)
        if isinstance(found, Directory):
            _refuse(errno.EISDIR)
        data = found.data[descriptor.offset : descriptor.offset + size]
        if data:
            moved = descriptor._replace(offset=descriptor.offset + len(data))
            self.descriptors = {**self.descriptors, fd: moved}
        return data

    def write(self, fd: int, data: bytes | memoryview) -> int:
        thing = self._thing(fd)
        found, descriptor = self.disk.things[thing], self.descriptors[fd]
        if not descriptor.writes or isinstance(found, Directory):
            _refuse(errno.EBADF)
        at = descriptor.offset
        written = found.data[:at] + bytes(data) + found.data[at + len(data) :]
        self._replace({thing: found._replace(data=written)})
        self.descriptors = {**self.descriptors, fd: descriptor._replace(offset=at + len(data))}
        return len(data)

    def fsync(self, fd: int) -> None:
        thing = self._thing(fd)
        found = self.disk.things[thing]
        if isinstance(found, File):
            self._replace({thing: found._replace(durable=found.data)})
        elif found.past:
            self._replace({thing: Directory(found.number, found.links, found.opens, found.entries, {})})
            self._forget()

    def close(self, fd: int) -> None:
        thing = self._thing(fd)
        self.descriptors = {other: open_ for other, open_ in self.descriptors.items() if other != fd}
        self._count(thing, opens=-1)

    def link(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        thing = self._find(source, source_dir_fd)
        place, last = self._place(target, target_dir_fd)
        directory = self._directory(place)
        if last in directory.entries:
            _refuse(errno.EEXIST)
        if not directory.links:
            _refuse(errno.ENOENT)
        if isinstance(self.disk.things[thing], Directory):
            _refuse(errno.EPERM)
        self._name(place, last, thing)

    def rename(self, source: str, source_dir_fd: int, target: str, target_dir_fd: int) -> None:
        from_place, from_last = self._place(source, source_dir_fd)
        place, last = self._place(target, target_dir_fd)
        thing = self._directory(from_place).entries.get(from_last)
        if thing is None or not self._directory(place).links:
            _refuse(errno.ENOENT)
        replaced = self._directory(place).entries.get(last)
        if replaced == thing:
            return  # two names of one file: nothing happens, and both stay
        if replaced is not None:
            self._check_replaceable(self.disk.things[thing], self.disk.things[replaced])
        self._count(thing, opens=1)  # held while it has no name
        self._name(from_place, from_last, None)
        self._name(place, last, thing)
        self._count(thing, opens=-1)

    def _check_replaceable(self, moved: Thing, replaced: Thing) -> None:
        if isinstance(moved, Directory):
            if not isinstance(replaced, Directory):
                _refuse(errno.ENOTDIR)
            if replaced.entries:
                _refuse(errno.ENOTEMPTY)
        elif isinstance(replaced, Directory):
            _refuse(errno.EISDIR)

    def unlink(self, name: str, dir_fd: int | None = None) -> None:
        place, last = self._place(name, dir_fd)
        if isinstance(self.disk.things[self._find(name, dir_fd)], Directory):
            _refuse(errno.EISDIR)
        self._name(place, last, None)

    def rmdir(self, name: str, dir_fd: int | None = None) -> None:
        place, last = self._place(name, dir_fd)
        if self._directory(self._find(name, dir_fd)).entries:
            _refuse(errno.ENOTEMPTY)
        self._name(place, last, None)

    def listdir(self, fd: int) -> list[str]:
        return sorted(self._directory(self._thing(fd)).entries)

    def touch(self, name: str, dir_fd: int | None = None) -> None:
        self._find(name, dir_fd)

    def die(self) -> None:
        """The process is gone: the kernel closes what it had open."""
        for fd in tuple(self.descriptors):
            self.close(fd)


def _refuse(code: int) -> NoReturn:
    raise OSError(code, os.strerror(code))

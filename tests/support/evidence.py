"""What the files of a teams directory say, read without any code under test."""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import io
import json
import os
import re
import stat
import tarfile
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

Fingerprint: TypeAlias = "dict[str, tuple[Any, ...]]"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def javascript_text(value: Any) -> str:
    """A JSON value of strings, integers and containers as `JSON.stringify` writes it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def digest(text: str) -> str:
    """The SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def sealed(data: bytes) -> dict[str, Any]:
    """A record's envelope; asserts that its hash is that of its payload as JavaScript would write it."""
    value: dict[str, Any] = json.loads(data)
    text = javascript_text(value["payload"])
    assert digest(text) == value["contentHash"]
    assert data.endswith(f',"payload":{text}}}'.encode())
    return value


def record(team: Path) -> dict[str, Any]:
    """The record of a team directory, checked as :func:`sealed` does."""
    return sealed((team / "state.json").read_bytes())


def payload(team: Path) -> dict[str, Any]:
    """The payload of the record."""
    value: dict[str, Any] = record(team)["payload"]
    return value


def legacy(team: Path) -> dict[str, Any]:
    """The record of a team that has no envelope."""
    value: dict[str, Any] = json.loads((team / "state.json").read_bytes())
    assert "schemaVersion" not in value
    return value


def revision(team: Path) -> int:
    """The revision of the record."""
    number: int = record(team)["revision"]
    return number


def subjects(team: Path) -> Counter[str]:
    """How often each subject is in the record, results left out: they bear their request's."""
    return Counter(message["subject"] for message in payload(team)["messages"] if message["kind"] != "result")


def history(team: Path) -> list[int]:
    """The numbers of the slots, lowest first."""
    return sorted(int(path.stem) for path in (team / "revisions").glob("[0-9]*.json"))


_REGULAR: Final = re.compile(
    r"\.locks(/[a-z][a-z0-9-]*\.lock(\.(break|restore)\..*)?)?"  # these may go when they are old enough
    r"|[a-z][a-z0-9-]*(/(state\.json(\.lock)?|revisions(/[1-9][0-9]*\.json)?|presence(/[a-z][a-z0-9-]*\.json)?))?"
)


def strays(path: Path) -> list[str]:
    """What is in a teams directory and has no business there once everybody is done."""
    names = (str(found.relative_to(path)) for found in path.rglob("*"))
    return sorted(name for name in names if not _REGULAR.fullmatch(name))


def fits(path: str, root: Path, pattern: str) -> bool:
    """Whether a path is below a directory and fits a pattern there; `.` is the directory itself."""
    return fnmatch.fnmatchcase(path, os.path.normpath(os.path.join(root, pattern)))


def fingerprint(root: Path) -> Fingerprint:
    """Everything below a directory that a process could have changed, times of access left out."""
    prints: Fingerprint = {}
    for path in [root, *sorted(root.rglob("*"))]:
        status = path.lstat()
        content: Any = None
        if stat.S_ISREG(status.st_mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        fields = (status.st_mode, status.st_ino, status.st_nlink, status.st_size, status.st_mtime_ns)
        prints[str(path.relative_to(root))] = (*fields, status.st_uid, content)
    return prints


def packed(root: Path) -> bytes:
    """A directory with its modes, times and hard links."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(root, arcname=".")
    return buffer.getvalue()


def unpack(data: bytes, root: Path) -> None:
    """Put a packed directory there; its files, directories and hard links."""
    root.mkdir(parents=True, exist_ok=True)
    directories = []
    for member, content in _members(data):
        path = os.path.join(root, member.name)
        if member.isdir():
            os.makedirs(path, exist_ok=True)
            directories.append((path, member))
        elif member.islnk():
            os.link(os.path.join(root, member.linkname), path)
        else:
            assert member.isreg(), member.name
            with open(path, "xb") as file:
                file.write(content)
            os.chmod(path, member.mode)
            os.utime(path, (member.mtime, member.mtime))
    for path, member in directories:
        os.chmod(path, member.mode)
        os.utime(path, (member.mtime, member.mtime))


@functools.lru_cache
def _members(data: bytes) -> list[tuple[tarfile.TarInfo, bytes]]:
    """What a packed directory holds: a copy of it is made a hundred times."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        contents = ((member, archive.extractfile(member)) for member in archive)
        return [(member, file.read() if file is not None else b"") for member, file in contents]

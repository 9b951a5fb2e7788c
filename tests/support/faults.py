"""Faults of a teams directory, each planted as it would come about."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
import time
from typing import TYPE_CHECKING, Any, Final

import attrs
import pytest

import evidence
from nursery import Died

if TYPE_CHECKING:
    from collections.abc import Callable

    from grounds import Ground
    from nursery import Nursery

UUID: Final = "0a1b2c3d-0000-4000-8000-0123456789ab"
OPTIONS: Final = {"unsynced": True}


def opened_to_others(name: str) -> Callable[[Ground, Nursery], None]:
    """Plant a mode that lets others read."""

    def plant(field: Ground, _: Nursery) -> None:
        path = field.path / name
        path.chmod(0o755 if path.is_dir() else 0o640)

    return plant


def behind_a_link(name: str) -> Callable[[Ground, Nursery], None]:
    """Plant a symbolic link where a directory or file was."""

    def plant(field: Ground, _: Nursery) -> None:
        path = field.path / name
        there = path.rename(field.path.parent / "elsewhere")
        path.symlink_to(there)

    return plant


def in_place(name: str, kind: str, size: int = 0) -> Callable[[Ground, Nursery], None]:
    """Plant something of another kind where a file or directory was, or an empty file of a size."""

    def plant(field: Ground, _: Nursery) -> None:
        path = field.path / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        if kind == "directory":
            path.mkdir(mode=0o700)
            (path / "inside").touch()
        elif kind == "FIFO":
            os.mkfifo(path, 0o600)
        elif kind == "link":
            path.symlink_to("nowhere")
        elif kind == "socket":
            # Where the path may be longer than one of a socket.
            with tempfile.TemporaryDirectory(dir="/tmp") as short, socket.socket(socket.AF_UNIX) as listener:
                listener.bind(f"{short}/s")
                shutil.move(f"{short}/s", path)
            path.chmod(0o600)
        else:
            path.touch(mode=0o600)
            os.truncate(path, size)

    return plant


def both(*plants: Callable[[Ground, Nursery], None]) -> Callable[[Ground, Nursery], None]:
    """Plant one after the other."""

    def plant(field: Ground, nursery: Nursery) -> None:
        for each in plants:
            each(field, nursery)

    return plant


def written(name: str, content: bytes | None) -> Callable[[Ground, Nursery], None]:
    """Plant a file with a content, or remove it."""

    def plant(field: Ground, _: Nursery) -> None:
        path = field.path / name
        path.unlink(missing_ok=True)
        if content is not None:
            path.touch(mode=0o600)
            path.write_bytes(content)

    return plant


def rewritten(name: str, change: Callable[[dict[str, Any]], None], copy: str = "") -> Any:
    """Plant a record with another content, in a file of its own."""

    def plant(field: Ground, nursery: Nursery) -> None:
        value = json.loads((field.path / name).read_bytes())
        change(value)
        text = evidence.javascript_text(value)
        written(copy or name, text.encode())(field, nursery)

    return plant


def aged(*names: str, seconds: float) -> Callable[[Ground, Nursery], None]:
    """Plant an empty file that was written long ago."""

    def plant(field: Ground, nursery: Nursery) -> None:
        then = time.time() - seconds
        for name in names:
            written(name, b"")(field, nursery)
            os.utime(field.path / name, (then, then))

    return plant


def died(order: str, *args: Any, method: str, name: str, owner: str = "", nth: int = 1) -> Any:
    """Plant what a process leaves that dies in an operation."""

    def plant(field: Ground, nursery: Nursery) -> None:
        victim = nursery.actor(field.path, **OPTIONS)
        victim.ask("trap", "kill", method=method, name=name, nth=nth)
        note = {"kind": "note", "subject": "the dead one's", "body": "x"} if order == "send" else {}
        with pytest.raises(Died):
            victim.ask(order, *([field.owners[owner]] if owner else []), *args, **note)
        for lock in [*field.path.glob(".locks/*"), *field.path.glob("*/state.json.lock")]:
            lock.unlink()  # which would be a finding of its own

    return plant


def set_revision(number: int) -> Callable[[dict[str, Any]], None]:
    return lambda value: value.update(revision=number)


def sent_tomorrow(value: dict[str, Any]) -> None:
    value["payload"]["messages"][-1]["created"] = round((time.time() + 86_400) * 1_000)
    seal(value)


def with_an_unknown_state(value: dict[str, Any]) -> None:
    value["payload"]["messages"][-1]["state"] = "thought about"
    value["revision"] = 20
    seal(value)


def of_another_team(value: dict[str, Any]) -> None:
    value["payload"]["members"][0]["team"] = "other"
    seal(value)


def seal(value: dict[str, Any]) -> None:
    text = evidence.javascript_text(value["payload"])
    value["contentHash"] = evidence.digest(text)


@attrs.frozen
class Fault:
    """A fault: how it is planted, and what the doctor says.

    Attributes:
        plant: plants it.
        codes: of the findings, those of each further round after the commands were run; the last is none.
        path: what the first finding is about, below the teams directory.
        person: whether a person has to judge.
        lossy: whether what was planted took the newest changes away for good.
    """

    plant: Callable[[Ground, Nursery], None]
    codes: tuple[str, ...]
    path: str
    person: bool = False
    lossy: bool = False


RECORD, ABOVE, BELOW = "crew/state.json", "crew/revisions/20.json", "crew/revisions/17.json"
AT, PRESENCE_FILE = "crew/revisions/19.json", "crew/presence/alice.json"
STABLE_LOCK, INNER_LOCK = ".locks/crew.lock", "crew/state.json.lock"
HALF_LOCK = f".locks/crew.lock.break.77.{'0' * 32}"
FAULTS: Final = {
    "teams open to others": Fault(opened_to_others("."), ("RECORD_UNSAFE",), "."),
    "team open to others": Fault(opened_to_others("crew"), ("RECORD_UNSAFE",), "crew"),
    "revisions open to others": Fault(
        opened_to_others("crew/revisions"), ("RECORD_UNSAFE",), "crew/revisions"
    ),
    "presence open to others": Fault(opened_to_others("crew/presence"), ("RECORD_UNSAFE",), "crew/presence"),
    "locks open to others": Fault(opened_to_others(".locks"), ("RECORD_UNSAFE",), ".locks"),
    "record open to others": Fault(opened_to_others(RECORD), ("RECORD_UNSAFE",), RECORD),
    "slot open to others": Fault(opened_to_others(BELOW), ("RECORD_UNSAFE",), BELOW),
    "presence file open to others": Fault(
        opened_to_others("crew/presence/alice.json"), ("RECORD_UNSAFE",), "crew/presence/alice.json"
    ),
    "teams behind a link": Fault(behind_a_link("."), ("RECORD_UNSAFE",), ".", person=True),
    "team behind a link": Fault(behind_a_link("crew"), ("RECORD_UNSAFE",), "crew", person=True),
    "revisions behind a link": Fault(
        behind_a_link("crew/revisions"), ("RECORD_UNSAFE",), "crew/revisions", person=True
    ),
    "presence behind a link": Fault(
        behind_a_link("crew/presence"), ("RECORD_UNSAFE",), "crew/presence", person=True
    ),
    "locks behind a link": Fault(behind_a_link(".locks"), ("RECORD_UNSAFE",), ".locks", person=True),
    "record behind a link": Fault(behind_a_link(RECORD), ("RECORD_UNSAFE",), RECORD),
    "slot behind a link": Fault(behind_a_link(BELOW), ("RECORD_UNSAFE",), BELOW),
    "presence file behind a link": Fault(
        behind_a_link("crew/presence/alice.json"), ("RECORD_UNSAFE",), "crew/presence/alice.json"
    ),
    "record too large": Fault(written(RECORD, b" " * 32_000_001), ("RECORD_UNSAFE",), RECORD),
    "record not JSON": Fault(written(RECORD, b'{"schemaVersion":1,'), ("RECORD_CORRUPT",), RECORD),
    "record of zeros": Fault(written(RECORD, bytes(4_096)), ("RECORD_CORRUPT",), RECORD),
    "record empty": Fault(written(RECORD, b""), ("RECORD_CORRUPT",), RECORD),
    "record with a wrong hash": Fault(
        rewritten(RECORD, lambda value: value.update(contentHash="0" * 64)), ("RECORD_CORRUPT",), RECORD
    ),
    "record of another team": Fault(rewritten(RECORD, of_another_team), ("RECORD_CORRUPT",), RECORD),
    "record missing": Fault(written(RECORD, None), ("RECORD_MISSING",), RECORD),
    "record of a later version": Fault(
        rewritten(RECORD, lambda value: value.update(schemaVersion=2)),
        ("UNSUPPORTED_SCHEMA",),
        RECORD,
        person=True,
    ),
    "slot below not JSON": Fault(written(BELOW, b"{"), ("RECORD_CORRUPT",), BELOW),
    "slot below of another revision": Fault(rewritten(BELOW, set_revision(3)), ("RECORD_CORRUPT",), BELOW),
    # Whoever can write goes past it; then it is one below.
    "slot above not JSON": Fault(written(ABOVE, b"{"), ("PENDING", "RECORD_CORRUPT"), ABOVE),
    "slot above with a broken schema": Fault(
        rewritten(RECORD, with_an_unknown_state, ABOVE), ("RECORD_CORRUPT",), ABOVE
    ),
    "slot above open to others": Fault(
        both(
            died("send", "bob", owner="alice", method="rename", name="* -> state.json"),
            opened_to_others(ABOVE),
        ),
        ("RECORD_UNSAFE", "PENDING"),
        ABOVE,
    ),
    "slot above behind a link": Fault(
        lambda field, _: (field.path / ABOVE).symlink_to("nowhere"), ("RECORD_UNSAFE",), ABOVE
    ),
    "slot above of a later version": Fault(
        rewritten(RECORD, lambda value: value.update(schemaVersion=2, revision=20), ABOVE),
        ("UNSUPPORTED_SCHEMA",),
        ABOVE,
        person=True,
    ),
    "publication not installed": Fault(
        died("send", "bob", owner="alice", method="rename", name="* -> state.json"), ("PENDING",), ABOVE
    ),
    "team half made": Fault(
        died("create", "third", method="fsync", name="revisions"), ("LEFTOVER",), ".new-third-*"
    ),
    "team half deleted": Fault(
        died("delete_team", "quiet", method="unlink", name="8.json"), ("LEFTOVER",), ".deleted-quiet-*"
    ),
    "team half renamed": Fault(
        died("rename_team", "quiet", "hushed", method="fsync", name="*teams"),
        ("RECORD_CORRUPT",),
        "hushed/state.json",
    ),
    "team half renamed and linked": Fault(
        died("rename_team", "quiet", "hushed", method="rename", name="* -> state.json"),
        ("RECORD_CORRUPT",),
        "hushed/state.json",
    ),
    "private file of a dead writer": Fault(
        died("send", "bob", owner="alice", method="link", name="*"), ("LEFTOVER",), "crew/revisions/.*.tmp"
    ),
    "presence temporary of a dead session": Fault(
        died("heartbeat", "idle", owner="alice", method="rename", name="*"),
        ("LEFTOVER",),
        "crew/presence/.alice*.tmp",
    ),
    "old temporary of a peer": Fault(
        aged(f"crew/state.json.{UUID}.tmp", seconds=4_000), ("LEFTOVER",), f"crew/state.json.{UUID}.tmp"
    ),
    "old temporary of a peer's slot": Fault(
        aged(f"crew/revisions/20.json.{UUID}.tmp", seconds=4_000),
        ("LEFTOVER",),
        f"crew/revisions/20.json.{UUID}.tmp",
    ),
    "old half-made lock": Fault(aged(HALF_LOCK, seconds=4_000), ("LEFTOVER",), HALF_LOCK),
    "old lock": Fault(aged(".locks/crew.lock", seconds=60), ("LOCK",), ".locks/crew.lock"),
    "old lock inside": Fault(aged("crew/state.json.lock", seconds=60), ("LOCK",), "crew/state.json.lock"),
    "lock behind a link": Fault(
        lambda field, _: (field.crew / "state.json.lock").symlink_to("nowhere"),
        ("LOCK",),
        "crew/state.json.lock",
    ),
    "directory in place of a lock": Fault(
        lambda field, _: (field.path / ".locks" / "crew.lock").mkdir(), ("LOCK",), ".locks/crew.lock"
    ),
    "lock inside open to others": Fault(
        both(aged("crew/state.json.lock", seconds=60), opened_to_others("crew/state.json.lock")),
        ("RECORD_UNSAFE", "LOCK"),
        "crew/state.json.lock",
    ),
    "message from the future": Fault(rewritten(RECORD, sent_tomorrow), ("CLOCK",), RECORD, person=True),
    "presence removed": Fault(
        lambda field, _: shutil.rmtree(field.path / "crew/presence"), ("RECORD_MISSING",), "crew/presence"
    ),
    "presence file malformed": Fault(
        written("crew/presence/alice.json", b"{}"), ("RECORD_UNSAFE",), "crew/presence/alice.json"
    ),
    "presence file too large": Fault(
        written("crew/presence/alice.json", b" " * 5_000), ("RECORD_UNSAFE",), "crew/presence/alice.json"
    ),
    "directory that is no team": Fault(
        lambda field, _: (field.path / "empty").mkdir(mode=0o700),
        ("RECORD_MISSING",),
        "empty/state.json",
        person=True,
    ),
    # Of slots that were not read the newest may be good: they are mended before anything is restored.
    "record a directory, its slot open to others": Fault(
        both(in_place(RECORD, "directory"), opened_to_others(AT)), ("RECORD_UNSAFE",), AT
    ),
    "record and its slot a directory": Fault(
        both(in_place(RECORD, "directory"), in_place(AT, "directory"), in_place(ABOVE, "FIFO")),
        ("RECORD_UNSAFE",),
        AT,
        lossy=True,
    ),
    "slot at the record open to others": Fault(opened_to_others(AT), ("RECORD_UNSAFE",), RECORD),
    "slot far above": Fault(
        in_place("crew/revisions/9007199254740991.json", "file"),
        ("RECORD_CORRUPT",),
        "crew/revisions/9007199254740991.json",
    ),
    "record missing, slot far above": Fault(
        both(written(RECORD, None), in_place("crew/revisions/9007199254740991.json", "file")),
        ("RECORD_MISSING", "RECORD_CORRUPT"),
        RECORD,
    ),
    "slot below open to others and above a FIFO": Fault(
        both(opened_to_others(BELOW), in_place(ABOVE, "FIFO")), ("RECORD_UNSAFE",), BELOW
    ),
    "slot above where one was set aside": Fault(
        both(in_place(f"{ABOVE}.refused", "directory"), in_place(ABOVE, "directory")),
        ("RECORD_UNSAFE",),
        ABOVE,
    ),
    "slot above too large": Fault(in_place(ABOVE, "file", 32_000_001), ("RECORD_UNSAFE",), ABOVE),
    "slot at the record too large": Fault(in_place(AT, "file", 32_000_001), ("RECORD_UNSAFE",), AT),
    "slot below too large": Fault(in_place(BELOW, "file", 32_000_001), ("RECORD_UNSAFE",), BELOW),
    "stable lock too large": Fault(in_place(STABLE_LOCK, "file", 2_000), ("LOCK",), STABLE_LOCK),
    "lock inside too large": Fault(in_place(INNER_LOCK, "file", 2_000), ("LOCK",), INNER_LOCK),
    "stable lock open to others": Fault(
        both(aged(STABLE_LOCK, seconds=60), opened_to_others(STABLE_LOCK)),
        ("RECORD_UNSAFE", "LOCK"),
        STABLE_LOCK,
    ),
    "stable lock a link": Fault(in_place(STABLE_LOCK, "link"), ("LOCK",), STABLE_LOCK),
    "teams a file": Fault(in_place(".", "file"), ("RECORD_UNSAFE",), ".", person=True),
    **{
        f"{what} a {kind}": Fault(in_place(name, kind), (code,), name)
        for what, name, kinds, code in (
            ("record", RECORD, ("directory", "FIFO", "socket"), "RECORD_UNSAFE"),
            ("slot above", ABOVE, ("directory", "FIFO", "socket"), "RECORD_UNSAFE"),
            ("slot at the record", AT, ("directory", "FIFO", "socket", "link"), "RECORD_UNSAFE"),
            ("slot below", BELOW, ("directory", "FIFO", "socket"), "RECORD_UNSAFE"),
            ("presence file", PRESENCE_FILE, ("directory", "FIFO", "socket"), "RECORD_UNSAFE"),
            ("stable lock", STABLE_LOCK, ("FIFO", "socket"), "LOCK"),
            ("lock inside", INNER_LOCK, ("directory", "FIFO", "socket"), "LOCK"),
            ("revisions", "crew/revisions", ("file", "FIFO", "socket"), "RECORD_UNSAFE"),
            ("presence", "crew/presence", ("file", "FIFO", "socket"), "RECORD_UNSAFE"),
            ("locks", ".locks", ("file", "FIFO", "socket"), "RECORD_UNSAFE"),
        )
        for kind in kinds
    },
}

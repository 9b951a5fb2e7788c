"""A teams directory for tests: planted states, writers in it, and a look at it that shares no code with them.

The payload is a list of strings; each write appends its own, so that what was lost, doubled or put back
can be read off the record.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from interposition import InterposedFileSystem
from pi_team import json_text
from pi_team.errors import TeamActive
from pi_team.presence import owner_exited, owner_token, this_process
from pi_team.record.attempt import Conflict
from pi_team.record.cache import Reader
from pi_team.record.directory import TeamDirectory
from pi_team.record.locks import Locks, Patience
from pi_team.record.publication import Author, Publisher
from pi_team.relocation import Terms
from pi_team.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from pi_team.clocks import Clock
    from pi_team.record.filesystem import FileSystem
    from pi_team.record.reading import Version

TEAM: Final = "alpha"
Items: TypeAlias = tuple[str, ...]
Slots: TypeAlias = "dict[int, dict[str, Any]]"


# --- the payload ----------------------------------------------------------------------------------


class ListCodec:
    """`{"team": T, "items": [...]}` ↔ a tuple of strings."""

    def __init__(self, team: str = TEAM) -> None:
        self.team = team

    def decode(self, text: str) -> Items:
        value = json_text.parse(text)
        if not isinstance(value, dict) or value.get("team") != self.team:
            raise ValueError(f"no payload of team {self.team}")
        items = value.get("items")
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise ValueError("items are no strings")
        return tuple(str(item) for item in items)

    def encode(self, value: Items) -> str:
        return payload_text(value, self.team)


def payload_text(items: Sequence[str], team: str = TEAM) -> str:
    return well_formed(
        json.dumps({"team": team, "items": list(items)}, ensure_ascii=False, separators=(",", ":"))
    )


def well_formed(text: str) -> str:
    """Escape lone surrogates, which is what `JSON.stringify` adds to `json.dumps`."""
    return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", text)


def appending(item: str) -> Callable[[Items], Items]:
    """The operation of a writer: append its own string."""
    return lambda items: (*items, item)


def unchanged(items: Items) -> Items:
    """An operation that changes nothing."""
    return items


def vacating(items: Items, _team: TeamDirectory) -> tuple[Items, TeamActive | None]:
    """`dead:X` is a dead member and swept, `alive:X` a living one that refuses a rename or a deletion."""
    left = tuple(item for item in items if not item.startswith("dead:"))
    alive = [item for item in items if item.startswith("alive:")]
    return (left if left != items else items), (TeamActive(alive[0]) if alive else None)


def terms(team: str = TEAM) -> Terms[Items]:
    return Terms(ListCodec(team), vacating)


# --- planted records ------------------------------------------------------------------------------


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def publication(identifier: str) -> dict[str, Any]:
    return {"id": identifier, "pid": 4_000_000, "start": 7, "host": "here", "boot": "b"}


def previous(revision: int, text: str, identifier: str | None) -> dict[str, Any]:
    return {"revision": revision, "contentHash": digest(text), "publication": identifier}


def envelope_text(
    revision: int,
    payload: str,
    *,
    by: str | None = None,
    parent: Mapping[str, Any] | None = None,
    extra: Mapping[str, Any] | None = None,
    schema: int = 1,
) -> str:
    """The text of a record; an older peer's where nobody published it."""
    head: dict[str, Any] = {"schemaVersion": schema, "revision": revision, "contentHash": digest(payload)}
    if by is not None:
        head |= {"publication": publication(by), "previous": parent or previous(0, "", None)}
    head |= extra or {}
    return f'{json.dumps(head, separators=(",", ":"))[:-1]},"payload":{payload}}}'


def put(path: str, content: str | bytes, mode: int = 0o600) -> None:
    """Write a file with exactly that mode."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    with open(path, "xb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    os.chmod(path, mode)


# --- the world ------------------------------------------------------------------------------------


@attrs.frozen
class State:
    """What the disk says about a team, read without any code under test."""

    revision: int
    items: Items
    slots: Slots
    privates: tuple[str, ...]
    others: tuple[str, ...]


class World:
    """A teams directory with one team, and everything that tests do to it by hand."""

    def __init__(self, root: str, *, kept: int = 32, lifetime: float = 10.0) -> None:
        self.path = os.path.join(root, "teams")
        self.kept = kept
        self.lifetime = lifetime
        os.makedirs(root, exist_ok=True)
        os.mkdir(self.path, 0o700)

    # paths

    def team(self, name: str = TEAM) -> str:
        return os.path.join(self.path, name)

    def record(self, team: str = TEAM) -> str:
        return os.path.join(self.team(team), "state.json")

    def slot(self, revision: int, team: str = TEAM) -> str:
        return os.path.join(self.team(team), "revisions", f"{revision}.json")

    def private(self, identifier: str, team: str = TEAM, owner: str = "dead") -> str:
        return os.path.join(self.team(team), "revisions", f".{identifier}.{owner}.tmp")

    # planting

    def make_directories(self, team: str = TEAM) -> None:
        for path in (self.team(team), *(os.path.join(self.team(team), d) for d in ("revisions", "presence"))):
            os.mkdir(path, 0o700)

    def plant(self, count: int = 1, team: str = TEAM, *, items: Sequence[str] | None = None) -> None:
        """A team at revision `count`, its history complete; revision N holds `r1` … `rN` unless given."""
        self.make_directories(team)
        parent = previous(0, "", None)
        for revision in range(1, count + 1):
            text = payload_text(items if items is not None else planted_items(revision), team)
            put(self.slot(revision, team), envelope_text(revision, text, by=f"p{revision}", parent=parent))
            parent = previous(revision, text, f"p{revision}")
        os.link(self.slot(count, team), self.record(team))

    def plant_pending(
        self, revision: int, items: Sequence[str], identifier: str, *, private: bool, team: str = TEAM
    ) -> None:
        """A publication that a killed writer linked on top of the newest slot and did not install."""
        below = json.loads(read(self.slot(revision - 1, team)))
        parent = {
            "revision": revision - 1,
            "contentHash": below["contentHash"],
            "publication": below.get("publication", {}).get("id"),
        }
        text = envelope_text(revision, payload_text(items, team), by=identifier, parent=parent)
        put(self.private(identifier, team), text)
        os.link(self.private(identifier, team), self.slot(revision, team))
        if not private:
            os.unlink(self.private(identifier, team))

    def plant_stuck(self, item: str, *, private: bool) -> None:
        """A team at revision 1, and above it what a killed writer linked and did not install."""
        self.plant(1)
        self.plant_pending(2, ("r1", item), item, private=private)

    # looking

    def state(self, team: str = TEAM) -> State:
        """The team as it stands; asserts that the record and its newest slot are sound."""
        value = parse_record(read(self.record(team)))
        assert value["payload"]["team"] == team
        history = os.path.join(self.team(team), "revisions")
        names = sorted(os.listdir(history)) if os.path.isdir(history) else []
        slots = {
            int(name.removesuffix(".json")): _parsed(os.path.join(history, name))
            for name in names
            if name.endswith(".json")
        }
        privates = tuple(name for name in names if name.endswith(".tmp"))
        others = tuple(
            sorted(set(os.listdir(self.team(team))) - {"state.json", "revisions", "presence"})
            + [name for name in names if not name.endswith((".json", ".tmp"))]
        )
        return State(value.get("revision", 0), tuple(value["payload"]["items"]), slots, privates, others)

    def items(self, team: str = TEAM) -> Items:
        return self.state(team).items

    def photograph(self, team: str | None = None) -> dict[str, tuple[str, bytes]]:
        """Every file and directory below a team (or all of them): its mode and its bytes."""
        root = self.path if team is None else self.team(team)
        taken: dict[str, tuple[str, bytes]] = {}
        for directory, names, files in os.walk(root):
            for name in (*names, *files):
                path = os.path.join(directory, name)
                status = os.lstat(path)
                content = b""
                if stat.S_ISREG(status.st_mode):
                    content = read(path)
                elif stat.S_ISLNK(status.st_mode):
                    content = os.readlink(path).encode()
                taken[os.path.relpath(path, root)] = (stat.filemode(status.st_mode), content)
        return taken

    def names(self) -> list[str]:
        """What is in the teams directory, besides the locks."""
        return sorted(name for name in os.listdir(self.path) if name != ".locks")

    # acting

    def clear(self) -> None:
        """Remove all that is in the teams directory."""
        for name in os.listdir(self.path):
            shutil.rmtree(os.path.join(self.path, name))

    def writer(self, name: str = "w", fs: FileSystem | None = None) -> Writer:
        return Writer(self, name, fs)

    def replace_team(self, team: str = TEAM, *, leave: Collection[str] = ("state.json", "revisions")) -> None:
        """Delete the team and create it anew, as somebody else would whose deletion got so far.

        Args:
            team: which one.
            leave: what the deletion has not removed from its tombstone yet.
        """
        tombstone = os.path.join(self.path, ".deleted-by-somebody")
        os.rename(self.team(team), tombstone)
        for name in set(os.listdir(tombstone)) - set(leave):
            path = os.path.join(tombstone, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        if not leave:
            os.rmdir(tombstone)
        self.plant(1, team, items=("new",))


def planted_items(revision: int) -> Items:
    return tuple(f"r{number}" for number in range(1, revision + 1))


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _parsed(path: str) -> dict[str, Any]:
    try:
        return parse_record(read(path))
    except (ValueError, KeyError, AssertionError, OSError):
        return {}


def parse_record(data: bytes) -> dict[str, Any]:
    """Parse a record and check its hash, independently of the code under test."""
    text = data.decode()
    value: dict[str, Any] = json.loads(text)
    if "schemaVersion" not in value:
        return {"payload": value}
    compact = well_formed(json.dumps(value["payload"], ensure_ascii=False, separators=(",", ":")))
    assert digest(compact) == value["contentHash"], "the content hash does not fit"
    return value


class Unlocked(Locks):
    """No locks at all: as if each had been stolen from its paused holder."""

    @contextlib.contextmanager
    def stable(self, *teams: str, patience: Patience, team_fd: int | None = None) -> Iterator[None]:
        del teams, patience, team_fd
        yield

    @contextlib.contextmanager
    def compatibility(self, team_fd: int, team: str, patience: Patience) -> Iterator[None]:
        del team_fd, team, patience
        yield


class Writer:
    """One process: its own file system, publisher, store and reader.

    Without locks, as if each had been stolen, unless `locked`; then it is the calling process that owns them.
    """

    def __init__(
        self,
        world: World,
        name: str,
        fs: FileSystem | None = None,
        *,
        locked: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self.world = world
        self.name = name
        self.fs = InterposedFileSystem(fs)
        self.clock: Clock = clock or StillClock()
        self.codec = ListCodec()
        self.author = Author(1, 2, "here", "boot", name)
        kind = Locks if locked else Unlocked
        self.locks = kind(
            self.fs,
            self.clock,
            world.path,
            owner=lambda: owner_token(this_process()),
            is_dead=owner_exited,
            lifetime=world.lifetime,
        )
        self.publisher = Publisher(self.locks, lambda: self.author, kept=world.kept)
        self.store = Store(
            self.fs, world.path, locks=self.locks, publisher=self.publisher, author=lambda: self.author
        )

    def patience(self, seconds: float = 15.0, notice: Callable[[str], None] | None = None) -> Patience:
        return Patience(self.clock, seconds, notice)

    def open(self, team: str = TEAM) -> TeamDirectory:
        return TeamDirectory(self.fs, self.world.path, team)

    def attempt(self, change: Callable[[Items], Items], team: str = TEAM) -> Version[Items]:
        """One attempt; a conflict is raised."""
        with self.open(team) as directory:
            return self.publisher.attempt(directory, ListCodec(team), change)

    def publish(
        self, change: Callable[[Items], Items], team: str = TEAM, *, patience: Patience | None = None
    ) -> Version[Items]:
        """Attempts until one takes effect, as an operation does."""
        return self.publisher.publish(
            lambda: self.open(team), ListCodec(team), change, patience or self.patience()
        )

    def append(self, item: str, team: str = TEAM) -> Version[Items]:
        return self.publish(appending(item), team)

    def append_many(self, count: int, prefix: str = "x", team: str = TEAM) -> None:
        for number in range(count):
            self.append(f"{prefix}{number}", team)

    def reader(self, team: str = TEAM, *, helping: bool = True) -> Reader[Items]:
        return Reader(
            self.fs,
            self.clock,
            self.world.path,
            team,
            codec=ListCodec(team),
            publisher=self.publisher if helping else None,
        )

    def rename(self, team: str, new: str) -> None:
        self.store.rename(
            team,
            new,
            before=terms(team),
            after=ListCodec(new),
            retitle=lambda items: (*items, f"renamed:{new}"),
            patience=self.patience(),
        )

    def delete(self, team: str = TEAM, *, damaged: bool = False) -> None:
        self.store.delete(team, terms=terms(team), damaged=damaged, patience=self.patience())

    def create(self, team: str = TEAM) -> None:
        self.store.create(team, payload_text((), team), self.patience())


class StillClock:
    """Time passes only while somebody sleeps, and then at once; the wall is the real one plus that."""

    def __init__(self) -> None:
        self.slept = 0.0
        self.sleeps = 0

    def wall(self) -> float:
        return time.time() + self.slept

    def running(self) -> float:
        return self.slept

    def monotonic(self) -> float:
        return self.slept

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.sleeps += 1


def conflicts(writer: Writer, item: str) -> bool:
    """Whether one attempt ends in a conflict."""
    try:
        writer.attempt(appending(item))
    except Conflict:
        return True
    return False

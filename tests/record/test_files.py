"""Safe files: what is read and written, with which modes, and what is refused and left as it was."""

from __future__ import annotations

import json
import os
import stat
import uuid
from typing import TYPE_CHECKING

import pytest

from pi_team.errors import RecordCorrupt, RecordMissing, RecordUnsafe, TeamUnknown, UnsupportedSchema
from pi_team.limits import RECORD_BYTES
from worlds import World, Writer, digest, envelope_text, payload_text, previous, put, read, unchanged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o777], ids=lambda mask: f"umask {mask:03o}")
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    assert os.umask(before) == request.param, "the process's umask was changed"


def modes(root: str) -> set[tuple[str, int]]:
    found = {("directory", stat.S_IMODE(os.stat(root).st_mode))}
    for directory, names, files in os.walk(root):
        found |= {("directory", stat.S_IMODE(os.stat(os.path.join(directory, n)).st_mode)) for n in names}
        found |= {("file", stat.S_IMODE(os.stat(os.path.join(directory, n)).st_mode)) for n in files}
    return found


def test_modes_of_what_is_created(root: Path, umask: int) -> None:
    """Exactly 0700 and 0600 whatever the umask is, from the teams directory to locks and private files."""
    del umask
    world = World(str(root))
    os.rmdir(world.path)
    writer = Writer(world, "w", locked=True)
    inside: set[tuple[str, int]] = set()
    writer.create()
    writer.fs.at("link", ".*.tmp -> *.json").before(lambda: inside.update(modes(world.path)))
    writer.append("x")
    assert modes(world.path) | inside == {("directory", 0o700), ("file", 0o600)}


def test_history_of_a_legacy_team_is_created_private_and_synced(world: World, umask: int) -> None:
    """A legacy team has no `revisions/`: its first write makes one and syncs the team's directory."""
    del umask
    os.mkdir(world.team())
    os.chmod(world.team(), 0o700)
    put(world.record(), payload_text(("old",)))
    writer = world.writer()
    assert writer.append("new").revision == 1
    assert world.items() == ("old", "new")
    assert modes(world.path) == {("directory", 0o700), ("file", 0o600)}
    calls = [str(call) for call in writer.fs.calls]
    assert calls.index("mkdir revisions") < calls.index("fsync alpha") < calls.index("fsync revisions")
    writer.append("more")
    assert [str(call) for call in writer.fs.calls].count("fsync alpha") == 1


# --- refused --------------------------------------------------------------------------------------


def mode(path: Callable[[World], str], bits: int) -> Callable[[World], None]:
    return lambda world: os.chmod(path(world), bits)


def link_to(path: Callable[[World], str]) -> Callable[[World], None]:
    def spoil(world: World) -> None:
        os.rename(path(world), path(world) + ".real")
        os.symlink(path(world) + ".real", path(world))

    return spoil


def replace(make: Callable[[str], None]) -> Callable[[World], None]:
    def spoil(world: World) -> None:
        os.unlink(world.record())
        make(world.record())

    return spoil


def record_of(world: World) -> str:
    return world.record()


def team_of(world: World) -> str:
    return world.team()


def history_of(world: World) -> str:
    return os.path.join(world.team(), "revisions")


def root_of(world: World) -> str:
    return world.path


def team_that_is_a_file(world: World) -> None:
    os.rename(world.team(), world.team() + ".real")
    put(world.team(), b"")


UNSAFE: dict[str, Callable[[World], None]] = {
    "group-readable record": mode(record_of, 0o640),
    "record that others may execute": mode(record_of, 0o601),
    "group-readable team": mode(team_of, 0o750),
    "teams directory open to others": mode(root_of, 0o755),
    "record is a link": link_to(record_of),
    "team is a link": link_to(team_of),
    "teams directory is a link": link_to(root_of),
    "record is a FIFO": replace(lambda path: os.mkfifo(path, 0o600)),
    "record is a directory": replace(lambda path: os.mkdir(path, 0o700)),
    "record is a dangling link": replace(lambda path: os.symlink("nowhere", path)),
    "record is one byte too large": lambda world: os.truncate(world.record(), RECORD_BYTES + 1),
    "team is a file": team_that_is_a_file,
}
UNSAFE_TO_WRITE: dict[str, Callable[[World], None]] = {
    "group-readable history": mode(history_of, 0o750),
    "history is a link": link_to(history_of),
}


@pytest.mark.parametrize("spoil", UNSAFE.values(), ids=UNSAFE)
def test_unsafe_file_is_refused_and_left_alone(world: World, spoil: Callable[[World], None]) -> None:
    """Writers and readers refuse it with RECORD_UNSAFE, and mend nothing silently."""
    world.plant(2)
    spoil(world)
    before = world.photograph()
    reader = world.writer("reader")
    operations: list[Callable[[], object]] = [
        lambda: world.writer().append("x"),
        lambda: world.writer().attempt(unchanged),
        reader.reader().read,
        world.writer().reader(helping=False).read,
    ]
    for operation in operations:
        with pytest.raises(RecordUnsafe):
            operation()
    assert world.photograph() == before
    assert reader.fs.open_names == {}


@pytest.mark.parametrize("spoil", UNSAFE_TO_WRITE.values(), ids=UNSAFE_TO_WRITE)
def test_unsafe_history_is_refused_by_writers(world: World, spoil: Callable[[World], None]) -> None:
    """A reader needs only the record; whoever writes needs a history that is its own."""
    world.plant(2)
    spoil(world)
    before = world.photograph()
    with pytest.raises(RecordUnsafe):
        world.writer().append("x")
    assert world.writer().reader().read().value == ("r1", "r2")
    assert world.photograph() == before


def foreign(status: os.stat_result) -> os.stat_result:
    fields = list(status)
    fields[4] = os.geteuid() + 1
    return os.stat_result(fields)


@pytest.mark.parametrize("name", ["state.json", "alpha", "revisions", "*/teams"])
def test_another_users_file_is_refused(world: World, name: str) -> None:
    """Whoever owns the file can change it at any time."""
    world.plant(2)
    before = world.photograph()
    writer = world.writer()
    writer.fs.at("fstat", name).action = lambda perform: foreign(perform())
    with pytest.raises(RecordUnsafe, match="belongs to user"):
        writer.append("x")
    assert world.photograph() == before


def test_record_of_exactly_the_limit_is_read(world: World) -> None:
    """32,000,000 bytes are fine, one more is not."""
    world.plant(1)
    filler = "x" * (RECORD_BYTES - len(envelope_text(2, payload_text(("",)))))
    text = envelope_text(2, payload_text((filler,)))
    assert len(text) == RECORD_BYTES
    put(world.record(), text)
    assert world.writer().attempt(unchanged).value == (filler,)
    with open(world.record(), "ab") as file:
        file.write(b" ")
    with pytest.raises(RecordUnsafe, match="32,000,001 bytes"):
        world.writer().attempt(unchanged)


def test_record_that_grows_while_it_is_read(world: World) -> None:
    """It was within the limit when it was opened: what comes beyond is not read."""
    world.plant(1)
    writer = world.writer()
    writer.fs.at("read", "state.json").before(lambda: os.truncate(world.record(), RECORD_BYTES + 2))
    with pytest.raises(RecordCorrupt, match="grew"):
        writer.attempt(unchanged)


def test_missing_team_and_missing_record(world: World) -> None:
    """No team, no teams directory, no record: three different things to say, and nothing is created."""
    with pytest.raises(TeamUnknown):
        world.writer().append("x")
    world.make_directories()
    with pytest.raises(RecordMissing):
        world.writer().append("x")
    with pytest.raises(RecordMissing):
        world.writer().reader().read()
    assert set(os.listdir(world.team())) == {"revisions", "presence"}
    nowhere = World.__new__(World)
    nowhere.__dict__ |= world.__dict__ | {"path": os.path.join(world.path, "none")}
    with pytest.raises(TeamUnknown):
        nowhere.writer().append("x")
    assert not os.path.exists(nowhere.path)


# --- the content of the record --------------------------------------------------------------------

SOUND = envelope_text(2, payload_text(("r1", "ü")), by="p2")
PRETTY = json.dumps(json.loads(SOUND), indent=2, ensure_ascii=False) + "\n"

CORRUPT = {
    "empty": b"",
    "NUL bytes": b"\0" * 300,
    "cut short": SOUND.encode()[:-1],
    "a tail": (SOUND + "x").encode(),
    "two records": (SOUND * 2).encode(),
    "a byte order mark": b"\xef\xbb\xbf" + SOUND.encode(),
    "a byte order mark in a formatted one": b"\xef\xbb\xbf" + PRETTY.encode(),
    "UTF-16": SOUND.encode("utf-16"),
    "Latin-1": SOUND.encode("latin-1"),
    "an upper-case hash": SOUND.replace(
        digest(payload_text(("r1", "ü"))), digest(payload_text(("r1", "ü"))).upper()
    ),
    "another hash": SOUND.replace(digest(payload_text(("r1", "ü"))), digest("")),
    "a touched payload": SOUND.replace("r1", "r9"),
    "a doubled envelope key": SOUND.replace('"revision":2', '"revision":2,"revision":2'),
    "a doubled envelope key, written otherwise": SOUND.replace(
        '"revision":2', '"revision":2,"\\u0072evision":2'
    ),
    "a doubled payload": SOUND.replace('"payload":', '"payload":1,"payload":'),
    "a doubled payload, written otherwise": SOUND.replace('"payload":', '"p\\u0061yload":1,"payload":'),
    "a doubled payload key": envelope_text(2, '{"team":"alpha","items":[],"items":[]}'),
    "NaN": envelope_text(2, '{"team":"alpha","items":[],"x":NaN}'),
    "Infinity": envelope_text(2, '{"team":"alpha","items":[],"x":-Infinity}'),
    "a number that no double holds": envelope_text(2, '{"team":"alpha","items":[],"x":1e999}'),
    "nested without end": envelope_text(2, '{"team":"alpha","items":[],"x":' + "[" * 9999 + "]" * 9999 + "}"),
    "NaN in the envelope": SOUND.replace('"revision":2', '"revision":NaN'),
    "revision 0": envelope_text(0, payload_text(("r1",))),
    "a negative revision": envelope_text(-1, payload_text(("r1",))),
    "a fractional revision": SOUND.replace('"revision":2', '"revision":2.5'),
    "a revision beyond 2^53-1": SOUND.replace('"revision":2', '"revision":9007199254740992'),
    "a revision that is text": SOUND.replace('"revision":2', '"revision":"2"'),
    "no revision": SOUND.replace('"revision":2,', ""),
    "no hash": SOUND.replace("contentHash", "contenthash"),
    "no payload": '{"schemaVersion":1,"revision":2,"contentHash":"x"}',
    "a broken payload": envelope_text(2, '{"team":"alpha"}'),
    "another team": envelope_text(2, payload_text(("r1",), "beta")),
    "a legacy payload of another team": payload_text(("r1",), "beta"),
    "no object": "[]",
    "a number": "1",
}


@pytest.mark.parametrize("content", CORRUPT.values(), ids=CORRUPT)
def test_corrupt_record_is_refused_and_kept(world: World, content: str | bytes) -> None:
    """RECORD_CORRUPT for writers and readers, and every byte stays."""
    world.plant(1)
    put(world.record(), content)
    before = world.photograph()
    with pytest.raises(RecordCorrupt):
        world.writer().append("x")
    with pytest.raises(RecordCorrupt):
        world.writer().reader().read()
    assert world.photograph() == before


@pytest.mark.parametrize("version", ["2", "0", "-1", "1.5", "null", "true", '"1"', "[]", "{}"])
@pytest.mark.parametrize("form", ["compact", "formatted"])
def test_other_schema_versions(world: World, version: str, form: str) -> None:
    """A newer release's record is not ours to judge, whatever its hash and payload look like."""
    world.plant(1)
    text = SOUND if form == "compact" else PRETTY
    put(
        world.record(),
        text.replace('"schemaVersion":1', f'"schemaVersion":{version}').replace(
            '"schemaVersion": 1', f'"schemaVersion": {version}'
        ),
    )
    before = world.photograph()
    with pytest.raises(UnsupportedSchema):
        world.writer().append("x")
    with pytest.raises(UnsupportedSchema):
        world.writer().reader().read()
    assert world.photograph() == before


ACCEPTED = {
    "as we write it": SOUND,
    "an older peer's": envelope_text(2, payload_text(("r1", "ü"))),
    "formatted": PRETTY,
    "with a final newline": SOUND + "\n",
    "keys in another order": json.dumps(dict(reversed(json.loads(SOUND).items())), ensure_ascii=False),
    "escaped": json.dumps(json.loads(SOUND)),
    "space inside the payload": SOUND.replace('"items":[', '"items": ['),
    "payload not last": json.dumps(
        {"payload": json.loads(SOUND)["payload"], **json.loads(SOUND)},
        ensure_ascii=False,
        separators=(",", ":"),
    ),
    "a payload key inside an unknown one": envelope_text(
        2, payload_text(("r1", "ü")), extra={"x": {"y": 1, "payload": 2}}
    ),
    "a payload key inside a text": envelope_text(2, payload_text(("r1", "ü")), extra={"x": ',"payload":{}'}),
}


@pytest.mark.parametrize("content", ACCEPTED.values(), ids=ACCEPTED)
def test_formatted_record_whose_canonical_hash_fits(world: World, content: str) -> None:
    """Readers accept it as it stands; the next write makes it canonical."""
    world.plant(1)
    put(world.record(), content)
    assert world.writer().reader().read().value == ("r1", "ü")
    assert read(world.record()) == content.encode()
    assert world.writer().append("x").revision == 3
    assert read(world.record()).endswith(b',"payload":' + payload_text(("r1", "ü", "x")).encode() + b"}")


def test_hash_of_the_text_as_it_stands(world: World) -> None:
    """A record whose hash covers its own, not canonical payload text is good as well."""
    world.plant(1)
    text = '{ "team":"alpha", "items":["r1"] }'
    put(world.record(), envelope_text(2, text))
    assert world.writer().append("x").revision == 3
    assert world.state().slots[3]["previous"] == previous(2, text, None)


def test_unknown_envelope_keys_are_kept(world: World) -> None:
    """A newer release's envelope keys survive our writes, adoptions and helping, and precede the payload."""
    world.plant(1)
    extra = {"x-later": {"a": [1, None, "ü"]}, "z": 1e21, "lone": "\ud800"}
    text = envelope_text(2, payload_text(("r1",)), by="p2", extra=extra)
    put(world.record(), text)
    writer = world.writer()
    writer.append("a")
    writer.append("b")
    record = json.loads(read(world.record()))
    assert {key: record[key] for key in extra} == extra
    assert list(record)[-1] == "payload"
    assert record["revision"] == 4


def test_unknown_envelope_keys_of_an_adopted_slot_are_kept(world: World) -> None:
    """What is based on an adopted slot carries that slot's keys on, not the record's."""
    world.plant(1)
    put(world.slot(2), envelope_text(2, payload_text(("r1", "peer")), extra={"later": 1}))
    world.writer().append("x")
    assert json.loads(read(world.record()))["later"] == 1


def test_legacy_record_reads_as_revision_0(world: World) -> None:
    """A payload without an envelope; its parent reference is revision 0 and the hash of its text."""
    world.plant(1)
    os.unlink(world.slot(1))
    text = '{"items": ["old"],\n "team": "alpha"}\n'
    put(world.record(), text)
    assert world.writer().reader().read().revision == 0
    assert world.writer().attempt(unchanged).revision == 0
    assert read(world.record()) == text.encode()
    assert world.writer().append("x").revision == 1
    assert world.state().slots[1]["previous"] == previous(0, text, None)


def test_two_writers_on_a_legacy_record(world: World) -> None:
    """The paused one linked revision 1; the other installs it, since its parent is the legacy text."""
    world.plant(1)
    os.unlink(world.slot(1))
    put(world.record(), payload_text(("old",)))
    first, second = world.writer("first"), world.writer("second")
    first.fs.at("rename", "*-> state.json").before(lambda: second.append("second"))
    first.append("first")
    assert world.items() == ("old", "first", "second")


def test_envelope_as_it_is_written(world: World) -> None:
    """Key order, compact text, the publication's fields and the parent, to the byte."""
    world.plant(1)
    writer = world.writer()
    version = writer.append("ü\u2028\ud800")
    record = json.loads(read(world.record()))
    identifier = record["publication"]["id"]
    payload = '{"team":"alpha","items":["r1","ü\u2028\\ud800"]}'
    parent = json.dumps(previous(1, payload_text(("r1",)), "p1"), separators=(",", ":"))
    assert read(world.record()).decode() == (
        f'{{"schemaVersion":1,"revision":2,"contentHash":"{digest(payload)}",'
        f'"publication":{{"id":"{identifier}","pid":1,"start":2,"host":"here","boot":"boot"}},'
        f'"previous":{parent},"payload":{payload}}}'
    )
    assert str(uuid.UUID(identifier)) == identifier
    assert (version.revision, version.previous.publication) == (2, identifier)
    assert os.stat(world.record()).st_ino == os.stat(world.slot(2)).st_ino

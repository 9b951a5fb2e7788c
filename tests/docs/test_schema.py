"""docs/record.schema.json accepts what is written, by us and by an older peer, and refuses what is broken."""

from __future__ import annotations

import copy
import json
import re
import tarfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import pytest
from jsonschema import Draft202012Validator

import repository
from pi_team import limits
from pi_team.domain.codec import TeamCodec
from pi_team.domain.model import Report
from pi_team.errors import PiTeamError
from pi_team.mailbox import Mailbox
from pi_team.record import envelope
from pi_team.record.envelope import Damaged

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCHEMA: Final[dict[str, Any]] = json.loads(repository.text("docs/record.schema.json"))
FIXTURES: Final = repository.ROOT / "tests" / "interop" / "fixtures.tar.gz"
"""Teams directories that an older peer wrote."""


def _validator(definition: str = "") -> Draft202012Validator:
    schema = {"$ref": f"#/$defs/{definition}", "$defs": SCHEMA["$defs"]} if definition else SCHEMA
    return Draft202012Validator(schema)


def _load(path: Path) -> Any:
    return json.loads(path.read_bytes())


def _reader_accepts(record: Any, team: str = "crew") -> bool:
    """Whether our reader takes a record, with the hash that fits its payload as it is now."""
    record = copy.deepcopy(record)
    payload = json.dumps(record["payload"]) if "payload" in record else ""
    if re.fullmatch("[0-9a-f]{64}", str(record.get("contentHash"))):
        record["contentHash"] = envelope.content_hash(payload)
    try:
        TeamCodec(team).decode(envelope.decode(json.dumps(record).encode()).payload)
    except (Damaged, PiTeamError, ValueError):
        return False
    return True


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A team of ours with members that came and left, and messages of every kind and several states."""
    teams = tmp_path_factory.mktemp("written") / "teams"
    mailbox = Mailbox(teams)
    mailbox.create("crew")
    lead, coder = (
        mailbox.join("crew", alias, session=f"s-{alias}", cwd="/srv/ü") for alias in ("lead", "coder")
    )
    done = mailbox.send(lead, "coder", kind="request", subject="Ünïcode 🔑", body="b" * limits.BODY_BYTES)
    mailbox.send(lead, "coder", kind="note", subject="s" * limits.SUBJECT_CHARACTERS, body="")
    mailbox.claim(coder, message_id=done.id)
    mailbox.settle(coder, done.id, Report("completed", "done", ("a.py",), ("pytest: passed",)))
    mailbox.notes(coder)
    mailbox.send(lead, "coder", kind="request", subject="more", body="x", parent=done.id)
    mailbox.claim(coder)
    mailbox.leave(coder)
    mailbox.send(lead, "coder", kind="request", subject="later", body="x")
    mailbox.close()
    return teams / "crew"


def test_the_schema_is_a_schema() -> None:
    """A typing error in the schema would make it accept anything."""
    Draft202012Validator.check_schema(SCHEMA)
    referred = set(json.dumps(SCHEMA).split('"#/$defs/')[1:])
    assert {part.split('"')[0] for part in referred} <= set(SCHEMA["$defs"])


def test_what_an_older_peer_wrote_is_accepted() -> None:
    """The schema was made from our files and forbids what the other implementation writes."""
    seen = {"record": 0, "slot": 0, "presence": 0}
    with tarfile.open(FIXTURES) as archive:
        for member in archive.getmembers():
            path = PurePosixPath(member.name)
            file = archive.extractfile(member) if path.suffix == ".json" else None
            if file is None:
                continue
            value = json.load(file)
            if path.name == "state.json" or path.parent.name == "revisions":
                seen["record" if path.name == "state.json" else "slot"] += 1
                _validator().validate(value)
                assert not _validator("written").is_valid(value)  # it bears no publication
            elif path.parent.name == "presence":
                seen["presence"] += 1
                _validator("presence").validate(value)
    assert all(count > 10 for count in seen.values()), seen


def test_what_we_write_is_accepted(written: Path) -> None:
    """Every revision that the operations publish is within the strict schema."""
    records = [written / "state.json", *(written / "revisions").glob("*.json")]
    assert len(records) > 8
    for path in records:
        _validator().validate(_load(path))
        _validator("written").validate(_load(path))


def test_the_presence_that_we_write_is_accepted(written: Path) -> None:
    """The presence that we write."""
    (path,) = (written / "presence").glob("*.json")
    _validator("presence").validate(_load(path))
    assert not _validator("presence").is_valid(_load(path) | {"token": ""})


def _put(*path: str | int, value: Any) -> Callable[[Any], None]:
    def change(record: Any) -> None:
        for step in path[:-1]:
            record = record[step]
        record[path[-1]] = value

    return change


def _drop(*path: str | int) -> Callable[[Any], None]:
    def change(record: Any) -> None:
        for step in path[:-1]:
            record = record[step]
        del record[path[-1]]

    return change


MEMBER: Final = ("payload", "members", 0)
MESSAGE: Final = ("payload", "messages", 0)
RESULT: Final = ("payload", "messages", 2, "result")
BROKEN: Final[dict[str, Callable[[Any], None]]] = {
    "another schema version": _put("schemaVersion", value=2),
    "a schema version that is no number": _put("schemaVersion", value="1"),
    "no revision": _drop("revision"),
    "revision 0": _put("revision", value=0),
    "a revision with a fraction": _put("revision", value=1.5),
    "a revision beyond 2^53 - 1": _put("revision", value=2**53),
    "an upper-case hash": _put("contentHash", value="A" * 64),
    "a short hash": _put("contentHash", value="a" * 63),
    "no hash": _drop("contentHash"),
    "no payload": _drop("payload"),
    "a publication without an id": _drop("publication", "id"),
    "an id that leaves the directory": _put("publication", "id", value="../x"),
    "an empty id": _put("publication", "id", value=""),
    "a start that is no number": _put("publication", "start", value="1"),
    "a publication without a parent": _drop("previous"),
    "a parent without a revision": _drop("previous", "revision"),
    "a parent whose publication is a number": _put("previous", "publication", value=1),
    "another payload version": _put("payload", "version", value=2),
    "members that are an object": _put("payload", "members", value={}),
    "no messages": _drop("payload", "messages"),
    "a member that is a string": _put(*MEMBER, value="lead"),
    "an alias in capitals": _put(*MEMBER, "alias", value="Lead"),
    "an alias with a final newline": _put(*MEMBER, "alias", value="lead\n"),
    "an alias of 49 characters": _put(*MEMBER, "alias", value="a" * 49),
    "an alias that begins with a digit": _put(*MEMBER, "alias", value="1a"),
    "an empty token": _put(*MEMBER, "token", value=""),
    "pid 0": _put(*MEMBER, "pid", value=0),
    "a pid with a fraction": _put(*MEMBER, "pid", value=1.5),
    "a negative time": _put(*MEMBER, "seen", value=-1),
    "an unknown status": _put(*MEMBER, "status", value="away"),
    "a member without a directory": _drop(*MEMBER, "cwd"),
    "a message without an id": _drop(*MESSAGE, "id"),
    "an empty subject": _put(*MESSAGE, "subject", value=""),
    "a body that is null": _put(*MESSAGE, "body", value=None),
    "an unknown kind": _put(*MESSAGE, "kind", value="reply"),
    "an unknown state": _put(*MESSAGE, "state", value="done"),
    "a time that is text": _put(*MESSAGE, "created", value="now"),
    "an empty root id": _put(*MESSAGE, "rootId", value=""),
    "a claim that is null": _put(*MESSAGE, "claim", value=None),
    "a result without an outcome": _drop(*RESULT, "outcome"),
    "an unknown outcome": _put(*RESULT, "outcome", value="cancelled"),
    "files that are text": _put(*RESULT, "files", value="a.py"),
    "a test that is a number": _put(*RESULT, "tests", value=[1]),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_is_refused(what: str, written: Path) -> None:
    """Schema and reader refuse the same: one that says more or less than the code would mislead a porter."""
    record = _load(written / "state.json")
    assert _validator().is_valid(record)
    assert _reader_accepts(record)
    BROKEN[what](record)
    assert not _validator().is_valid(record)
    assert not _reader_accepts(record)


KEPT: Final[dict[str, Callable[[Any], None]]] = {
    "an unknown key of the envelope": _put("later", value={"a": [1]}),
    "an unknown key of the payload": _put("payload", "later", value=1),
    "an unknown key of a member": _put(*MEMBER, "later", value=None),
    "an unknown key of a message": _put(*MESSAGE, "later", value=[]),
    "a time with a fraction": _put(*MESSAGE, "created", value=1700000000000.25),
    "a subject that is longer than ours would be": _put(*MESSAGE, "subject", value="s" * 161),
    "a body that is longer than ours would be": _put(*MESSAGE, "body", value="b" * 16_001),
    "more members than we would let in": lambda record: record["payload"]["members"].extend(
        record["payload"]["members"][:1] * limits.MEMBERS
    ),
}


@pytest.mark.parametrize("what", KEPT)
def test_what_a_reader_has_to_accept_is_accepted(what: str, written: Path) -> None:
    """Neither schema nor reader calls corrupt what a newer, an older or a careless peer may have written."""
    record = _load(written / "state.json")
    KEPT[what](record)
    _validator().validate(record)
    assert _reader_accepts(record)


def test_a_legacy_mailbox_is_a_payload_alone(written: Path) -> None:
    """Without `schemaVersion` the whole text is the payload, and a broken one is refused."""
    payload = _load(written / "state.json")["payload"]
    _validator().validate(payload)
    _put("members", 0, "pid", value=0)(payload)
    assert not _validator().is_valid(payload)


STRICT: Final = {
    ("session",): ("members", limits.IDENTIFIER_CHARACTERS),
    ("cwd",): ("members", limits.CWD_CHARACTERS),
    ("id",): ("messages", limits.IDENTIFIER_CHARACTERS),
    ("subject",): ("messages", limits.SUBJECT_CHARACTERS),
    ("body",): ("messages", limits.STORED_BODY_CHARACTERS),
    ("claim",): ("messages", limits.IDENTIFIER_CHARACTERS),
    ("result", "body"): ("messages", limits.STORED_BODY_CHARACTERS),
}


@pytest.mark.parametrize("keys", STRICT)
def test_the_strict_schema_has_our_limits(keys: tuple[str, ...], written: Path) -> None:
    """A limit changed and the schema of what we write did not."""
    part, limit = STRICT[keys]
    for length, valid in ((limit, True), (limit + 1, False)):
        record = _load(written / "state.json")
        _put("payload", part, 2 if part == "messages" else 1, *keys, value="x" * length)(record)
        assert _validator("written").is_valid(record) is valid


@pytest.mark.parametrize(("key", "limit"), [("files", limits.REPORT_FILES), ("tests", limits.REPORT_TESTS)])
def test_the_strict_schema_has_our_counts(key: str, limit: int, written: Path) -> None:
    """As above, for the lists of a result."""
    for length, valid in ((limit, True), (limit + 1, False)):
        record = _load(written / "state.json")
        _put(*RESULT, key, value=["x"] * length)(record)
        assert _validator("written").is_valid(record) is valid

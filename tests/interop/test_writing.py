"""Directories of the TypeScript implementation are written on, and it can read what was written.

After each operation the payload is compared with what `JSON.stringify` would give for the same values, by a
way that shares no code with ours: the bytes, the hash over them, the order of the keys.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

import evidence
from grounds import membership
from interposition import UnsyncedFileSystem
from pi_team.domain.model import Report
from pi_team.errors import MembershipLost
from pi_team.mailbox import Mailbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pi_team.domain.model import Message

HEAD: Final = ["schemaVersion", "revision", "contentHash", "publication", "previous"]
REPORT: Final = Report("completed", "done", (), ())
ODD: Final = '\x00\x1f\x7f\\"/\b\f\n\r\t\u2028\ud800é日🔑'
"""What two implementations of JSON may write differently."""


def rewrite(team: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a record in place, as a newer peer might have written it."""
    value = evidence.record(team)
    change(value)
    payload = value.pop("payload")
    value["contentHash"] = evidence.digest(evidence.javascript_text(payload))
    (team / "state.json").unlink()
    (team / "state.json").touch(mode=0o600)
    (team / "state.json").write_text(evidence.javascript_text(value | {"payload": payload}), "utf-8")


def add_unknown_keys(value: dict[str, Any]) -> None:
    value["signedBy"] = {"key": [1, None, "é"]}
    value["payload"] = {"future": {"b": 1, "a": [True]}, **value["payload"], "trailing": "\ud83d"}
    for item in value["payload"]["messages"]:
        item["priority"] = 3
    for item in value["payload"]["members"]:
        item["model"] = {"name": "ünknown", "size": 7}


def payload(team: Path) -> dict[str, Any]:
    """The payload of the record, which is checked; of a legacy one, which cannot be."""
    data = (team / "state.json").read_bytes()
    value: dict[str, Any] = json.loads(data)
    return evidence.sealed(data)["payload"] if "schemaVersion" in value else value


def kept(before: dict[str, Any], after: dict[str, Any], changing: set[str]) -> None:
    """Assert that one object of the record became the other and lost nothing on the way."""
    assert [key for key in after if key != "claim"] == [key for key in before if key != "claim"]
    for key, value in before.items():
        if key not in changing:
            assert after[key] == value


def check(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Assert that whatever was in a payload still is: every message, key, and key's place."""
    assert list(after) == list(before)
    assert {key: after[key] for key in after if key not in {"members", "messages"}} == {
        key: before[key] for key in before if key not in {"members", "messages"}
    }
    now = {message["id"]: message for message in after["messages"]}
    assert list(now)[: len(before["messages"])] == [message["id"] for message in before["messages"]]
    for message in before["messages"]:
        kept(message, now[message["id"]], {"state", "claim", "from", "to", "team"})
    tokens = {member["token"]: member for member in after["members"]}
    for member in before["members"]:
        if member["token"] in tokens:
            kept(member, tokens[member["token"]], {"status", "alias", "team"})


class Peer:
    """The three sessions of the other implementation, whose memberships are used from here on."""

    def __init__(self, path: Path, owners: dict[str, Any]) -> None:
        self.mailbox = Mailbox(path, filesystem=UnsyncedFileSystem())
        self.lead, self.coder, self.reviewer = (membership(owners[name]) for name in ("lead", "coder", "rev"))
        self.asked = self.taken = ""
        self.newcomer = self.lead

    def id_of(self, kind: str, subject: str) -> str:
        """The id of a message that was there."""
        return next(m.id for m in self.messages() if (m.kind, m.subject) == (kind, subject))

    def messages(self) -> tuple[Message, ...]:
        return self.mailbox.look("crew").messages

    def operations(self) -> dict[str, Callable[[], object]]:
        """Each operation that writes, in an order in which none is refused."""
        box, lead, coder, reviewer = self.mailbox, self.lead, self.coder, self.reviewer

        def claim() -> None:
            claimed = box.claim(lead)
            assert claimed is not None
            self.taken = claimed.id

        def ask() -> None:
            self.asked = box.send(lead, "coder", kind="request", subject=f"Q{ODD}", body=ODD).id

        return {
            "notes": lambda: box.notes(reviewer),
            "settle a result": lambda: box.settle(lead, self.id_of("result", "Überprüfung 日本 🔑"), REPORT),
            "claim a result": claim,
            "release": lambda: box.release(lead, self.taken),
            "send a note": lambda: box.send(coder, "reviewer", kind="note", subject="n", body=ODD),
            "send a request": ask,
            "settle a request": lambda: box.settle(coder, self.id_of("request", "in work"), REPORT),
            "claim a request": lambda: box.claim(coder, message_id=self.asked),
            "join": lambda: setattr(self, "newcomer", box.join("crew", "newcomer", cwd="/é\ud800")),
            "leave": lambda: box.leave(self.newcomer),
            "rename another": lambda: box.rename_member("crew", "newcomer", "late"),
            "rename myself": lambda: box.rename_member("crew", "reviewer", "critic", actor=reviewer),
            "leave with a claim": lambda: box.leave(coder),
            "remove": lambda: box.remove_member("crew", "coder", actor=lead),
        }


@pytest.mark.parametrize(
    "case", ["2-full", "2-full with unknown keys", "3-legacy-before", "3-legacy-after-join"]
)
def test_each_operation_writes_what_the_other_implementation_would(
    fixtures: Path, beside: Callable[[str], Any], case: str
) -> None:
    """A byte, a hash, an unknown key or the place of a key came out otherwise: the peer cannot read it."""
    path = fixtures / case.split(maxsplit=1)[0]
    team = path / "crew"
    if "unknown" in case:
        rewrite(team, add_unknown_keys)
    peer = Peer(path, beside("2-full.memberships.json"))
    first = json.loads((team / "state.json").read_bytes())
    revision = first.get("revision", 0)
    lone = [message["body"] for message in payload(team)["messages"] if "lone" in message["subject"]]
    for name, operate in peer.operations().items():
        before = payload(team)
        operate()
        check(before, payload(team))
        written = evidence.record(team)
        revision += 1
        assert written["revision"] == revision, name
        assert list(written) == [*HEAD, *(["signedBy"] if "unknown" in case else []), "payload"]
        assert written.get("signedBy") == first.get("signedBy")
        assert (team / "state.json").stat().st_ino == (team / f"revisions/{revision}.json").stat().st_ino
        assert (team / "state.json").stat().st_mode & 0o7777 == 0o600
    assert [m["body"] for m in payload(team)["messages"] if "lone" in m["subject"]] == lone
    assert peer.mailbox.doctor() == []


def test_legacy_record_is_the_parent_of_the_first_one_with_an_envelope(fixtures: Path) -> None:
    """A record without an envelope is revision 0; what follows it names the hash of its text."""
    path = fixtures / "3-legacy-before"
    text = (path / "crew" / "state.json").read_text("utf-8")
    Mailbox(path).join("crew", "newcomer")
    written = evidence.record(path / "crew")
    assert written["revision"] == 1
    assert written["previous"] == {"revision": 0, "contentHash": evidence.digest(text), "publication": None}
    assert evidence.history(path / "crew") == [1]
    assert (path / "crew" / "revisions").stat().st_mode & 0o7777 == 0o700
    assert (path / "crew" / "presence").stat().st_mode & 0o7777 == 0o700


@pytest.mark.parametrize("entry", ["1-fresh", "3-legacy-before"])
def test_first_of_us_joins_a_team_that_an_older_peer_made(fixtures: Path, entry: str) -> None:
    """An older peer makes a team without `presence/`: its first member makes it, a heartbeat never does."""
    path = fixtures / entry
    (team,) = Mailbox(path).teams()
    assert not (path / team / "presence").exists()
    mailbox = Mailbox(path)
    owner = mailbox.join(team, "newcomer")
    mailbox.heartbeat(owner, "busy")
    displayed = {item.member.alias: item.displayed for item in mailbox.look(team).members}
    assert displayed["newcomer"] == "busy"
    assert (path / team / "presence" / "newcomer.json").exists()


def test_team_of_dead_peers_is_renamed_and_deleted(fixtures: Path) -> None:
    """Every member is a session of the other implementation that died: two intervals of watching tell so."""
    path = fixtures / "2-full"
    before = payload(path / "crew")
    mailbox = Mailbox(path, interval=0.05)
    mailbox.rename_team("crew", "band")
    after = payload(path / "band")
    assert {message["team"] for message in after["messages"]} == {"band"}
    assert {member["status"] for member in after["members"]} == {"offline"}
    pending = {message["id"] for message in before["messages"] if message["state"] == "pending"}
    assert pending <= {message["id"] for message in after["messages"] if message["state"] == "pending"}
    mailbox.delete_team("band")
    assert mailbox.teams() == []


def test_dead_peers_alias_is_taken_over(fixtures: Path, beside: Callable[[str], Any]) -> None:
    """A peer died at its work: who joins its alias inherits it, and what it had claimed is interrupted."""
    path = fixtures / "2-full"
    mailbox = Mailbox(path, interval=0.05)
    old = membership(beside("2-full.memberships.json")["coder"])
    new = mailbox.join("crew", "coder")
    with pytest.raises(MembershipLost):
        mailbox.send(old, "lead", kind="note", subject="late", body="x")
    request = next(message for message in mailbox.look("crew").messages if message.subject == "in work")
    assert request.state == "interrupted"
    claimed = mailbox.claim(new)
    assert claimed is not None
    assert claimed.subject == "pending req"


def test_record_that_somebody_formatted_anew_is_good(fixtures: Path) -> None:
    """Pretty-printed by hand: the hash fits the canonical text, and the next write is canonical again."""
    path = fixtures / "2-full"
    record = path / "crew" / "state.json"
    pretty = json.dumps(json.loads(record.read_bytes()), indent=2)
    before = payload(path / "crew")
    record.unlink()
    record.touch(mode=0o600)
    record.write_text(pretty)
    Mailbox(path).join("crew", "newcomer")
    check(before, payload(path / "crew"))

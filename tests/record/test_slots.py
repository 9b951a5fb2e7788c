"""What stands above the record: helped, adopted, skipped and kept, or an error, and never two of these."""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING

import pytest

from pi_team.errors import (
    OutcomeUnknown,
    PiTeamError,
    RecordCorrupt,
    RecordUnsafe,
    StorageError,
    UnsupportedSchema,
)
from pi_team.limits import RECORD_BYTES, REVISION_MAX
from pi_team.record import publication as module
from pi_team.record.envelope import Damaged
from pi_team.record.reading import read_slot
from worlds import (
    Items,
    World,
    appending,
    digest,
    envelope_text,
    payload_text,
    planted_items,
    previous,
    publication,
    put,
    read,
    unchanged,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_team.record.directory import TeamDirectory
    from pi_team.record.envelope import Envelope


def successor_text(items: Items, **changes: object) -> str:
    """Revision 2 on the planted revision 1, with some of its envelope changed."""
    payload = payload_text(items)
    head: dict[str, object] = {
        "schemaVersion": 1,
        "revision": 2,
        "contentHash": digest(payload),
        "publication": publication("someone"),
        "previous": previous(1, payload_text(("r1",)), "p1"),
    }
    head |= changes
    return f'{json.dumps(head, separators=(",", ":"))[:-1]},"payload":{payload}}}'


SOUND = successor_text(("r1", "above"))

DAMAGED = {
    "zero length": b"",
    "cut short": SOUND.encode()[:-20],
    "cut in the head": SOUND.encode()[:40],
    "NUL bytes": b"\0" * len(SOUND),
    "a tail of NUL bytes": SOUND.encode()[:200] + b"\0" * 200,
    "another revision": successor_text(("r1", "above"), revision=3).encode(),
    "revision zero": successor_text(("r1", "above"), revision=0).encode(),
    "a fraction": successor_text(("r1", "above"), revision=2.5).encode(),
    "a revision that is true": successor_text(("r1", "above"), revision=True).encode(),
    "another hash": successor_text(("r1", "above"), contentHash=digest("x")).encode(),
    "no hash": successor_text(("r1", "above"), contentHash=None).encode(),
    "an upper-case hash": successor_text(
        ("r1", "above"), contentHash=digest(payload_text(("r1", "above"))).upper()
    ).encode(),
    "a payload that was touched": SOUND.replace("above", "abode").encode(),
    "no payload": b'{"schemaVersion":1,"revision":2}',
    "a byte order mark": b"\xef\xbb\xbf" + SOUND.encode(),
    "Latin-1": SOUND.replace("above", "\xe4").encode("latin-1"),
    "a doubled key": SOUND.replace('"revision":2', '"revision":2,"revision":2').encode(),
    "two values": SOUND.encode() * 2,
    "not an object": b"[]",
    "no envelope": payload_text(("r1", "above")).encode(),
    "NaN in the payload": envelope_text(2, '{"team":"alpha","items":[NaN]}', by="s").encode(),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_damaged_slot_is_skipped_and_kept(world: World, content: bytes) -> None:
    """What was read and is no record of that revision does not stop anybody, and stays as evidence."""
    world.plant(1)
    put(world.slot(2), content)
    version = world.writer().append("next")
    assert version.revision == 3
    assert world.items() == ("r1", "next")
    assert read(world.slot(2)) == content
    assert world.state().slots[3]["previous"]["publication"] == "p1", "it is based on the record"


def test_unchanged_payload_is_published_after_a_skip(world: World) -> None:
    """Older peers would be blocked by the damaged slot: even what changes nothing gets past it."""
    world.plant(1)
    put(world.slot(2), b"")
    assert world.writer().attempt(unchanged).revision == 3
    assert world.items() == ("r1",)
    assert world.writer().attempt(unchanged).revision == 3, "and only once"


def test_all_at_once(world: World) -> None:
    """Pending, orphaned, damaged, a stranger's branch, an older peer's: one write gets past all of them."""
    world.plant(1)
    world.plant_pending(2, ("r1", "helped"), "helped", private=True)
    world.plant_pending(3, ("r1", "helped", "orphan"), "orphan", private=False)
    put(world.slot(4), b"")
    stranger = previous(3, payload_text(("lost",)), "lost")
    put(world.slot(5), envelope_text(5, payload_text(("lost", "branch")), by="branch", parent=stranger))
    peers = ("r1", "helped", "orphan", "peer")
    put(world.slot(6), envelope_text(6, payload_text(peers)))
    assert world.writer().append("next").revision == 7
    assert world.items() == (*peers, "next")
    assert sorted(world.state().slots) == [1, 2, 3, 4, 5, 6, 7]


# --- an older peer's slot -------------------------------------------------------------------------


def test_older_peers_slot_is_adopted(world: World) -> None:
    """It is linked under no publication id and not installed: its content is kept, whatever becomes of it."""
    world.plant(1)
    text = envelope_text(2, payload_text(("r1", "peer")))
    put(world.slot(2), text)
    assert world.writer().append("next").revision == 3
    assert world.items() == ("r1", "peer", "next")
    parent = world.state().slots[3]["previous"]
    assert parent == previous(2, payload_text(("r1", "peer")), None)


def test_older_peer_installs_its_slot_late(world: World) -> None:
    """It wakes up after its slot was adopted and puts the record back; the chain leads forward again."""
    world.plant(1)
    text = envelope_text(2, payload_text(("r1", "peer")))
    put(world.slot(2), text)
    world.writer().append("next")
    put(world.record(), text)
    assert world.writer("later").append("later").revision == 4
    assert world.items() == ("r1", "peer", "next", "later")


def test_older_peers_record_is_continued(world: World) -> None:
    """A record without a publication is known by its content hash."""
    world.plant(1)
    text = envelope_text(2, payload_text(("r1", "peer")))
    put(world.slot(2), text)
    put(world.record(), text)
    assert world.writer().append("next").revision == 3
    assert world.state().slots[3]["previous"] == previous(2, payload_text(("r1", "peer")), None)


def test_pending_on_top_of_an_older_peers_record_is_helped(world: World) -> None:
    """A publication whose parent is known by content only is installed like any other."""
    world.plant(1)
    text = envelope_text(2, payload_text(("r1", "peer")))
    put(world.slot(2), text)
    put(world.record(), text)
    world.plant_pending(3, ("r1", "peer", "pending"), "pending", private=True)
    assert world.writer().attempt(unchanged).revision == 3
    assert world.items() == ("r1", "peer", "pending")


# --- an error and not a skip ----------------------------------------------------------------------


def group_readable(world: World) -> None:
    os.chmod(world.slot(2), 0o640)


def symbolic_link(world: World) -> None:
    os.rename(world.slot(2), world.slot(2) + ".real")
    os.symlink("2.json.real", world.slot(2))


def fifo(world: World) -> None:
    os.unlink(world.slot(2))
    os.mkfifo(world.slot(2), 0o600)


def directory(world: World) -> None:
    os.unlink(world.slot(2))
    os.mkdir(world.slot(2), 0o700)


def too_large(world: World) -> None:
    os.truncate(world.slot(2), RECORD_BYTES + 1)


def unknown_schema(world: World) -> None:
    put(world.slot(2), successor_text(("r1", "above"), schemaVersion=2))


def broken_payload(world: World) -> None:
    text = json.dumps({"team": "alpha", "items": "not a list"}, separators=(",", ":"))
    put(world.slot(2), envelope_text(2, text, by="s", parent=previous(1, payload_text(("r1",)), "p1")))


def broken_payload_of_a_branch(world: World) -> None:
    text = json.dumps({"team": "alpha", "items": "not a list"}, separators=(",", ":"))
    put(world.slot(2), envelope_text(2, text, by="s", parent=previous(1, "elsewhere", "q")))


def another_team(world: World) -> None:
    put(world.slot(2), envelope_text(2, payload_text(("r1",), "beta")))


def odd_publication(world: World) -> None:
    put(world.slot(2), successor_text(("r1", "above"), publication={"id": "../../state"}))


def odd_parent(world: World) -> None:
    put(world.slot(2), successor_text(("r1", "above"), previous=7))


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (group_readable, RecordUnsafe),
        (symbolic_link, RecordUnsafe),
        (fifo, RecordUnsafe),
        (directory, RecordUnsafe),
        (too_large, RecordUnsafe),
        (unknown_schema, UnsupportedSchema),
        (broken_payload, RecordCorrupt),
        (broken_payload_of_a_branch, RecordCorrupt),
        (another_team, RecordCorrupt),
        (odd_publication, RecordCorrupt),
        (odd_parent, RecordCorrupt),
    ],
    ids=lambda value: value.__name__,
)
def test_slot_that_cannot_be_judged_is_an_error(
    world: World, spoil: Callable[[World], None], expected: type[PiTeamError]
) -> None:
    """Two writers that disagree on whether a slot counts would both publish: nobody skips it."""
    world.plant(1)
    world.plant_pending(2, ("r1", "above"), "someone", private=True)
    spoil(world)
    before = world.photograph()
    for change in (appending("next"), unchanged):
        with pytest.raises(expected):
            world.writer().attempt(change)
    assert world.photograph() == before


@pytest.mark.parametrize("code", [errno.EIO, errno.EMFILE, errno.EACCES, errno.ESTALE, errno.ELOOP])
@pytest.mark.parametrize("method", ["open_read", "fstat", "read"])
def test_failed_read_of_a_slot_is_an_error(world: World, method: str, code: int) -> None:
    """A slot above that cannot be read at the moment may hold an acknowledged write."""
    world.plant(1)
    world.plant_pending(2, ("r1", "above"), "someone", private=False)
    before = world.photograph()
    writer = world.writer()
    writer.fs.at(method, "2.json").fail(code)
    with pytest.raises((StorageError, RecordUnsafe)):
        writer.attempt(appending("next"))
    assert world.photograph() == before
    assert writer.attempt(appending("next")).revision == 3
    assert world.items() == ("r1", "above", "next")


def test_skipping_what_cannot_be_read_loses_an_acknowledged_write(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control: one writer skips a slot at a failing read while another helps it; both pass step 7."""

    def read_slot_or_skip(team: TeamDirectory, revision: int) -> Envelope | None:
        try:
            return read_slot(team, revision)
        except OSError as error:
            raise Damaged(str(error)) from error

    monkeypatch.setattr(module, "read_slot", read_slot_or_skip)
    world.plant(1)
    world.plant_pending(2, ("r1", "above"), "someone", private=True)
    blind, helper = world.writer("blind"), world.writer("helper")
    blind.fs.at("open_read", "2.json").fail(errno.EIO)
    blind.fs.at("rename", "*-> state.json").before(lambda: helper.attempt(unchanged))
    blind.attempt(appending("next"))
    assert "above" not in world.items()


# --- helping --------------------------------------------------------------------------------------


def test_chain_of_pending_publications_is_installed_one_after_the_other(world: World) -> None:
    """Three killed writers in a row: each is installed by its own rename, in order."""
    world.plant(1)
    for revision in (2, 3, 4):
        items = (*planted_items(1), *(f"d{n}" for n in range(2, revision + 1)))
        world.plant_pending(revision, items, f"dead{revision}", private=True)
    writer = world.writer()
    assert writer.attempt(unchanged).revision == 4
    assert len(writer.fs.names("rename", "*-> state.json")) == 3
    assert world.items() == ("r1", "d2", "d3", "d4")
    assert world.state().privates == ()


def test_orphan_below_a_pending_publication(world: World) -> None:
    """The power cut took one private file and left the next one: the later one is installed."""
    world.plant(1)
    world.plant_pending(2, ("r1", "orphan"), "orphan", private=False)
    world.plant_pending(3, ("r1", "orphan", "pending"), "pending", private=True)
    assert world.writer().attempt(unchanged).revision == 3
    assert world.items() == ("r1", "orphan", "pending")


def test_private_file_without_a_slot_is_nobodys(world: World) -> None:
    """A writer killed before its link never published."""
    world.plant(1)
    put(world.private("early"), successor_text(("r1", "early")))
    assert world.writer().append("next").revision == 2
    assert world.items() == ("r1", "next")
    assert len(world.state().privates) == 1, "the sweep takes it, the next writer does not"


@pytest.mark.parametrize("moment", ["read", "listdir", "fsync", "rename"])
def test_owner_goes_on_while_it_is_helped(world: World, moment: str) -> None:
    """The sleeping owner installs its publication itself at each moment of the helper, and goes on."""
    world.plant(1)
    world.plant_pending(2, ("r1", "owner"), "owner", private=True)
    helper = world.writer()

    def install() -> None:
        os.rename(world.private("owner"), world.record())

    name = {"read": "2.json", "listdir": "revisions", "fsync": "revisions", "rename": "*"}[moment]
    helper.fs.at(moment, name).before(install)
    assert helper.append("helper").revision == 3
    assert world.items() == ("r1", "owner", "helper")


def test_helper_whose_rename_fails_refuses_its_own_operation_cleanly(world: World) -> None:
    """EIO of the rename for another: this operation did not happen; the publication waits for the next."""
    world.plant(1)
    world.plant_pending(2, ("r1", "dead"), "dead", private=True)
    before = world.photograph()
    helper = world.writer()
    helper.fs.at("rename").fail(errno.EIO)
    with pytest.raises(StorageError):
        helper.append("helper")
    assert world.photograph() == before


def test_damaged_record_is_never_helped_or_written(world: World) -> None:
    """The record cannot be read: nobody publishes on top of it, whatever stands above."""
    world.plant(1)
    world.plant_pending(2, ("r1", "dead"), "dead", private=True)
    put(world.record(), b"{")
    before = world.photograph()
    with pytest.raises(RecordCorrupt):
        world.writer().append("next")
    assert world.photograph() == before


def test_record_damaged_while_a_writer_is_between_link_and_rename(world: World) -> None:
    """Step 7 cannot read it: nothing is withdrawn and nothing overwritten."""
    world.plant(1)
    writer = world.writer()
    writer.fs.at("fsync", "revisions").before(lambda: put(world.record(), b"{"))
    with pytest.raises(OutcomeUnknown):
        writer.append("item")
    assert read(world.record()) == b"{"
    assert os.path.exists(world.slot(2))


def test_record_removed_while_a_writer_is_between_link_and_rename(world: World) -> None:
    """A missing record is not one above the slot: nothing is withdrawn, a recovery finds the publication."""
    world.plant(1)
    writer = world.writer()
    writer.fs.at("fsync", "revisions").before(lambda: os.unlink(world.record()))
    with pytest.raises(OutcomeUnknown):
        writer.append("item")
    assert os.path.exists(world.slot(2))


# --- the end of the numbers -----------------------------------------------------------------------


def test_last_revision(world: World) -> None:
    """Above 2^53-1 there is no revision: an error, and nothing is written."""
    world.make_directories()
    text = envelope_text(REVISION_MAX, payload_text(("last",)))
    put(world.record(), text)
    put(world.slot(REVISION_MAX), text)
    before = world.photograph()
    with pytest.raises(RecordCorrupt, match="used up"):
        world.writer().append("more")
    assert world.photograph() == before


def test_last_but_one_revision(world: World) -> None:
    """2^53-1 itself can be published."""
    world.make_directories()
    put(world.record(), envelope_text(REVISION_MAX - 1, payload_text(("last",))))
    assert world.writer().append("more").revision == REVISION_MAX
    assert world.items() == ("last", "more")

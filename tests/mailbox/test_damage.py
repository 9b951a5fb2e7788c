"""A damaged, foreign or unsafe record fails closed: every operation refuses it, and it stays as it was."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any, Final

import attrs
import pytest

import evidence
from faults import RECORD, behind_a_link, opened_to_others, rewritten, written
from grounds import Ground, as_given, ground, membership
from pi_team.errors import PiTeamError
from pi_team.mailbox import Mailbox
from recipes import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nursery import Nursery


def in_place_of_the_record(make: Callable[[Path], object]) -> Callable[[Ground, Nursery], None]:
    """Plant something that is no regular file."""

    def plant(field: Ground, _: Nursery) -> None:
        (field.path / RECORD).unlink()
        make(field.path / RECORD)

    return plant


def with_a_key_twice(field: Ground, nursery: Nursery) -> None:
    text = (field.path / RECORD).read_text().replace('"revision"', '"revision":7,"revision"', 1)
    written(RECORD, text.encode())(field, nursery)


@attrs.frozen
class Damage:
    """What is planted, the code that every operation refuses with, and who is not concerned."""

    plant: Callable[[Ground, Nursery], None]
    code: str
    unconcerned: frozenset[str] = frozenset()


READING: Final = frozenset({"look", "snapshot", "heartbeat"})
DAMAGES: Final = {
    "cut short": Damage(written(RECORD, b'{"schemaVersion":1,"revision":19,"conten'), "RECORD_CORRUPT"),
    "empty": Damage(written(RECORD, b""), "RECORD_CORRUPT"),
    "zeros": Damage(written(RECORD, bytes(8_192)), "RECORD_CORRUPT"),
    "not UTF-8": Damage(written(RECORD, b"\xff\xfe{}"), "RECORD_CORRUPT"),
    "byte order mark": Damage(written(RECORD, b"\xef\xbb\xbf{}"), "RECORD_CORRUPT"),
    "a key twice": Damage(with_a_key_twice, "RECORD_CORRUPT"),
    "wrong hash": Damage(
        rewritten(RECORD, lambda value: value.update(contentHash="0" * 64)), "RECORD_CORRUPT"
    ),
    "changed payload": Damage(
        rewritten(RECORD, lambda value: value["payload"]["messages"].pop()), "RECORD_CORRUPT"
    ),
    "upper-case hash": Damage(
        rewritten(RECORD, lambda value: value.update(contentHash=value["contentHash"].upper())),
        "RECORD_CORRUPT",
    ),
    "revision 0": Damage(rewritten(RECORD, lambda value: value.update(revision=0)), "RECORD_CORRUPT"),
    "missing": Damage(written(RECORD, None), "RECORD_MISSING"),
    "later schema": Damage(
        rewritten(RECORD, lambda value: value.update(schemaVersion=2)), "UNSUPPORTED_SCHEMA"
    ),
    "link": Damage(behind_a_link(RECORD), "RECORD_UNSAFE"),
    "link to nowhere": Damage(
        in_place_of_the_record(lambda path: path.symlink_to("nowhere")), "RECORD_UNSAFE"
    ),
    "readable for the group": Damage(opened_to_others(RECORD), "RECORD_UNSAFE"),
    "directory": Damage(in_place_of_the_record(lambda path: path.mkdir(0o700)), "RECORD_UNSAFE"),
    "fifo": Damage(in_place_of_the_record(lambda path: os.mkfifo(path, 0o600)), "RECORD_UNSAFE"),
    "one byte too large": Damage(written(RECORD, b" " * 32_000_001), "RECORD_UNSAFE"),
    "team a link": Damage(behind_a_link("crew"), "RECORD_UNSAFE"),
    "team readable for the group": Damage(opened_to_others("crew"), "RECORD_UNSAFE"),
    "teams a link": Damage(behind_a_link("."), "RECORD_UNSAFE"),
    "teams readable for the group": Damage(opened_to_others("."), "RECORD_UNSAFE"),
    "revisions a link": Damage(behind_a_link("crew/revisions"), "RECORD_UNSAFE", READING),
    "revisions readable for the group": Damage(opened_to_others("crew/revisions"), "RECORD_UNSAFE", READING),
    "locks a link": Damage(behind_a_link(".locks"), "RECORD_UNSAFE", READING),
}


def operations(field: Ground) -> dict[str, Callable[[Mailbox], object]]:
    """Every public operation on the team but its recovery, which is what is left to do."""
    found: dict[str, Callable[[Mailbox], object]] = {
        "look": lambda box: box.look("crew"),
        "snapshot": lambda box: box.snapshot(membership(field.owners["alice"])),
        "rename the team": lambda box: box.rename_team("crew", "band"),
        "delete the team": lambda box: box.delete_team("crew"),
    }
    for name, operation in OPERATIONS.items():
        if operation.team == "crew" and name != "recover":
            args, kwargs = operation.order(field)
            found[name] = ordered(args, kwargs)
    return found


def ordered(args: list[Any], kwargs: dict[str, Any]) -> Callable[[Mailbox], object]:
    """An actor's order as a call."""
    do, *given = (as_given(value) for value in args)
    options = {key: as_given(value) for key, value in kwargs.items()}
    return lambda box: getattr(box, do)(*given, **options)


def files(root: Path) -> evidence.Fingerprint:
    """The files; of directories, what is not the time at which a lock in them came and went."""
    return {
        name: fields[:4] + fields[5:] if stat.S_ISDIR(fields[0]) else fields
        for name, fields in evidence.fingerprint(root).items()
    }


@pytest.mark.parametrize("name", DAMAGES)
def test_every_operation_refuses_it_and_leaves_it_as_it_is(
    nursery: Nursery, tmp_path: Path, name: str
) -> None:
    """A record that cannot be trusted: an operation that wrote would destroy what is to be recovered."""
    damage, field = DAMAGES[name], ground(tmp_path)
    damage.plant(field, nursery)
    mailbox = Mailbox(field.path, patience=2.0)
    before = files(tmp_path)
    for what, operate in operations(field).items():
        if what in damage.unconcerned:
            operate(mailbox)
        else:
            with pytest.raises(PiTeamError) as refused:
                operate(mailbox)
            assert refused.value.code == damage.code, (what, refused.value)
            assert refused.value.message
            assert refused.value.hint
        if what != "heartbeat":
            assert files(tmp_path) == before, what
        else:
            before = files(tmp_path)
    mailbox.close()


def test_session_goes_on_saying_that_it_lives(tmp_path: Path, nursery: Nursery) -> None:
    """The record is destroyed under living sessions: none of them may be taken for dead for that."""
    field = ground(tmp_path)
    mailbox = Mailbox(field.path)
    owner = mailbox.join("crew", "newcomer")
    mailbox.heartbeat(owner, "idle")
    written(RECORD, b"")(field, nursery)
    mailbox.heartbeat(owner, "busy")
    with pytest.raises(PiTeamError):
        mailbox.snapshot(owner)
    Mailbox(field.path).recover("crew")
    assert mailbox.snapshot(owner).members[-1].displayed == "busy"

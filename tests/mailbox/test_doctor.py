"""Each fault that `doctor` knows: it is planted, named with a command, and that very command mends it.

Where no command is named a person has to judge, and the message says of what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import evidence
from faults import FAULTS, OPTIONS
from grounds import ground
from trials import shell

if TYPE_CHECKING:
    from pathlib import Path

    from nursery import Nursery


def unprobed(prints: evidence.Fingerprint) -> evidence.Fingerprint:
    """A fingerprint but for the time of `teams/`, in which the file system is tried."""
    return {name: fields[:4] + fields[5:] if name == "teams" else fields for name, fields in prints.items()}


QUICK = {"record not JSON", "publication not installed"}
"""One each of the faults whose command starts a program of Python, which the others do in the full suite."""
STARTING = {
    *("record behind a link", "record too large", "record of zeros", "record empty", "record missing"),
    *("record with a wrong hash", "record of another team", "slot above not JSON"),
    *("slot above open to others", "team half renamed", "team half renamed and linked"),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in STARTING else ()) for name in FAULTS]
)
def test_fault_is_named_and_mended_by_its_command(nursery: Nursery, tmp_path: Path, name: str) -> None:
    """A fault in the files: examining it changes nothing, and what is printed makes an end of it."""
    fault, field = FAULTS[name], ground(tmp_path)
    fault.plant(field, nursery)
    actor = nursery.actor(field.path, **OPTIONS)
    for turn, code in enumerate(fault.codes):
        before = evidence.fingerprint(tmp_path)
        findings = actor.ask("doctor")
        assert unprobed(evidence.fingerprint(tmp_path)) == unprobed(before)
        assert {finding["code"] for finding in findings} == {code}, findings
        if turn == 0:
            assert evidence.fits(findings[0]["path"], field.path, fault.path), findings
        assert [finding["command"] == "" for finding in findings] == [fault.person] * len(findings)
        assert all(finding["message"] for finding in findings)
        commands = [finding["command"] for finding in findings if finding["command"]]
        assert name in STARTING | QUICK or not any(command.startswith("pi-team") for command in commands)
        for command in commands:
            shell(command, field.path)
    if fault.person:
        return
    assert actor.ask("doctor") == []
    note = {"kind": "note", "subject": "afterwards", "body": "x"}
    assert actor.ask("send", field.owners["dora"], "carol", **note)["state"] == "pending"
    subjects = evidence.subjects(field.crew)
    assert {subject for subject in field.ids if not subject.startswith("quiet")} <= set(subjects)
    assert max(subjects.values()) == 1


def test_doctor_has_nothing_to_say_of_what_is_right(nursery: Nursery, tmp_path: Path) -> None:
    """Teams in use, a ghost among their members; a directory without teams; one that is not there."""
    field = ground(tmp_path)
    actor = nursery.actor(field.path)
    before = evidence.fingerprint(field.path)
    assert actor.ask("doctor") == []
    assert actor.ask("doctor", "crew") == []
    assert unprobed({"teams": before["."]}) == unprobed({"teams": evidence.fingerprint(field.path)["."]})
    assert {**evidence.fingerprint(field.path), ".": ()} == {**before, ".": ()}
    empty = tmp_path / "empty"
    empty.mkdir(mode=0o700)
    assert nursery.actor(empty).ask("doctor") == []
    assert nursery.actor(tmp_path / "nowhere").ask("doctor") == []
    assert not (tmp_path / "nowhere").exists()

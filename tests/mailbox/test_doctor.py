"""Each fault that `doctor` knows: it is planted, named with a command, and that very command mends it.

Where no command is named a person has to judge, and the message says of what.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

import evidence
from faults import ABOVE, AT, BELOW, FAULTS, OPTIONS, RECORD, opened_to_others, rewritten, seal, written
from grounds import ground
from interposition import InterposedFileSystem
from pi_team.errors import RecordUnsafe, TeamMoved, TeamUnknown
from pi_team.mailbox import Mailbox
from trials import shell

if TYPE_CHECKING:
    from collections.abc import Callable
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
    *("record a directory", "record a FIFO", "record a socket", "record missing, slot far above"),
    *("record a directory, its slot open to others", "record and its slot a directory"),
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
    if not fault.lossy:
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


@pytest.mark.parametrize("path", ["crew", RECORD, "crew/revisions", AT, BELOW, "crew/presence"])
def test_what_is_closed_to_its_own_user(nursery: Nursery, public_path: Path, path: str) -> None:
    """A mode without any rights keeps out a user who is not the superuser; the next team is looked at too."""
    field = ground(public_path)
    public_path.chmod(0o755)
    if os.geteuid() == 0:
        for found in [field.path, *field.path.rglob("*")]:
            os.chown(found, 65_534, 65_534)
    opened_to_others("quiet/revisions")(field, nursery)
    (field.path / path).chmod(0o000)
    actor = nursery.actor(field.path, **OPTIONS)
    if os.geteuid() == 0:
        actor.ask("become", 65_534)
    findings = actor.ask("doctor")
    concerned = RECORD if path == AT else path  # one file
    expected = {
        ("STORAGE", str(field.path / concerned)),
        ("RECORD_UNSAFE", str(field.path / "quiet/revisions")),
    }
    assert {(finding["code"], finding["path"]) for finding in findings} == expected
    for finding in findings:
        shell(finding["command"], field.path)
    assert actor.ask("doctor") == []


@pytest.mark.parametrize("code", [errno.EIO, errno.EMFILE])
@pytest.mark.parametrize("name", ["17.json", "19.json", "state.json"])
def test_read_that_fails_is_for_a_person_to_judge(
    nursery: Nursery, tmp_path: Path, name: str, code: int
) -> None:
    """A bad sector, or no descriptor left: what cannot be read now may be good, so no command takes it away.

    The other findings are there all the same.
    """
    field = ground(tmp_path)
    opened_to_others("crew/revisions/16.json")(field, nursery)
    actor = nursery.actor(field.path, **OPTIONS)
    actor.ask("fail", code, method="open_read" if code == errno.EMFILE else "read", name=name)
    findings = {finding["path"].removeprefix(f"{field.path}/"): finding for finding in actor.ask("doctor")}
    if name == "state.json":
        refused = findings[RECORD]
        assert set(findings) == {RECORD, "quiet/state.json"}
        way_out = "pi-team recover crew --revision 19" in refused["message"]
        assert way_out == (code == errno.EIO)
    else:
        refused = findings[f"crew/revisions/{name}"]
        assert findings["crew/revisions/16.json"]["command"].startswith("chmod")
        assert len(findings) == 2
    assert (refused["code"], refused["command"]) == ("STORAGE", "")


def test_unread_slot_above_a_record_that_is_lost(nursery: Nursery, tmp_path: Path) -> None:
    """The record is gone and its revision on a bad sector: what that would give up is said, and not run."""
    field = ground(tmp_path)
    written(RECORD, None)(field, nursery)
    actor = nursery.actor(field.path, **OPTIONS)
    actor.ask("fail", errno.EIO, method="read", name="19.json")
    slot, record = actor.ask("doctor")
    assert (slot["path"], slot["code"], slot["command"]) == (str(field.path / AT), "STORAGE", "")
    assert (record["path"], record["code"], record["command"]) == (
        str(field.path / RECORD),
        "RECORD_MISSING",
        "",
    )
    assert "pi-team recover crew --revision 18 gives it up" in record["message"]
    assert not (field.path / ABOVE).exists()


def test_revision_that_another_user_wrote(nursery: Nursery, tmp_path: Path) -> None:
    """Somebody sent as the superuser: the newest changes are in a file that only its owner can give back."""
    field = ground(tmp_path)
    written(RECORD, None)(field, nursery)

    def foreign(perform: Callable[[], os.stat_result]) -> os.stat_result:
        fields = list(perform())
        fields[4] += 1
        return os.stat_result(fields)

    port = InterposedFileSystem()
    for method in ("stat", "fstat"):
        port.at(method, "19.json").always().action = foreign
    with Mailbox(field.path, filesystem=port) as mailbox:
        slot, record = mailbox.doctor()
        assert (slot.path, slot.code, slot.command) == (str(field.path / AT), "RECORD_UNSAFE", "")
        assert "belongs to user" in slot.message
        assert (record.code, record.command) == ("RECORD_MISSING", "")
        with pytest.raises(RecordUnsafe):
            mailbox.recover("crew")


def test_history_that_cannot_be_listed_hides_no_other_team(tmp_path: Path) -> None:
    """The device fails in one team's directory: that is a finding, and those of the next are found too."""
    field = ground(tmp_path)
    (field.path / "quiet").chmod(0o755)
    port = InterposedFileSystem()
    port.at("listdir", "revisions", 2).fail(errno.EIO)  # the first is of the trial of the file system
    with Mailbox(field.path, filesystem=port) as mailbox:
        findings = mailbox.doctor()
    assert [(finding.code, finding.team) for finding in findings] == [
        ("STORAGE", "crew"),
        ("RECORD_UNSAFE", "quiet"),
    ]


@pytest.mark.parametrize("moment", ["stat */crew", "open_dir crew", "open_read state.json"])
def test_team_that_is_deleted_while_it_is_looked_at(tmp_path: Path, moment: str) -> None:
    """Somebody deletes a team after it was listed: nothing is wrong with it, unless it was asked for."""
    method, _, name = moment.partition(" ")
    for asked in (None, "crew"):
        field = ground(tmp_path / str(asked))
        (field.path / "quiet").chmod(0o755)
        port = InterposedFileSystem()
        point = port.at(method, name)
        point.before(lambda field=field: shutil.rmtree(field.crew))  # type: ignore[misc] # bound to this turn
        with Mailbox(field.path, filesystem=port) as mailbox:
            if asked is None:
                assert [finding.team for finding in mailbox.doctor()] == ["quiet"]
            else:
                with pytest.raises((TeamUnknown, TeamMoved)):
                    mailbox.doctor(asked)
        assert point.reached


def test_message_from_a_future_that_no_clock_will_see(nursery: Nursery, tmp_path: Path) -> None:
    """A time of 1e300: said in a few characters."""
    field = ground(tmp_path)

    def change(value: dict[str, object]) -> None:
        text = json.dumps(value["payload"]).replace('"created": ', '"created": 1e300, "was": ', 1)
        value["payload"] = json.loads(text)
        seal(value)

    rewritten(RECORD, change)(field, nursery)
    (finding,) = nursery.actor(field.path, **OPTIONS).ask("doctor")
    assert finding["code"] == "CLOCK"
    assert "1e+297 s in the future" in finding["message"]
    assert len(finding["message"]) < 150

"""Where the teams are, and that everything there is private whatever the umask."""

from __future__ import annotations

import os
import pwd
import stat
from typing import TYPE_CHECKING, Any, Final

import pytest

from nursery import Refused
from pi_team.errors import PiTeamError
from pi_team.mailbox import Mailbox

if TYPE_CHECKING:
    from pathlib import Path

    from nursery import Nursery

NOTE: Final[dict[str, Any]] = {"kind": "note", "subject": "s", "body": "x"}


def modes(root: Path) -> set[tuple[str, int]]:
    """The kinds of what is there, with their modes."""
    return {
        ("directory" if path.is_dir() else "file", stat.S_IMODE(path.lstat().st_mode))
        for path in [root, *root.rglob("*")]
    }


@pytest.mark.parametrize("mask", [0o000, 0o777])
def test_everything_is_private_whatever_the_umask(nursery: Nursery, tmp_path: Path, mask: int) -> None:
    """A umask of 0 would let others read, one of 0777 would lock the owner out; neither is changed."""
    path = tmp_path / "not" / "there" / "teams"
    actor = nursery.actor(path, unsynced=True)
    actor.ask("umask", mask)
    actor.ask("create", "crew")
    one, two = (actor.ask("join", "crew", alias) for alias in ("one", "two"))
    for number in range(34):  # past a pruning
        actor.ask("send", one, "two", **NOTE | {"subject": f"s{number}"})
        actor.ask("notes", two)
    actor.ask("heartbeat", one, "busy")
    actor.ask("rename_member", "crew", "one", "uno", actor=one)
    actor.ask("leave", two)
    actor.ask("create", "other")
    actor.ask("rename_team", "other", "others")
    (path / "crew" / "state.json").unlink()
    actor.ask("recover", "crew")
    assert modes(tmp_path / "not") == {("directory", 0o700), ("file", 0o600)}
    assert actor.ask("umask", mask) == mask
    assert actor.ask("doctor") == []


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"PI_CODING_AGENT_DIR": "{0}/agent", "HOME": "{0}/house"}, "{0}/agent/teams"),
        ({"PI_CODING_AGENT_DIR": None, "HOME": "{0}/house"}, "{0}/house/.pi/agent/teams"),
        ({"PI_CODING_AGENT_DIR": "", "HOME": "{0}/house"}, "{0}/house/.pi/agent/teams"),
        ({"PI_CODING_AGENT_DIR": "~/mine", "HOME": "{0}/house"}, "{0}/house/mine/teams"),
        ({"PI_CODING_AGENT_DIR": "relative/dir", "HOME": "{0}/house"}, "{0}/relative/dir/teams"),
        ({"PI_CODING_AGENT_DIR": "{0}/with space/é\n/", "HOME": None}, "{0}/with space/é\n/teams"),
        ({"PI_CODING_AGENT_DIR": "{0}/a/../b", "HOME": None}, "{0}/b/teams"),
    ],
)
def test_environment_says_where_the_teams_are(
    nursery: Nursery, tmp_path: Path, variables: dict[str, str | None], expected: str
) -> None:
    """Set, unset, empty, with a tilde, relative, with odd characters: the directory is as documented."""
    actor = nursery.actor(tmp_path)
    actor.ask("chdir", str(tmp_path))
    values = {key: value and value.format(tmp_path) for key, value in variables.items()}
    actor.ask("environment", **values)
    assert actor.ask("open", None) == expected.format(tmp_path)
    actor.ask("create", "crew")
    assert os.path.isfile(os.path.join(expected.format(tmp_path), "crew", "state.json"))
    actor.ask("chdir", "/")
    assert actor.ask("look", "crew")["revision"] == 1


def test_home_that_is_not_in_the_environment(nursery: Nursery, tmp_path: Path) -> None:
    """Neither variable is set: the home directory that the system knows is used, as by a shell."""
    actor = nursery.actor(tmp_path)
    actor.ask("environment", HOME=None, PI_CODING_AGENT_DIR=None)
    home = pwd.getpwuid(os.getuid()).pw_dir
    assert actor.ask("open", None) == os.path.join(home, ".pi", "agent", "teams")


def test_missing_ancestors_are_made_and_existing_ones_left_alone(tmp_path: Path) -> None:
    """`~/.pi` may be shared with other programs: what is there keeps its mode, what is made is private."""
    there = tmp_path / "there"
    there.mkdir(mode=0o755)
    there.chmod(0o751)
    before = there.lstat().st_mode
    Mailbox(there / "made" / "too" / "teams").create("crew")
    assert there.lstat().st_mode == before
    assert modes(there / "made") == {("directory", 0o700), ("file", 0o600)}


def test_ancestor_may_be_a_link(tmp_path: Path) -> None:
    """A home directory on another disk, linked to: the checks begin at `teams/`."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "home").symlink_to("disk")
    mailbox = Mailbox(tmp_path / "home" / "teams")
    mailbox.create("crew")
    assert mailbox.teams() == ["crew"]
    assert mailbox.doctor() == []


def test_teams_behind_a_link_are_refused(tmp_path: Path) -> None:
    """Somebody put a link where the teams would be: nothing is made or read behind it."""
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "teams").symlink_to("elsewhere")
    mailbox = Mailbox(tmp_path / "teams")
    for operate in (
        lambda: mailbox.create("crew"),
        mailbox.teams,
        lambda: mailbox.look("crew"),
        lambda: mailbox.join("crew", "one"),
        lambda: mailbox.rename_team("crew", "band"),
        lambda: mailbox.delete_team("crew"),
    ):
        with pytest.raises(PiTeamError) as refused:
            operate()
        assert refused.value.code == "RECORD_UNSAFE"
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "directory of a dead link", "not searchable", "not readable"])
def test_place_where_no_directory_can_be(nursery: Nursery, public_path: Path, kind: str) -> None:
    """The way to the teams ends at a file, a dead link or a closed door: refused, and nothing is made.

    Where a directory may be made and its parent not be read, the parent could not be synced: a power cut
    might take the team back.
    """
    way = public_path / "way"
    if kind == "file":
        way.write_text("")
    elif kind == "directory of a dead link":
        way.symlink_to("nowhere")
    else:
        way.mkdir(mode=0o000 if kind == "not searchable" else 0o300)
    actor = nursery.actor(way / "teams")
    if kind.startswith("not") and os.geteuid() == 0:
        os.chown(way, 65_534, -1)
        actor.ask("become", 65_534)
    with pytest.raises(Refused, match=r"STORAGE|RECORD_UNSAFE"):
        actor.ask("create", "crew")
    with pytest.raises(Refused, match=r"STORAGE|RECORD_UNSAFE|TEAM_UNKNOWN"):
        actor.ask("look", "crew")
    assert sorted(path.name for path in public_path.iterdir()) == ["way"]
    assert not (public_path / "nowhere").exists()
    if kind.startswith("not"):
        way.chmod(0o700)
        assert list(way.iterdir()) == []


def test_working_directory_that_is_gone(nursery: Nursery, tmp_path: Path) -> None:
    """The directory in which a session was started has been removed since: it can join all the same."""
    gone = tmp_path / "gone"
    gone.mkdir()
    actor = nursery.actor(tmp_path / "teams")
    actor.ask("create", "crew")
    actor.ask("chdir", str(gone))
    actor.ask("environment", PWD=str(gone))
    gone.rmdir()
    actor.ask("join", "crew", "one")
    actor.ask("environment", PWD=None)
    actor.ask("join", "crew", "two")
    members = actor.ask("look", "crew")["members"]
    assert [member["cwd"] for member in members] == [str(gone), "?"]


def test_working_directory_whose_name_is_no_text(nursery: Nursery, tmp_path: Path) -> None:
    """A name of a directory is bytes: one that is not UTF-8 goes into the record and comes out again."""
    odd = os.fsencode(tmp_path) + b"/\xff\xe9"
    try:
        os.mkdir(odd)
    except OSError:  # the file system knows better, as on macOS
        return
    actor = nursery.actor(tmp_path / "teams")
    actor.ask("create", "crew")
    actor.ask("chdir", os.fsdecode(odd))
    actor.ask("join", "crew", "one")
    (member,) = actor.ask("look", "crew")["members"]
    assert os.fsencode(member["cwd"]) == odd
    assert b"\\udcff\\udce9" in (tmp_path / "teams" / "crew" / "state.json").read_bytes()

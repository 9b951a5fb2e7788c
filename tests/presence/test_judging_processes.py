"""Judging of real processes by their real files: killed, stopped, continued, and an older peer's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING

import attrs
import pytest

from pi_team.clocks import SystemClock
from pi_team.presence import Observer, PresenceDirectory, exited, process_of
from pi_team.record.directory import TeamDirectory
from pi_team.record.filesystem import OsFileSystem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pi_team.domain.model import Verdict

INTERVAL, EXPIRY = 0.1, 1.0
MEMBER = f"""
    import sys, time
    from pi_team.presence import PresenceDirectory, this_process
    from pi_team.record.directory import TeamDirectory
    from pi_team.record.filesystem import OsFileSystem

    presence = PresenceDirectory(TeamDirectory(OsFileSystem(), sys.argv[1], "crew"))
    assert presence.write("lead", "t1", "idle", process=this_process(), now=time.time())
    print("joined", flush=True)
    while presence.write("lead", "t1", "idle", process=this_process(), now=time.time()):
        time.sleep({INTERVAL})
"""


@pytest.fixture
def teams(tmp_path: Path) -> Path:
    for path in (tmp_path, tmp_path / "crew", tmp_path / "crew" / "presence"):
        path.mkdir(exist_ok=True)
        path.chmod(0o700)
    return tmp_path


@pytest.fixture
def presence(teams: Path) -> Iterator[PresenceDirectory]:
    with TeamDirectory(OsFileSystem(), str(teams), "crew") as team, PresenceDirectory(team) as it:
        yield it


@pytest.fixture
def member(teams: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", textwrap.dedent(MEMBER), str(teams)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as it:
        assert it.stdout is not None
        assert it.stdout.readline() == b"joined\n"
        yield it
        it.kill()


def observer() -> Observer:
    return Observer(SystemClock(), interval=INTERVAL, expiry=EXPIRY)


def wait_for(expected: Verdict, session: Observer, presence: PresenceDirectory, pid: int) -> None:
    """Beat, as a session does, until a member is judged so."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        session.attended()
        if session.judge(presence, "lead", "t1", pid) == expected:
            return
        time.sleep(INTERVAL / 2)
    pytest.fail(f"never judged {expected}")


def test_a_killed_session_is_dead_at_once(
    presence: PresenceDirectory, member: subprocess.Popen[bytes]
) -> None:
    """kill -9: the next look, of whoever, waits for the presence to grow old."""
    assert observer().judge(presence, "lead", "t1", member.pid) == "alive"
    member.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, member.pid, os.WEXITED | os.WNOWAIT)
    assert observer().judge(presence, "lead", "t1", member.pid) == "dead", "a zombie"
    member.wait()
    assert observer().judge(presence, "lead", "t1", member.pid) == "dead"


@pytest.mark.slow
def test_a_stopped_session_is_dead_by_time_and_comes_back(
    presence: PresenceDirectory, member: subprocess.Popen[bytes]
) -> None:
    """SIGSTOP for longer than the expiry: its claim is held for ever; or it is dead sooner, or for good."""
    session, process = observer(), process_of(member.pid)
    wait_for("alive", session, presence, member.pid)
    member.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, member.pid, os.WSTOPPED | os.WNOWAIT)
    last = presence.read("lead").presence
    assert last is not None
    wait_for("dead", session, presence, member.pid)
    assert time.time() - last.seen / 1_000 >= EXPIRY
    assert exited(process) is False
    assert observer().judge(presence, "lead", "t1", member.pid) == "unknown", "to who has not been there"
    member.send_signal(signal.SIGCONT)
    wait_for("alive", session, presence, member.pid)


def test_a_lost_presence_is_written_again(
    presence: PresenceDirectory, member: subprocess.Popen[bytes], teams: Path
) -> None:
    """Somebody removes the files of a living team, and its sessions are never heard again."""
    (teams / "crew" / "presence" / "lead.json").unlink(missing_ok=True)
    wait_for("alive", observer(), presence, member.pid)


def test_a_session_ends_with_its_team(member: subprocess.Popen[bytes], teams: Path) -> None:
    """A session whose team was moved away beats into it for ever."""
    (teams / "crew").rename(teams / ".deleted-crew-1")
    assert member.wait(60) == 0


@attrs.define
class Peer:
    alias: str
    token: str
    pid: int


def test_an_older_peer_by_its_pid(presence: PresenceDirectory, teams: Path) -> None:
    """A peer that gives no start: one that is there is dead, or one that was killed lives until it is old."""
    path = teams / "crew" / "presence" / "peer.json"
    path.write_text(f'{{"token":"t9","status":"idle","seen":{int(time.time() * 1_000)}}}')
    path.chmod(0o600)
    nobody = 2**22 - 1
    assert observer().judge(presence, "peer", "t9", os.getpid()) == "alive"
    assert observer().judge(presence, "peer", "t9", nobody) == "unknown"
    assert observer().watch(presence, [Peer("peer", "t9", nobody)]) == {("peer", "t9"): "dead"}

"""Identities of processes: what tells a living one from a dead one, and from another under its pid."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import attrs
import psutil
import pytest

from pi_team.presence import process as process_module
from pi_team.presence.process import (
    Process,
    ended_with_boot,
    exited,
    owner_exited,
    owner_of,
    owner_token,
    parse_owner,
    pid_exists,
    process_of,
    this_process,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOKERS = {"psutil": process_module._start_by_psutil}
if sys.platform == "linux":
    LOOKERS["proc"] = process_module._start_in_proc
linux = pytest.mark.skipif(sys.platform != "linux", reason="about /proc, which only Linux has")
FREE_PID = 2**22 - 1
"""No process here bears it: the largest that Linux can be told to give out."""


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    ) as it:
        yield it
        it.kill()


def let_it_become_a_zombie(it: subprocess.Popen[bytes]) -> None:
    it.kill()
    os.waitid(os.P_PID, it.pid, os.WEXITED | os.WNOWAIT)


@pytest.fixture(params=LOOKERS)
def looker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Everything that holds by /proc holds by psutil too, which is what macOS has."""
    looker = LOOKERS[request.param]
    monkeypatch.setattr(process_module, "_looker", lambda: looker)
    this_process.cache_clear()
    yield
    this_process.cache_clear()


@pytest.mark.usefixtures("looker")
class TestExited:
    def test_a_running_process_has_not(self, child: subprocess.Popen[bytes]) -> None:
        """A living session taken for dead."""
        assert exited(process_of(child.pid)) is False
        assert exited(this_process()) is False

    def test_a_killed_process_has_before_it_is_reaped(self, child: subprocess.Popen[bytes]) -> None:
        """A session whose parent does not wait for it seems to live for ever."""
        process = process_of(child.pid)
        let_it_become_a_zombie(child)
        assert exited(process) is True
        with pytest.raises(ProcessLookupError):
            process_of(child.pid)
        child.wait()
        assert exited(process) is True

    def test_another_start_is_another_process(self, child: subprocess.Popen[bytes]) -> None:
        """A pid that was given out again passes for the session that once had it."""
        process = process_of(child.pid)
        assert process.start is not None
        assert exited(attrs.evolve(process, start=process.start - 1)) is True

    def test_the_start_stays(self, child: subprocess.Popen[bytes]) -> None:
        """A start that is measured twice differs, and the process seems to be another."""
        assert {process_of(child.pid).start for _ in range(50)} == {process_of(child.pid).start}

    def test_without_a_start_existence_is_no_proof(self, child: subprocess.Popen[bytes]) -> None:
        """A pid alone is taken for proof that the same process still runs."""
        process = attrs.evolve(process_of(child.pid), start=None)
        assert exited(process) is None
        child.kill()
        child.wait()
        assert exited(process) is True

    @pytest.mark.parametrize("pid", [2**31, 2**53, FREE_PID])
    def test_a_pid_that_cannot_be(self, pid: int) -> None:
        """A record with a huge pid makes every look at the team fail."""
        assert exited(attrs.evolve(this_process(), pid=pid)) is True

    @pytest.mark.parametrize("pid", [0, -1])
    def test_a_pid_that_means_a_group(self, pid: int) -> None:
        """0 and -1 mean groups of processes to kill(2), which always exist."""
        assert exited(attrs.evolve(this_process(), pid=pid)) is True

    def test_who_may_not_be_signalled_exists(
        self, child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """EPERM is taken for "no such process"."""

        def kill(pid: int, number: int) -> None:
            raise PermissionError(errno.EPERM, f"{pid} {number}")

        process = process_of(child.pid)
        with monkeypatch.context() as patch:
            patch.setattr(os, "kill", kill)
            assert exited(process) is False
            assert exited(attrs.evolve(process, start=1)) is True


@pytest.mark.parametrize(
    "elsewhere",
    [("boot", "0" * 32), ("boot", ""), ("pidns", "1"), ("pidns", "")],
    ids=["another boot", "a boot without a name", "another pid namespace", "no pid namespace"],
)
@pytest.mark.parametrize("pid", [os.getpid(), FREE_PID], ids=["this process", "no process"])
def test_a_process_elsewhere_cannot_be_judged(elsewhere: tuple[str, str], pid: int) -> None:
    """The pid of a session in a container is looked up on the host, where it does not exist."""
    here = attrs.asdict(this_process())
    assert exited(Process(**{**here, "pid": pid, elsewhere[0]: elsewhere[1]})) is None


def test_the_host_decides_only_where_the_boot_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A laptop that gets another name from its network declares all its sessions dead, or unknown."""
    assert exited(attrs.evolve(this_process(), host="another name")) is False
    nameless = attrs.evolve(this_process(), boot="")
    monkeypatch.setattr(process_module, "this_process", lambda: nameless)
    assert exited(nameless) is False
    assert exited(attrs.evolve(nameless, host="another machine")) is None


@linux
def test_a_hidden_proc_proves_nothing(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A /proc that hides other users' processes, or a lack of descriptors, is taken for an exit."""
    process = process_of(child.pid)
    for error in (FileNotFoundError(errno.ENOENT, "hidden"), OSError(errno.EMFILE, "no descriptors")):

        def opens(_path: str, _flags: int, *, error: OSError = error) -> int:
            raise error

        monkeypatch.setattr(os, "open", opens)
        assert exited(process) is None
    monkeypatch.undo()
    let_it_become_a_zombie(child)
    assert exited(process) is True


@linux
def test_an_exit_between_the_two_looks_is_an_exit(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is reaped between kill(2) and the reading of /proc is unknown for ever."""
    process = process_of(child.pid)
    opens = os.open

    def open_after_the_end(path: str, flags: int) -> int:
        child.kill()
        child.wait()
        return opens(path, flags)

    monkeypatch.setattr(os, "open", open_after_the_end)
    assert exited(process) is True


@linux
def test_a_proc_of_another_namespace_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a pid namespace without a /proc of its own every member's start is that of somebody else."""
    mine = this_process()
    monkeypatch.setattr(os, "readlink", lambda _path: "1")
    process_module._looker.cache_clear()
    try:
        assert exited(mine) is None
        assert exited(attrs.evolve(mine, start=1)) is None
        assert exited(attrs.evolve(mine, pid=FREE_PID)) is True
    finally:
        process_module._looker.cache_clear()


@linux
def test_a_process_outlives_its_first_thread() -> None:
    """A process whose first thread has ended shows as a zombie, and goes on."""
    code = """
        import ctypes, sys, threading

        def answer():
            for line in sys.stdin:
                print(line, end="", flush=True)

        threading.Thread(target=answer).start()
        ctypes.CDLL(None).pthread_exit(None)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as it:
        assert it.stdin is not None
        assert it.stdout is not None
        process = process_of(it.pid)
        while b") Z " not in read(f"/proc/{it.pid}/stat"):
            it.stdin.write(b"are you there\n")
            it.stdin.flush()
            assert it.stdout.readline() == b"are you there\n"
        assert exited(process) is False
        let_it_become_a_zombie(it)
        assert exited(process) is True


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


@linux
def test_a_name_with_parentheses(tmp_path: os.PathLike[str]) -> None:
    """The name of a program, which stands in the middle of its stat line, shifts the fields."""
    program = os.path.join(tmp_path, "a) Z 1 (b")
    os.symlink("/bin/cat", program)
    with subprocess.Popen([program], stdin=subprocess.PIPE) as it:
        process = process_of(it.pid)
        assert process.start is not None
        assert this_process().start is not None
        assert process.start >= (this_process().start or 0)
        assert exited(process) is False


# --- this process ---------------------------------------------------------------------------------


def test_a_fork_is_another_process() -> None:
    """A forked child takes itself for its parent, and its files for its parent's."""
    mine = this_process()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, owner_token(this_process()).encode())
        os._exit(0)
    os.close(writer)
    theirs = parse_owner(os.read(reader, 200).decode())
    os.close(reader)
    os.waitpid(child, 0)
    assert theirs is not None
    assert (theirs.pid, theirs.boot, theirs.pidns) == (child, mine.boot, mine.pidns)
    assert this_process() is mine


@linux
def test_every_part_is_known_here() -> None:
    """Where a part is missing everything else here would pass without saying anything."""
    mine = this_process()
    assert mine.pid == os.getpid()
    assert mine.start is not None
    assert mine.host == os.uname().nodename
    assert len(mine.boot) == 32
    assert mine.pidns.isdecimal()


def test_a_boot_id_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a system calls a boot id gets into file names, with dots and slashes."""
    monkeypatch.setattr(sys, "platform", "darwin")
    for text, boot in [
        ("0DB8DEAD-E849-4170-A414-C5846E5ACBA6", "0db8deade8494170a414c5846e5acba6"),
        ("../../etc", ""),
        ("", ""),
    ]:
        monkeypatch.setattr(process_module, "_sysctl_text", lambda _name, text=text: text)
        assert process_module._boot_id() == boot


@linux
def test_a_system_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only a pid is known, commands fail, or take whoever bears it for the member."""

    def fail(*_arguments: object, **_options: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "no /proc")

    with monkeypatch.context() as patch:
        for name in ("readlink", "open", "stat"):
            patch.setattr(os, name, fail)
        patch.setattr(process_module, "open", fail, raising=False)
        this_process.cache_clear()
        process_module._looker.cache_clear()
        mine = this_process()
        assert mine == Process(os.getpid(), None, os.uname().nodename, "", "")
        assert exited(mine) is None
        assert exited(attrs.evolve(mine, pid=FREE_PID)) is True
    this_process.cache_clear()
    process_module._looker.cache_clear()


def test_psutil_is_what_macos_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system without /proc looks there all the same, and knows no starts."""
    monkeypatch.setattr(sys, "platform", "darwin")
    process_module._looker.cache_clear()
    assert process_module._looker() is process_module._start_by_psutil
    process_module._looker.cache_clear()


def test_a_sysctl_is_read_as_macos_gives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong call of the C library, on a system that the tests seldom run on, ends every command."""

    class Library:
        def __init__(self, name: None) -> None:
            assert name is None, "the symbols of the process itself"

        def sysctlbyname(self, name: bytes, value: ctypes.Array[ctypes.c_char], *_rest: object) -> int:
            if name != b"kern.bootsessionuuid":
                return -1
            value.value = b"0DB8DEAD-E849-4170-A414-C5846E5ACBA6"
            return 0

    monkeypatch.setattr(ctypes, "CDLL", Library)
    assert process_module._sysctl_text(b"kern.bootsessionuuid") == "0DB8DEAD-E849-4170-A414-C5846E5ACBA6"
    assert process_module._sysctl_text(b"kern.unknown") == ""


@linux
def test_psutil_is_not_imported_among_sessions_of_this_release() -> None:
    """Every command pays for the import of psutil, which takes as long as the command."""
    code = """
        import os, sys
        from pi_team.presence.process import exited, process_of, this_process
        assert exited(this_process()) is False
        assert exited(process_of(os.getppid())) is False
        assert exited(process_of(os.getppid()).__class__(4194303, 1, *([""] * 3))) is None
        assert not {"psutil", "ctypes"} & sys.modules.keys()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


# --- an older peer's pid --------------------------------------------------------------------------


def test_a_pid_exists_until_its_process_has_exited(child: subprocess.Popen[bytes]) -> None:
    """A zombie, or a pid that cannot be, counts as an older peer's living process."""
    assert pid_exists(child.pid)
    let_it_become_a_zombie(child)
    assert not pid_exists(child.pid)
    child.wait()
    assert not pid_exists(child.pid)
    assert not any(pid_exists(pid) for pid in (0, -1, 2**31, 2**53, FREE_PID))


@linux
def test_a_thread_is_no_process() -> None:
    """kill(2) finds threads by their ids too, so that a pid given out to a thread seems to be the peer."""
    code = """
        import sys, threading
        thread = threading.Thread(target=sys.stdin.read)
        thread.start()
        print(thread.native_id, flush=True)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as it:
        assert it.stdout is not None
        thread = int(it.stdout.readline())
        os.kill(thread, 0)
        assert not pid_exists(thread)
        it.kill()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (psutil.NoSuchProcess(1), False),
        (psutil.AccessDenied(1), True),
        (FileNotFoundError(2, "no /proc"), True),
        (RuntimeError("no btime"), True),
    ],
)
def test_what_psutil_may_answer(monkeypatch: pytest.MonkeyPatch, error: Exception, *, expected: bool) -> None:
    """A process that exits, or refuses, while it is looked at ends the look with an error."""

    def refuse(_pid: int) -> psutil.Process:
        raise error

    monkeypatch.setattr(psutil, "Process", refuse)
    assert pid_exists(os.getpid()) is expected
    if expected:
        assert process_module._start_by_psutil(os.getpid()) is None
    else:
        with pytest.raises(ProcessLookupError):
            process_module._start_by_psutil(os.getpid())


# --- another boot ---------------------------------------------------------------------------------


def test_a_process_ended_with_its_boot() -> None:
    """After a power cut nobody is known to be dead, because every boot id differs."""
    before = attrs.evolve(this_process(), boot="0" * 32)
    booted = psutil.boot_time()
    assert ended_with_boot(before, booted - 1)
    assert not ended_with_boot(before, booted + 1), "a machine of the same name is alive in this boot"
    assert not ended_with_boot(attrs.evolve(before, host="another"), booted - 1)
    assert not ended_with_boot(attrs.evolve(before, boot=""), booted - 1)
    assert not ended_with_boot(this_process(), booted - 1)


@pytest.mark.parametrize(
    "error", [RuntimeError("no btime"), FileNotFoundError(2, "no /proc"), psutil.AccessDenied()]
)
def test_boot_whose_beginning_is_not_told(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sandbox hides parts of /proc: nobody is known to be dead by it, and no operation fails for it."""

    def refuse() -> float:
        raise error

    monkeypatch.setattr(psutil, "boot_time", refuse)
    assert not ended_with_boot(attrs.evolve(this_process(), boot="0" * 32), 0.0)


# --- owners ---------------------------------------------------------------------------------------


def test_an_owner_survives_its_file_name(child: subprocess.Popen[bytes]) -> None:
    """A sweep cannot tell whose a left-over is."""
    process = process_of(child.pid)
    token = owner_token(process)
    assert "." not in token
    assert "/" not in token
    expected = attrs.evolve(process, host="")
    assert parse_owner(token) == expected
    for name in (
        f".0a-1.{token}.tmp",
        f".lead-7.{token}.tmp",
        f".deleted-crew-0a-1.{token}",
        f".new-1.{token}",
    ):
        assert owner_of(name) == expected
    assert not owner_exited(token)
    let_it_become_a_zombie(child)
    assert owner_exited(token)


def test_an_owner_of_which_little_is_known() -> None:
    """An owner without start, boot or namespace is judged although nothing is known of it."""
    bare = Process(FREE_PID, None, "", "", "")
    assert owner_token(bare) == f"{FREE_PID}-x-x-x"
    assert parse_owner(owner_token(bare)) == bare
    assert not owner_exited(owner_token(bare))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1-2",
        "1-2-3-4",
        "0-1-x-x",
        "01-1-x-x",
        "-1-1-x-x",
        "1-x-x-x\n",
        "1-x-x-x-x",
        "\u0661-x-x-x",
        "1-x-X-x",
    ],
)
def test_what_is_no_owner(text: str) -> None:
    """A name that only looks like one of ours, or a lock half written, is removed under its owner."""
    assert parse_owner(text) is None
    assert not owner_exited(text)
    assert owner_of(f".x.{text}.tmp") is None


@pytest.mark.parametrize(
    "name", ["lead.json", "lead.1-x-x-x", "1-x-x-x", ".1-x-x-x", "state.json.1-x-x-x.tmp"]
)
def test_what_has_no_owner(name: str) -> None:
    """A file of a name that none of ours has is taken for a left-over."""
    assert owner_of(name) is None

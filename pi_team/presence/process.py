"""Which process a member is, and whether that one still runs (docs/lifecycles.md, "Judging").

A pid is a number that is given out again, so a process is named by its pid and its start, on one boot
of one kernel, in one pid namespace. Nothing here guesses: what cannot be known is `None`, because a
living session that is taken for dead loses its claims.

Where what is used, and why:

- existence: `kill(pid, 0)`, one system call; a process that may not be signalled exists;
- start on Linux: field 22 of `/proc/PID/stat`, ticks since boot. `psutil.Process.create_time` adds the
  boot time in wall-clock seconds to it, and so moves when the clock is set;
- start and zombies elsewhere (macOS): psutil. What it identifies a process by is the kernel's own
  record of the fork there, in wall-clock time but never changed afterwards;
- a pid without a start (an older peer's): psutil on every system; it tells a process from a mere
  thread, which `kill` does not;
- when this boot began: psutil, by the wall clock as it is set now.

psutil takes longer to import than most commands run: it is imported when one of these is asked for,
which a session among sessions of this release on Linux never does.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable

_UNKNOWN: Final = "x"
_OWNER: Final = re.compile(r"([1-9][0-9]{0,9})-([0-9]{1,20}|x)-([0-9a-f]{32}|x)-([0-9]{1,20}|x)")
_HIDDEN: Final = (OSError, RuntimeError)
"""What psutil also raises where /proc is mounted in parts: what it was asked for is not known then."""
_STAT_BYTES: Final = 1_024
"""The start is within the first 300 bytes of a stat file, whatever the process calls itself."""


@attrs.frozen(slots=True)
class Process:
    """A process, told from every other that ever bore its pid.

    Attributes:
        pid: its number in its own pid namespace.
        start: when it started; on Linux in clock ticks since boot, on macOS in microseconds since 1970 as
            the kernel noted them at the fork. To be compared and nothing else. None: not known.
        host: the name of the machine. It may change while the process runs, so it decides nothing where
            the boot is known.
        boot: the id of the boot, 32 hexadecimal digits; "" where the system has none.
        pidns: the inode of its pid namespace in decimal; "" on systems without such namespaces.
    """

    pid: int
    start: int | None
    host: str
    boot: str
    pidns: str


# --- what the system says about a pid -------------------------------------------------------------


def _require_existence(pid: int) -> None:
    """Raise ProcessLookupError where no process (or thread) has that pid."""
    if pid < 1:
        raise ProcessLookupError(pid)  # to kill(2), 0 and below mean whole groups
    try:
        os.kill(pid, 0)
    except PermissionError:
        return
    except OverflowError:
        raise ProcessLookupError(pid) from None


def _start_in_proc(pid: int) -> int | None:
    """Start of a running process in ticks since boot; None: it exists, and hides its start.

    Raises:
        ProcessLookupError: there is none, or it has exited and only waits to be reaped.
    """
    _require_existence(pid)
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            stat = os.read(fd, _STAT_BYTES)
        finally:
            os.close(fd)
    except OSError:
        # It has exited this moment, or /proc is mounted so that it hides processes, or we have no
        # descriptor left. Only the first says anything about the process.
        _require_existence(pid)
        return None
    # The name, in parentheses, may contain anything, parentheses and spaces included.
    fields = stat[stat.rindex(b")") + 2 :].split(None, 20)
    state, threads, start = fields[0], fields[17], fields[19]
    if state in {b"Z", b"X"} and int(threads) <= 1:
        # With more threads only the first one has ended, and the process goes on.
        raise ProcessLookupError(pid)
    return int(start)


def _start_by_psutil(pid: int) -> int | None:
    """As :func:`_start_in_proc`, in microseconds, on systems without /proc."""
    _require_existence(pid)
    import psutil  # noqa: PLC0415 - slow to import, see above

    try:
        process = psutil.Process(pid)
        has_exited = process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        raise ProcessLookupError(pid) from None
    except (psutil.AccessDenied, *_HIDDEN):
        return None
    if has_exited:
        raise ProcessLookupError(pid)
    # The public create_time() is corrected for steps of the clock since psutil was imported, so that
    # two observers may read different values. The identity is the kernel's value as it is.
    start = getattr(process, "_ident", (pid, None))[1]
    return round(start * 1_000_000) if isinstance(start, float) else None


def _proc_is_ours() -> bool:
    """Whether /proc counts pids as we do: it need not, in a pid namespace that did not mount its own."""
    try:
        return os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        return False


def _start_is_hidden(pid: int) -> None:
    _require_existence(pid)


@functools.cache
def _looker() -> Callable[[int], int | None]:
    if sys.platform != "linux":
        return _start_by_psutil
    return _start_in_proc if _proc_is_ours() else _start_is_hidden


def pid_exists(pid: int) -> bool:
    """Whether some process here bears that pid and has not exited; for members of which no start is known."""
    try:
        _require_existence(pid)
    except ProcessLookupError:
        return False
    import psutil  # noqa: PLC0415 - slow to import, see above

    try:
        return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except (psutil.AccessDenied, *_HIDDEN):
        return True


# --- identities -----------------------------------------------------------------------------------


def _sysctl_text(name: bytes) -> str:
    import ctypes  # noqa: PLC0415 - only macOS needs it

    value = ctypes.create_string_buffer(64)
    size = ctypes.c_size_t(len(value))
    failed = ctypes.CDLL(None).sysctlbyname(name, value, ctypes.byref(size), None, ctypes.c_size_t(0))
    return "" if failed else value.value.decode("ascii", "replace")


def _boot_id() -> str:
    if sys.platform == "darwin":
        text = _sysctl_text(b"kern.bootsessionuuid")
    else:
        try:
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii", errors="replace") as file:
                text = file.read(64)
        except OSError:
            text = ""
    # Nothing stands in for an id that is missing: the boot time in wall-clock seconds would change when
    # the clock is set, and every living process would seem to be from another boot.
    digits = text.strip().replace("-", "").lower()
    return digits if re.fullmatch(r"[0-9a-f]{32}", digits) else ""


def _pid_namespace() -> str:
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        return ""


@functools.cache
def this_process() -> Process:
    """The identity of the calling process; found out once, and anew after a fork."""
    pid = os.getpid()
    return Process(pid, _looker()(pid), os.uname().nodename, _boot_id(), _pid_namespace())


os.register_at_fork(after_in_child=this_process.cache_clear)
os.register_at_fork(after_in_child=_looker.cache_clear)


def process_of(pid: int) -> Process:
    """The identity of another process that runs here (of the agent, for its helper).

    Raises:
        ProcessLookupError: there is none.
    """
    return attrs.evolve(this_process(), pid=pid, start=_looker()(pid))


def exited(process: Process) -> bool | None:
    """Whether a process has exited; a zombie has.

    Returns:
        True: no process here bears its pid, or one with another start does.
        False: it is there, the same one.
        None: it is on another boot, host or pid namespace, or somebody bears its pid and the starts are
            not known.
    """
    mine = this_process()
    if process.boot != mine.boot or process.pidns != mine.pidns:
        return None
    if not mine.boot and process.host != mine.host:
        return None
    try:
        start = _looker()(process.pid)
    except ProcessLookupError:
        return True
    if start is None or process.start is None:
        return None
    return start != process.start


def ended_with_boot(process: Process, seen: float) -> bool:
    """Whether a process ran in an earlier boot of this machine, and so has ended with it.

    Another boot id under the same name of the machine is not enough (a virtual machine may be named as
    its host is and share its directories): it must also have been seen last before this boot began.

    Args:
        process: whom it is about.
        seen: when it was seen last, in seconds since 1970.
    """
    mine = this_process()
    if not (process.boot and mine.boot) or process.boot == mine.boot or process.host != mine.host:
        return False
    import psutil  # noqa: PLC0415 - slow to import, see above

    try:
        return seen < psutil.boot_time()
    except (psutil.Error, *_HIDDEN):
        return False


# --- owners, in the names of private files --------------------------------------------------------


def owner_token(process: Process) -> str:
    """`PID-START-BOOT-PIDNS`, for the name of a file that is this process's alone; an unknown part is `x`."""
    start = _UNKNOWN if process.start is None else process.start
    return f"{process.pid}-{start}-{process.boot or _UNKNOWN}-{process.pidns or _UNKNOWN}"


def parse_owner(text: str) -> Process | None:
    """The process of an owner token, without its host; None for any other text."""
    match = _OWNER.fullmatch(text)
    if match is None:
        return None
    pid, start, boot, pidns = ("" if part == _UNKNOWN else part for part in match.groups())
    return Process(int(pid), int(start) if start else None, "", boot, pidns)


def owner_exited(text: str) -> bool:
    """Whether the owner of a token is known to have exited; False for any text that is no token."""
    process = parse_owner(text)
    return process is not None and exited(process) is True


def owner_of(name: str) -> Process | None:
    """The owner in the name of a left-over: `.ANYTHING.OWNER.tmp` or `.ANYTHING.OWNER`; None without one."""
    hidden, dot, token = name.removesuffix(".tmp").rpartition(".")
    return parse_owner(token) if dot and hidden.startswith(".") else None

"""Whatever a worker's command does with its pipes and children, running it ends, in bounded memory."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from pi_team.cli.runner import CommandRun

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def start(
    script: str, *, standard_input: bytes = b"", characters: int = 1_000, errors: int = 200
) -> CommandRun:
    return CommandRun(
        ["/bin/sh", "-c", script],
        environment=dict(os.environ),
        standard_input=standard_input,
        output_characters=characters,
        error_bytes=errors,
    )


def run(script: str, **bounds: object) -> CommandRun:
    command = start(script, **bounds)  # type: ignore[arg-type]
    assert command.pump(20)
    return command


def eventually(condition: Callable[[], bool], seconds: float = 5) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


def test_input_goes_in_and_output_error_and_status_come_out() -> None:
    command = run("cat; echo wrong >&2; exit 3", standard_input="größer".encode())
    assert (command.output.text(5_000), command.errors, command.status) == ("größer", "wrong\n", 3)


def test_input_larger_than_a_pipe_is_fed_while_output_is_read() -> None:
    """Writing all input before reading any output would deadlock with a filter like cat."""
    command = run("cat", standard_input=b"x" * 3_000_000, characters=100)
    assert command.output.length == 3_000_000


def test_a_command_that_ignores_its_input_is_fine() -> None:
    """Its end of the pipe closes while we still write: EPIPE is no failure."""
    command = run("exec <&-; echo done", standard_input=b"x" * 3_000_000)
    assert (command.output.text(100), command.status) == ("done\n", 0)


def test_a_huge_output_is_not_held() -> None:
    """Memory stays flat over 100 MB of output; head and tail remain and the rest is counted."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    command = run("echo first; head -c 100000000 /dev/zero | tr '\\0' 'x'; echo; echo last")
    shown = command.output.text(5_000)
    assert shown.startswith("first\nxxx")
    assert shown.endswith("xxx\nlast\n")
    assert command.output.length == 100_000_000 + len("first\n\nlast\n")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000 * (
        1024 if sys.platform == "darwin" else 1
    )


def test_invalid_utf_8_is_replaced_also_across_reads_and_at_the_end() -> None:
    assert run("printf 'a\\377b\\303'").output.text(100) == "a\ufffdb\ufffd"
    assert run("printf '\\303'; sleep 0.05; printf '\\244'").output.text(100) == "ä"


def test_only_the_tail_of_errors_is_kept_and_no_character_is_torn() -> None:
    command = run("printf 'ä%.0s' $(seq 5000) >&2", errors=101)
    assert command.errors == "ä" * 50


def test_a_background_child_that_holds_the_pipe_does_not_hold_us() -> None:
    started = time.monotonic()
    command = run("echo before; sleep 30 & echo $!")
    assert time.monotonic() - started < 5
    before, child = command.output.text(100).split()
    assert before == "before"
    os.kill(int(child), signal.SIGKILL)


def test_a_background_child_that_floods_the_pipe_does_not_hold_us() -> None:
    """After the exit only so much is read as a pipe can hold; the flood meets a closed pipe and ends."""
    started = time.monotonic()
    command = run("yes & exit 0")
    assert command.status == 0
    assert time.monotonic() - started < 5


def test_the_end_reaches_the_whole_group_and_a_stopped_command() -> None:
    """A command's children must not go on after its work was ended, nor a suspended command survive it."""
    command = start("sleep 60 & echo $!; kill -STOP $$; wait")
    eventually(lambda: not command.pump(0.01) and command.output.length > 0)
    child = psutil.Process(int(command.output.text(100)))
    command.end()
    assert command.status == -signal.SIGTERM
    eventually(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def test_a_command_deaf_to_sigterm_is_killed_after_the_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pi_team.cli.runner.GRACE", 0.2)
    command = start("trap '' TERM; echo ready; while :; do sleep 0.05; done")
    eventually(lambda: not command.pump(0.01) and command.output.length > 0)
    command.end()
    assert command.status == -signal.SIGKILL


def test_what_cannot_be_started_is_an_error_at_once(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("no interpreter line, no magic number\n")
    script.chmod(0o700)
    with pytest.raises(OSError, match="Exec format error"):
        CommandRun([str(script)], environment={}, standard_input=b"", output_characters=10, error_bytes=10)


def test_no_descriptor_is_left_open() -> None:
    """A worker runs thousands of commands in its life."""
    run("echo warm up")
    before = psutil.Process().num_fds()
    for _ in range(5):
        run("cat; echo x >&2", standard_input=b"y")
    assert psutil.Process().num_fds() == before

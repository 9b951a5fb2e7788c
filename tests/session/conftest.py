"""Sessions of these tests: scripted hosts over one teams directory and one clock."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from scripted_host import Host, MovedClock, kill

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scripted_host import OpenHost


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
def host(tmp_path: Path, clock: MovedClock) -> Iterator[OpenHost]:
    """Opens a session that is in no team yet; each has a mailbox of its own."""
    hosts: list[Host] = []

    def open_host(name: str, **options: Any) -> Host:
        hosts.append(Host(tmp_path / "teams", clock, name, **options))
        return hosts[-1]

    yield open_host
    for each in hosts:
        each.mailbox.close()


@pytest.fixture
def alice(host: OpenHost) -> Host:
    """A member of crew, which it has created."""
    alice = host("alice")
    alice.team("create crew")
    alice.team("join crew alice")
    return alice


@pytest.fixture
def bob(host: OpenHost, alice: Host) -> Host:
    """Another member of crew."""
    assert alice.state == "receiving"
    bob = host("bob")
    bob.team("join crew bob")
    return bob


@pytest.fixture
def dead() -> Iterator[subprocess.Popen[bytes]]:
    """A process to be a session's; it lives until the test ends it, or itself."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    kill(process)

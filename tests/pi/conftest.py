"""The real Pi, its scripted model, and processes that end with their test."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pi_host.home import PiHome
from pi_host.installation import PINNED, Installation, install
from pi_host.model_server import ModelServer
from pi_host.rpc import RpcPi
from pi_host.terminal import TerminalPi

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_host.rpc import StartRpc
    from pi_host.terminal import StartTerminal

_HERE = Path(__file__).parent
_MARKS = (pytest.mark.slow, pytest.mark.timeout(300))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever needs Pi is slow; and the first of them on a machine waits for the fetch."""
    for item in items:
        if _HERE in item.path.parents and "pi_installation" in getattr(item, "fixturenames", ()):
            for mark in _MARKS:
                item.add_marker(mark)


@pytest.fixture(scope="session")
def pi_installation() -> Installation:
    """The pinned Pi, or the newest where `PI_TEAM_TESTS_PI=newest`."""
    return install(os.environ.get("PI_TEAM_TESTS_PI", PINNED))


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    """An endpoint; at the end nothing may have been asked that no reply was scripted for."""
    with ModelServer() as server:
        yield server
        server.check()


@pytest.fixture
def pi_home(tmp_path: Path, pi_installation: Installation, model_server: ModelServer) -> PiHome:
    """An agent directory whose models are the scripted ones."""
    return PiHome(tmp_path / "pi", pi_installation, model_server)


@pytest.fixture
def start_rpc(pi_home: PiHome) -> Iterator[StartRpc]:
    """Start Pi in RPC mode; the options are those of `RpcPi`."""
    started: list[RpcPi] = []

    def start(*words: str, **options: Any) -> RpcPi:
        started.append(RpcPi(pi_home, *words, **options))
        return started[-1]

    yield start
    for pi in started:
        pi.sweep()


@pytest.fixture
def start_terminal(pi_home: PiHome) -> Iterator[StartTerminal]:
    """Start Pi in a terminal; the options are those of `TerminalPi`."""
    started: list[TerminalPi] = []

    def start(*words: str, **options: Any) -> TerminalPi:
        started.append(TerminalPi(pi_home, *words, **options))
        return started[-1]

    yield start
    for pi in started:
        pi.sweep()

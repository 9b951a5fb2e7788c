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
from pi_team_host.team import Team
from pi_team_host.team_pi import TeamPi

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_host.rpc import StartRpc
    from pi_host.terminal import StartTerminal
    from pi_team_host.team_pi import StartMembers, StartTeamPi

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


@pytest.fixture
def crew(pi_home: PiHome) -> Iterator[Team]:
    """A team `crew` among those that the test's Pi processes know."""
    team = Team(pi_home.agent / "teams", "crew")
    yield team
    team.mailbox.close()


@pytest.fixture
def start_team_pi(pi_home: PiHome) -> Iterator[StartTeamPi]:
    """Start Pi in RPC mode with the extension; the options are those of `TeamPi`."""
    started: list[TeamPi] = []

    def start(*words: str, **options: Any) -> TeamPi:
        started.append(TeamPi(pi_home, *words, **options))
        return started[-1]

    yield start
    for pi in started:
        pi.sweep()


@pytest.fixture
def start_members(start_team_pi: StartTeamPi, crew: Team) -> StartMembers:
    """Start several at once and join `crew`: `lead, coder = start_members(lead="fake-1", coder="fake-2")`."""

    def start(**models: str) -> list[TeamPi]:
        members = {alias: start_team_pi(model=model) for alias, model in models.items()}
        joins = [
            (pi, pi.send("prompt", message=f"/team join {crew.name} {alias}"))
            for alias, pi in members.items()
        ]
        for pi, number in joins:
            pi.response(number)
            assert pi.widget.startswith(f"{crew.name} · "), pi.notifications
        return [*members.values()]

    return start

"""The states of a session, by their declaration."""

from __future__ import annotations

import ast
from itertools import product
from pathlib import Path

import pytest

from pi_team import session
from pi_team.domain.lifecycles import IllegalTransition
from pi_team.session.machine import SESSION, SessionMachine

PACKAGE = Path(session.__file__).parent
TRIGGERS = sorted({row.trigger for row in SESSION.transitions})


@pytest.mark.parametrize(("state", "trigger"), list(product(SESSION.states, TRIGGERS)))
def test_what_is_not_declared_is_refused_and_changes_nothing(state: str, trigger: str) -> None:
    """From each state each trigger: the declared state follows, or an error and the old one."""
    machine = SessionMachine()
    for step in _way_to(state):
        machine.fire(step)  # type: ignore[arg-type]
    assert machine.state == state
    dests = [row.dest for row in SESSION.transitions if row.trigger == trigger and state in row.sources]
    if dests:
        machine.fire(trigger)  # type: ignore[arg-type]
        assert [machine.state] == dests
    else:
        with pytest.raises(IllegalTransition, match=state):
            machine.fire(trigger)  # type: ignore[arg-type]
        assert machine.state == state


def _way_to(state: str) -> list[str]:
    """The shortest way to a state by the declaration."""
    ways: dict[str, list[str]] = {SESSION.initial: []}
    for _ in SESSION.states:
        for row in SESSION.transitions:
            for source in row.sources:
                if source in ways:
                    ways.setdefault(row.dest, [*ways[source], row.trigger])
    return ways[state]


def test_only_a_receiving_session_starts_to_work() -> None:
    """A second way to `work` would let a paused or leaving session claim."""
    assert [row.sources for row in SESSION.transitions if row.trigger == "work"] == [("receiving",)]


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.name)
def test_nobody_assigns_a_state(path: Path) -> None:
    """The library moves the machine; an assignment would be a transition that no table shows."""
    for node in ast.walk(ast.parse(path.read_text())):
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets += [node.target] if isinstance(node, ast.AugAssign) else []
        assert not [
            target for target in targets if isinstance(target, ast.Attribute) and target.attr == "state"
        ]


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.name)
def test_the_controller_knows_no_host_and_waits_for_nothing(path: Path) -> None:
    """No thread, pipe, process or clock of its own, and no word of Pi's interfaces."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert name.split(".")[0] in {
                "__future__", "attrs", "collections", "contextlib", "hashlib", "pi_team", "re", "transitions",
                "typing",
            }, name  # fmt: skip
            assert not name.startswith("pi_team.hosts"), name

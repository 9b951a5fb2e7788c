"""The domain has no clock, files, processes or randomness, and only the machines give a state."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pi_team

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(pi_team.__file__).parent
DOMAIN = ROOT / "domain"
MACHINES = DOMAIN / "lifecycles.py"

STATES = {"state", "status"}
GIVERS = {"advance", "advance_member", "status_after"}
MAKERS = {"changed_message", "changed_member", "moved", "moved_member", "new_message"}
PURE = {"__future__", "attrs", "collections", "functools", "re", "transitions", "typing", "pi_team"}


def assigned(tree: ast.AST) -> Iterator[ast.expr]:
    """Every expression that becomes a state: as an argument, in an object, or by assignment."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in STATES:
            yield node.value
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value in STATES:
                    yield value
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                attribute = isinstance(target, ast.Attribute) and target.attr in STATES
                item = isinstance(target, ast.Subscript) and (
                    isinstance(target.slice, ast.Constant) and target.slice.value in STATES
                )
                if attribute or item:
                    yield node.value


def is_given(value: ast.expr) -> bool:
    """Whether the expression comes from a machine, or carries on a state that is there already."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in GIVERS
    if isinstance(value, ast.Subscript):
        return isinstance(value.slice, ast.Constant) and value.slice.value in STATES
    return isinstance(value, ast.Attribute) and value.attr in {*STATES, "initial"}


def offences(source: str) -> list[str]:
    return [ast.unparse(value) for value in assigned(ast.parse(source)) if not is_given(value)]


def makers(source: str) -> list[str]:
    """The calls that make a message or a member, and the names that lead there."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pi_team.domain"):
            found += [alias.name for alias in node.names if alias.name in MAKERS]
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name.split(".")[-1] in {"Message", "Member"} or name.endswith(
                ("Message.from_json", "Member.from_json")
            ):
                found.append(name)
    return found


@pytest.mark.parametrize("path", sorted(DOMAIN.rglob("*.py")), ids=lambda path: path.name)
def test_only_the_machines_give_a_state(path: Path) -> None:
    """A state that an operation chose by itself would be a transition that no table shows."""
    if path != MACHINES:
        assert offences(path.read_text()) == []


def test_the_machines_give_what_they_computed() -> None:
    """Even where the state is set, it is the machine's answer and not a word of its own."""
    assert offences(MACHINES.read_text()) == ["state", "state"]


def test_nobody_else_makes_messages_or_members() -> None:
    """Hosts, commands and the mailbox get them from operations."""
    others = [path for path in ROOT.rglob("*.py") if not path.is_relative_to(DOMAIN)]
    assert others
    assert {path.name: made for path in others if (made := makers(path.read_text()))} == {}


@pytest.mark.parametrize(
    "source",
    [
        "changed_message(message, state='completed')",
        "Message.from_json(value | {'state': 'seen'})",
        "value['state'] = 'seen'",
        "member.status = 'offline'",
        "changed_member(member, status='offline' if dead else member.status)",
        "changed_message(message, state=FINAL)",
        "changed_message(message, state=choose(message))",
    ],
)
def test_a_state_of_ones_own_is_found(source: str) -> None:
    """The check above would notice each of these."""
    assert len(offences(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "from pi_team.domain.model import changed_member",
        "from pi_team.domain.lifecycles import moved",
        "model.Message(1, 2)",
        "Member.from_json({})",
    ],
)
def test_a_maker_is_found(source: str) -> None:
    """The check above would notice each of these."""
    assert len(makers(source)) == 1


@pytest.mark.parametrize("path", sorted(DOMAIN.rglob("*.py")), ids=lambda path: path.name)
def test_the_domain_imports_nothing_that_acts(path: Path) -> None:
    """No clock, no files, no processes, no randomness; and nothing of other layers."""
    for node in ast.walk(ast.parse(path.read_text())):
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        for module in modules:
            assert module.split(".")[0] in PURE, module
            if module.startswith("pi_team."):
                assert module.split(".")[1] in {"domain", "errors", "json_text", "limits"}, module
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert (
                node.func.id not in {"open", "print", "input", "exec", "eval"} or path.name == "diagrams.py"
            )

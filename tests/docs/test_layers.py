"""Imports run one way, from what a user sees down to what knows nothing of a team."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

import repository

if TYPE_CHECKING:
    from collections.abc import Iterator

LAYERS: Final = (
    {"_version", "clocks", "errors", "limits", "nesting"},
    {"json_text", "phrases", "text"},
    {"domain", "record"},
    {"former", "presence", "teams", "tree"},
    {"relocation"},
    {"store"},
    {"leftovers"},
    {"doctor", "engine", "seats", "watching"},
    {"administration"},
    {"memberships"},
    {"mailbox"},
    {"__init__"},
    {"session"},
    {"hosts"},
    {"cli"},
    {"__main__"},
)
"""The parts of the package, lowest first. A part uses itself and lower layers: nothing beside it."""
ONLY_TYPES: Final = {("tree", "record")}
"""Used for annotations alone, which `if TYPE_CHECKING` keeps so."""


def _rank(part: str) -> int:
    for rank, layer in enumerate(LAYERS):
        if part in layer:
            return rank
    raise AssertionError(f"{part} is in no layer")


def _modules() -> Iterator[tuple[str, str]]:
    """Each part and one of its modules."""
    for name in repository.files():
        if name.startswith("pi_team/") and name.endswith(".py"):
            yield name.split("/")[1].removesuffix(".py"), name


def _imported(tree: ast.AST) -> set[str]:
    """The parts that a tree imports from, at any depth of it."""
    found: set[str] = set()
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "pi_team" else [module]
        found |= {name.split(".")[1] for name in names if name.startswith("pi_team.")}
        if "pi_team" in names:
            found.add("__init__")
    return found


def _without_types(tree: ast.Module) -> ast.Module:
    """The tree without the blocks that only a type checker reads."""

    class Strip(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST | None:
            is_types = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
            return None if is_types else self.generic_visit(node)

    stripped = Strip().visit(tree)
    assert isinstance(stripped, ast.Module)
    return stripped


def test_every_import_leads_to_a_lower_layer() -> None:
    """A lower part began to use a higher one, or one beside it."""
    wrong, seen = [], set()
    for part, name in _modules():
        for other in _imported(ast.parse(repository.text(name))) - {part}:
            seen.add((part, other))
            if _rank(other) >= _rank(part) and (part, other) not in ONLY_TYPES:
                wrong.append(f"{name} imports from {other}")
    assert wrong == []
    assert ("store", "record") in seen  # else nothing was looked at


def test_the_domain_knows_nothing_of_files_and_time() -> None:
    """Something impure got into the domain: a clock, a file, a process, a source of randomness."""
    impure = {
        "io",
        "os",
        "pathlib",
        "random",
        "secrets",
        "shutil",
        "subprocess",
        "sys",
        "tempfile",
        "threading",
    }
    impure |= {"asyncio", "datetime", "psutil", "socket", "time", "uuid"}
    for part, name in _modules():
        if part == "domain":
            for node in ast.walk(ast.parse(repository.text(name))):
                named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom):
                    named = [node.module or ""]
                assert not {module.split(".")[0] for module in named} & impure, name


def test_what_is_for_types_only_is_imported_for_types_only() -> None:
    """An exception that the table makes for annotations became an import."""
    for part, name in _modules():
        imported = _imported(_without_types(ast.parse(repository.text(name))))
        for other in {other for one, other in ONLY_TYPES if one == part}:
            assert other not in imported, name


def test_a_wrong_import_would_be_found() -> None:
    """The walk sees imports within functions, of a module, from a module, and for types."""
    source = """
if TYPE_CHECKING:
    from pi_team.session import controller
def function():
    import pi_team.cli.main
    from pi_team import limits
"""
    assert _imported(ast.parse(source)) == {"session", "cli", "limits"}
    assert _imported(_without_types(ast.parse(source))) == {"cli", "limits"}

"""The extension's TypeScript: strict, against the real types of Pi, and with public imports only."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

import pi_team
import repository
from pi_host.installation import NODE

if TYPE_CHECKING:
    from pathlib import Path

    from pi_host.installation import Installation

FOLDER: Final = "pi_team/hosts/pi/extension"
PUBLIC: Final = {
    *("@earendil-works/pi-ai", "@earendil-works/pi-coding-agent", "@earendil-works/pi-tui", "typebox"),
    *("node:child_process", "node:fs", "node:os", "node:path", "node:url"),
}
"""What may be imported: what Pi offers to extensions, and Node. Anything deeper is Pi's own business."""
IMPORT: Final = re.compile(
    r"""\bfrom\s+["']([^"']+)["']|\bimport\s*\(|\brequire\b|\bimport\s+["']([^"']+)["']"""
)
ESCAPES: Final = re.compile(
    r"@ts-|\bas any\b|: any\b|<any>|\.prototype\b|__proto__|setPrototypeOf|\bas unknown as\b"
)


def sources() -> dict[str, str]:
    names = [name for name in repository.files() if name.startswith(f"{FOLDER}/") and name.endswith(".ts")]
    assert len(names) > 4
    return {os.path.basename(name): repository.text(name) for name in names}


def compiled(installation: Installation, scratch: Path, **added: str) -> list[str]:
    """What the compiler says of the extension, by its own configuration, with these files added."""
    copy = scratch / "extension"
    shutil.copytree(repository.ROOT / FOLDER, copy)
    (scratch / "node_modules").symlink_to(installation.modules)
    for name, text in added.items():
        (copy / f"{name}.ts").write_text(text)
    compiler = os.path.join(installation.modules, "typescript", "bin", "tsc")
    command = [NODE, compiler, "--pretty", "false", "-p", str(copy)]
    ended = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
    said = ended.stdout.splitlines()
    assert bool(said) == (ended.returncode != 0), ended
    return said


def test_it_fits_the_types_of_pi(pi_installation: Installation, tmp_path: Path) -> None:
    """A name of Pi's was mistyped, or Pi has changed what the extension relies on."""
    assert compiled(pi_installation, tmp_path) == []


API: Final = 'import type { ExtensionAPI } from "@earendil-works/pi-coding-agent"; '
FALLING: Final = (
    "export const wrong = (a: number): void => { switch (a) { case 1: wrong(2); case 2: wrong(1); } };"
)
WRONG: Final = {
    "mistyped": (f"{API} export const wrong = (pi: ExtensionAPI): void => pi.registerComand();", "TS2551"),
    "unguarded": ("export const wrong = (list: string[]): string => list[0];", "TS2322"),
    "optional": ("export const wrong: { a?: string } = { a: undefined };", "TS2375"),
    "implicit": ("export function wrong(a) { return a; }", "TS7006"),
    "unused": ("const wrong = 1; export {};", "TS6133"),
    "unstrippable": ("export enum Wrong { A }", "TS1294"),
    "untold": (f"{API.replace(' type', '')} export type Wrong = ExtensionAPI;", "TS1484"),
    "indexed": ("export const wrong = (o: { [key: string]: string }) => o.name;", "TS4111"),
    "falling": (FALLING, "TS7029"),
    "internal": ('export type { Wrong } from "@earendil-works/pi-coding-agent/dist/index.js";', "TS2307"),
}


def test_what_is_wrong_would_be_found(pi_installation: Installation, tmp_path: Path) -> None:
    """A strict option is off, or the compiler looks at nothing: each planted fault has its own error."""
    said = compiled(pi_installation, tmp_path, **{name: text for name, (text, _) in WRONG.items()})
    found = {match[1]: match[2] for line in said if (match := re.search(r"(\w+)\.ts\(.*error (TS\d+)", line))}
    assert found == {name: code for name, (_, code) in WRONG.items()}


def test_only_what_pi_offers_to_extensions_is_imported() -> None:
    """A host internal was imported, which the next Pi moves; or a module that is not there at a user's."""
    seen = set()
    for name, text in sources().items():
        for match in IMPORT.finditer(text):
            module = match[1] or match[2]
            assert module, f"{name} imports by a computed name"
            seen.add(module)
            if module.startswith("."):
                assert module.removeprefix("./") in sources(), f"{name} imports {module}"
            else:
                assert module in PUBLIC, f"{name} imports {module}"
    assert seen >= PUBLIC  # else the list allows too much, or nothing was looked at


def test_no_type_is_talked_away_and_nothing_is_patched() -> None:
    for name, text in sources().items():
        assert not ESCAPES.search(text), f"{name}: {ESCAPES.search(text)}"


@pytest.mark.parametrize("text", ["// @ts-ignore", "x as any", "Session.prototype.x = 1"])
def test_what_is_talked_away_would_be_found(text: str) -> None:
    assert ESCAPES.search(text)


def test_the_manifest_says_what_pi_has_to_know() -> None:
    """Another version than the package's; a dependency that nobody imports, or that Pi does not bring."""
    manifest = json.loads(repository.text(f"{FOLDER}/package.json"))
    assert manifest["version"] == pi_team.__version__
    assert manifest["type"] == "module"
    assert "pi-package" in manifest["keywords"]
    assert manifest["pi"] == {"extensions": ["./pi-team.ts"], "changelogPath": ""}
    assert manifest["peerDependencies"] == {
        name: "*" for name in sorted(PUBLIC) if not name.startswith("node:")
    }
    assert not {"dependencies", "devDependencies", "scripts"} & set(manifest)

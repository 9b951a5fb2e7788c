"""The rungs of the ladder of evidence: the program of each, and how what it prints is read."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

import account

if TYPE_CHECKING:
    from collections.abc import Callable

    from account import Reader

ROOT: Final = Path(__file__).resolve().parents[2]
_SET_UP: Final = "python -m pip install '.[dev]'"
_PYTEST: Final = (
    *("-m", "pytest", "-c", "pyproject.toml", "-q", "--no-header"),
    *("-p", "tally", "-p", "no:cacheprovider"),
)
_TESTING: Final = ("pytest", "pytest_timeout")


@attrs.frozen
class Size:
    """How much is asked for.

    Attributes:
        full: all that there is, and not what a few minutes allow.
        seed: for what is drawn; None for the programs' own.
    """

    full: bool = False
    seed: int | None = None


@attrs.frozen
class Part:
    """A program, or a selection of tests.

    Attributes:
        arguments: of Python, to run it in the root of the repository.
        reader: of its standard output.
        needs: the file or folder of the repository that it is.
    """

    arguments: Callable[[Size], list[str]]
    reader: Reader
    needs: str

    def command(self, size: Size) -> list[str]:
        """What is run."""
        return [sys.executable, *self.arguments(size)]


@attrs.frozen
class Rung:
    """A rung.

    Attributes:
        name: for the command line.
        title: in a table.
        about: what it shows, in a sentence.
        parts: what is run for it, one after the other.
        modules: without which it does not run.
        lacks: what else is missing, or "".
    """

    name: str
    title: str
    about: str
    parts: tuple[Part, ...]
    modules: tuple[str, ...] = ()
    lacks: Callable[[], str] = str

    def missing(self) -> str:
        """Why it cannot be run here, or ""."""
        for part in self.parts:
            if not (ROOT / part.needs).exists():
                return f"{part.needs} is not there"
        absent = [module for module in self.modules if importlib.util.find_spec(module) is None]
        if absent:
            return f"without {' and '.join(absent)}: {_SET_UP}"
        return self.lacks()


def _without_java() -> str:
    """What TLC lacks, in the words of its runner."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    tlc = importlib.import_module("spec.checker.tlc")
    try:
        tlc.locate()
    except tlc.ToolMissing as missing:
        return f"without TLC or Java: {missing}".partition("   #")[0]
    return ""


def _program(path: str, reader: Reader, *words: str, seeded: bool = False) -> Part:
    """A program that prints JSON."""

    def arguments(size: Size) -> list[str]:
        seed = ["--seed", str(size.seed)] if seeded and size.seed is not None else []
        return [path, *words, "--json", *(["--full"] if size.full else []), *seed]

    return Part(arguments, reader, path)


def _tests(path: str, controls: str = "", *words: str) -> Part:
    """A part of the test suite; which of its tests are controls, as a regular expression."""
    return Part(lambda _: [*_PYTEST, path, *words], account.cases(controls), path)


def _models(size: Size) -> list[str]:
    # One at a time: another rung has the other core.
    return ["spec/check", "--all" if size.full else "--quick", "--jobs", "1"]


_CRASH: Final = "tests/crash/run.py"
_MATRIX: Final = "tests/crash/test_matrix.py"

RUNGS: Final = (
    Rung(
        "spec",
        "The specification",
        "TLC explores the models of the protocol and of the team in every state; "
        "each rule that is taken out breaks the property that it is there for.",
        (Part(_models, account.model, "spec/check"),),
        lacks=_without_java,
    ),
    Rung(
        "explorer",
        "The explorer",
        "The real code over a simulated disk: every schedule of a few writers, a crash before every call, "
        "every disk that a power cut may leave.",
        (_program("tests/explore/run.py", account.exploration),),
    ),
    Rung(
        "crash",
        "Kills and stops",
        "Real processes are killed, or stopped and continued, at each system call of each operation; "
        "then the team is looked at, and others go on.",
        (
            _program(_CRASH, account.matrix, "matrix", seeded=True),
            _tests(_MATRIX, "would_be", "-k", "kill_would_be_noticed or stop_would_be_noticed"),
        ),
        _TESTING,
    ),
    Rung(
        "errors",
        "Errors",
        "Each system call of each operation fails, with each error that a system has for it: "
        "all of the operation, none of it, or said to be unknown.",
        (
            _program(_CRASH, account.matrix, "errors", seeded=True),
            _tests(_MATRIX, "would_be", "-k", "sync_that_failed_would_be_noticed"),
        ),
        _TESTING,
    ),
    Rung(
        "soak",
        "The soak",
        "Processes that contend for one team are killed at random moments, again and again.",
        (_program(_CRASH, account.matrix, "soak", seeded=True),),
        _TESTING,
    ),
    Rung(
        "stateful",
        "The machine",
        "Hypothesis drives real processes, kills and stops them and sets the clock, against a model of "
        "the team.",
        (_program("tests/stateful/drive.py", account.processes, seeded=True),),
        ("hypothesis",),
    ),
    Rung(
        "traces",
        "Traces",
        "What real processes did, call by call, is a behaviour of the specification; what was tampered "
        "with, or done by code without one of its rules, is none.",
        (
            _tests("tests/spec/test_traces.py", "corrupted_trace|proves_nothing|cannot_read"),
            _tests("tests/spec/test_code_controls.py", "without_a_rule"),
        ),
        _TESTING,
        _without_java,
    ),
    Rung(
        "interop",
        "Interoperation",
        "What the TypeScript implementation wrote is read, written on, and read back, byte for byte.",
        (_tests("tests/interop"),),
        _TESTING,
    ),
)
"""From the bottom up; each checks the one below it."""

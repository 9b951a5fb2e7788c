"""What the teams may be by now, given what everybody was told.

A world is one way in which everything may have happened. What was acknowledged happened in each of them,
what was refused in none. An operation whose process stopped or died midway has happened in some, at most
once and at any moment since; what is observed then rules out worlds. None left: the code broke a promise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import attrs

import plain
from plain import No, Team

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Teams: TypeAlias = tuple[tuple[str, Team], ...]
"""Teams by the names of their directories, sorted; names that begin with a dot are hidden."""
Apply: TypeAlias = "Callable[[Team, plain.Judge], tuple[Team, Any]]"
"""An operation on one team, plainly."""
Stage: TypeAlias = "Callable[[dict[str, Team], plain.Judge, bool], Any]"
"""Changes the teams and answers; the last argument says whether it may come late. May raise :class:`No`."""

NOTHING: Final = (None, False, 0, ())
"""What an operation answers that has changed nothing, besides refusals."""
_MOST: Final = 4_000


class Violation(AssertionError):
    """A promise is broken; `invariant` is its name."""

    def __init__(self, invariant: str, text: str) -> None:
        super().__init__(f"{invariant}: {text}")
        self.invariant = invariant
        self.text = text


@attrs.frozen
class Refusal:
    """An answer: the code of a refusal."""

    code: str


@attrs.frozen(eq=False)
class Attempt:
    """An operation of a process.

    Attributes:
        text: in words.
        do: its name.
        teams: the names of the teams that it is about.
        stages: what it does, each at once; all but renaming and deleting a team have one.
        idle: whether it may be done without having changed anything.
        aliases: whose presence it writes.
        new: the name to be, where a team is renamed.
    """

    text: str
    do: str
    teams: frozenset[str]
    stages: tuple[Stage, ...]
    idle: bool = False
    aliases: frozenset[str] = frozenset()
    new: str = ""


class World(NamedTuple):
    """One way in which it may have happened; `progress` holds each pending attempt's stage and answer."""

    teams: Teams
    progress: frozenset[tuple[Attempt, int, Any]] = frozenset()

    def stage(self, attempt: Attempt) -> tuple[int, Any]:
        """How far an attempt has come, and what it then answers."""
        return next(((stage, answer) for one, stage, answer in self.progress if one is attempt), (0, None))

    def without(self, attempt: Attempt) -> frozenset[tuple[Attempt, int, Any]]:
        """The progress of the others."""
        return frozenset(entry for entry in self.progress if entry[0] is not attempt)


def frozen(teams: dict[str, Team]) -> Teams:
    """Teams as a value."""
    return tuple(sorted(teams.items(), key=lambda item: item[0]))


def in_team(name: str, apply: Apply) -> Stage:
    """An operation on one team; one that comes late still reaches a team that is being moved away."""

    def stage(teams: dict[str, Team], judge: plain.Judge, late: bool) -> Any:
        moving = [path for path, team in teams.items() if team.title == name and path != name]
        if late and name not in teams and moving:
            path = moving[0]
        elif name not in teams:
            raise No("TEAM_UNKNOWN")
        elif teams[name].title != name:
            raise No("RECORD_CORRUPT")
        else:
            path = name
        try:
            teams[path], answer = apply(teams[path], judge)
        except No as no:
            teams[path] = no.swept or teams[path]
            raise
        return answer

    return stage


Verdicts: TypeAlias = "Callable[[str, Attempt | None], frozenset[str]]"
"""What may be said of a session; with an attempt, at any time since that began."""


class Possible:
    """All worlds that fit what was heard so far.

    Args:
        verdicts: what may be said of sessions.
    """

    def __init__(self, verdicts: Verdicts) -> None:
        self._verdicts = verdicts
        self.worlds: set[World] = {World(())}
        self.stopped: list[Attempt] = []
        self.dead: list[Attempt] = []

    # --- what may happen

    def _outcomes(self, world: World, attempt: Attempt, *, late: bool) -> Iterator[tuple[Teams, int, Any]]:
        """What the attempt makes of a world from where it stands: the teams, the stage, the answer.

        Whoever it asks about is judged in every way that may be.
        """
        choices: list[dict[str, str]] = [{}]
        while choices:
            judged = choices.pop()

            def judge(session: str, judged: dict[str, str] = judged) -> str:
                if session not in judged:
                    first, *others = sorted(self._verdicts(session, attempt if late else None))
                    choices.extend(judged | {session: other} for other in others)
                    judged[session] = first
                return judged[session]

            yield from self._run(world, attempt, judge, late=late)

    @staticmethod
    def _run(
        world: World, attempt: Attempt, judge: plain.Judge, *, late: bool
    ) -> Iterator[tuple[Teams, int, Any]]:
        first, _ = world.stage(attempt)
        teams = dict(world.teams)
        for number in range(first, len(attempt.stages)):
            try:
                answer = attempt.stages[number](teams, judge, late)
            except No as no:
                yield frozen(teams), 0, Refusal(no.code)
                return
            yield frozen(teams), number + 1, answer

    def _elapse(self) -> None:
        """Let what is pending happen, or not, in any order."""
        fresh = self.worlds
        while fresh:
            found = set()
            for world in fresh:
                for attempt in (*self.stopped, *self.dead):
                    before, _ = world.stage(attempt)
                    if before == len(attempt.stages):
                        continue
                    for teams, stage, answer in self._outcomes(world, attempt, late=True):
                        if stage:
                            progress = world.without(attempt) | {(attempt, stage, answer)}
                            if before or teams != world.teams:
                                found.add(World(teams, progress))
                        elif teams != world.teams:
                            found.add(World(teams, world.without(attempt)))
            fresh = found - self.worlds
            self.worlds = self.worlds | fresh
            assert len(self.worlds) < _MOST, "the machine asks for too much at once"

    # --- what is heard

    def answered(self, attempt: Attempt, answer: Any) -> None:
        """An attempt that nothing interrupted has ended. Raises Violation."""
        self._elapse()
        heard, told = set(), set()
        for world in self.worlds:
            for teams, stage, expected in self._outcomes(world, attempt, late=False):
                if stage in {0, len(attempt.stages)}:
                    told.add(expected)
                    if expected == answer:
                        heard.add(World(teams, world.progress))
        if not heard:
            raise Violation(
                _name(attempt, answer, told), f"{attempt.text}: {shown(answer)}, not {_any(told)}"
            )
        self.worlds = heard

    def suspended(self, attempt: Attempt) -> None:
        """The process of an attempt stopped midway."""
        self.stopped.append(attempt)

    def resumed(self, attempt: Attempt, answer: Any) -> None:
        """The attempt of a process that had been stopped has ended. Raises Violation."""
        self._elapse()
        self.stopped.remove(attempt)
        heard = set()
        for world in self.worlds:
            stage, expected = world.stage(attempt)
            if stage == len(attempt.stages):
                fits = expected == answer
            else:
                fits = isinstance(answer, Refusal) or (attempt.idle and answer in NOTHING)
            if fits:
                heard.add(World(world.teams, world.without(attempt)))
        if not heard:
            happened = all(world.stage(attempt)[0] == len(attempt.stages) for world in self.worlds)
            name = "Refused" if isinstance(answer, Refusal) else "Answered"
            told = "and it happened" if happened else "and it did not happen"
            raise Violation(name, f"{attempt.text}, stopped and continued: {shown(answer)}, {told}")
        self.worlds = heard

    def lost(self, attempt: Attempt) -> None:
        """The process of an attempt died midway, or was told that nobody knows."""
        if attempt in self.stopped:
            self.stopped.remove(attempt)
        self.dead.append(attempt)

    def read_by_the_living(self, team: str) -> list[tuple[Attempt, bool]]:
        """Somebody has read a team to its end: whatever the dead began there has happened or never will.

        Each of that, with whether it did.
        """
        decided = []
        for attempt in [one for one in self.dead if team in one.teams]:
            stages = {world.stage(attempt)[0] for world in self.worlds}
            if attempt.do == "rename_team" and 0 < max(stages) < len(attempt.stages):
                continue  # it is half renamed until somebody repeats that
            decided.append((attempt, max(stages) > 0))
            self.dead.remove(attempt)
            self.worlds = {World(world.teams, world.without(attempt)) for world in self.worlds}
        return decided

    def observed(self, found: dict[str, Team], *, behind: Iterable[str] = ()) -> None:
        """The directories and what their records say; of those that are behind only that they are there.

        Raises:
            Violation: it fits no world.
        """
        self._elapse()
        ignored = set(behind)
        known = {world for world in self.worlds if _fits(world, found, ignored)}
        if not known:
            raise _difference(self.worlds, found)
        self.worlds = known


def _fits(world: World, found: dict[str, Team], ignored: set[str]) -> bool:
    visible = {path: team for path, team in world.teams if not path.startswith(".")}
    return visible.keys() == found.keys() and all(
        visible[path] == team for path, team in found.items() if path not in ignored
    )


# --- in words ---------------------------------------------------------------------------------------

_BROKEN: Final = {
    "MEMBERSHIP_LOST": "Fenced",
    "ALREADY_CLAIMING": "OneClaim",
    "NOT_CLAIMED": "ClaimOwner",
    "ALIAS_ALIVE": "Judged",
    "MEMBER_ALIVE": "Judged",
    "TEAM_ACTIVE": "Judged",
}


def _name(attempt: Attempt, answer: Any, told: set[Any]) -> str:
    """The invariant that an answer breaks."""
    if not isinstance(answer, Refusal):
        codes = [one.code for one in told if isinstance(one, Refusal)]
        if codes and len(codes) == len(told):
            return _BROKEN.get(codes[0], "Answered")
        if attempt.do == "sweep":
            return "SweepExact"
    return "Answered"


def shown(answer: Any) -> str:
    """An answer in words."""
    return f"refused with {answer.code}" if isinstance(answer, Refusal) else f"answered {answer!r}"


def _any(told: set[Any]) -> str:
    return " or ".join(sorted(map(shown, told))) or "anything"


def _difference(worlds: set[World], found: dict[str, Team]) -> Violation:
    """What is wrong with the teams that were found, in terms of the world that is nearest."""

    def lines(teams: Iterable[tuple[str, Team]]) -> list[str]:
        said = []
        for path, team in teams:
            if not path.startswith("."):
                said.append(f"team {path}" + (f" that calls itself {team.title}" * (team.title != path)))
                said += [f"{path}: {one}" for one in (*team.members, *team.messages)]
        return said

    there = lines(found.items())
    expected = min(
        (lines(world.teams) for world in worlds), key=lambda said: (len(set(said) ^ set(there)), said)
    )
    missing = [line for line in expected if line not in there]
    extra = [line for line in there if line not in expected]
    doubled = sorted({line for line in there if there.count(line) > 1})
    if doubled:
        return Violation("Once", f"doubled: {'; '.join(doubled)}")
    text = f"missing: {'; '.join(missing) or 'nothing'}. Not explained: {'; '.join(extra) or 'nothing'}"
    if not missing and not extra:
        return Violation("Ordered", f"{there}, not {expected}")
    return Violation("Acknowledged" if len(missing) >= len(extra) else "Refused", text)

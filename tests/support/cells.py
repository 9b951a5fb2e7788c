"""Cells of the crash matrix: an operation, one of its system calls, and what befalls a process there.

Everything is real: the process that is warm forks the victim, which kills or stops itself at the call or is
refused by it, and then looks at what is left with eyes of its own.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import gc
import itertools
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

import evidence
from actor import plain
from aftermath import check_swept, check_teams, grown, revisions, strays
from broken import take_out
from grounds import GARBAGE, Ground, as_given, ground, membership
from interposition import UnsyncedFileSystem
from pi_team.errors import PiTeamError
from pi_team.mailbox import Mailbox
from processes import Child
from recipes import BYSTANDERS, LOOKS, Operation, State, recipe, state, without_bystanders
from tapped import Plan, Point, Tap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grounds import Kind

LIFETIME: Final = 0.1
"""Seconds of a lock's life: a stopped holder costs the others no more than that."""
OPTIONS: Final[dict[str, Any]] = {"lock_lifetime": LIFETIME, "patience": 20.0, "interval": 0.2}
PAIRS: Final = 11
"""What each of the two others writes while a victim is stopped: twice as many revisions."""
WRITTEN: Final = 40
"""Revisions, at least, that the others write meanwhile: more than the history is meant to hold."""
_ELSEWHERE: Final = {"TEAM_UNKNOWN", "RECORD_CORRUPT"}


_REMOVING: Final = {"delete_team", "doctor"}
"""They may be refused while they clear up, and leave the rest to a sweep."""
_NO_POINT: Final = Point("", "nothing", "", "")


@attrs.frozen
class Cell:
    """What is to be shown.

    Attributes:
        name, kind: the operation, and on which kind of teams.
        plan: what befalls the victim, and where.
        broken: a rule that the victim, and one that whoever comes after it, does without: controls.
    """

    name: str
    kind: Kind
    plan: Plan
    broken: tuple[str, str] = ("", "")

    def __str__(self) -> str:
        plan = self.plan
        code = f" {errno.errorcode[plan.code]}" if plan.how == "fail" else ""
        return f"{self.name} on {self.kind} teams: {plan.how}{code} {plan.when} call {plan.nth}"


@attrs.frozen
class Subject:
    """An operation on a kind of teams, undisturbed.

    Attributes:
        operation: the operation.
        points: its system calls.
        before, after: the teams without the operation, and with it.
    """

    operation: Operation
    points: tuple[Point, ...]
    before: State
    after: State

    def expected(self, plan: Plan) -> tuple[State, ...]:
        """What may be there once the victim died: its link is what makes the operation happen."""
        links = [
            nth for nth, point in enumerate(self.points, 1) if point.step == "5 link" and not point.error
        ]
        if self.operation.repeated or len(links) != 1:
            return (self.before, self.after)
        linked = plan.nth > links[0] or (plan.nth, plan.when) == (links[0], "after")
        return (self.after,) if linked else (self.before,)


def _mailbox(field: Ground, **options: Any) -> Mailbox:
    return Mailbox(field.path, **{"filesystem": UnsyncedFileSystem(), **OPTIONS, **options})


def _carry_out(mailbox: Mailbox, operation: Operation, field: Ground) -> Any:
    (do, *args), kwargs = operation.order(field)
    answer = getattr(mailbox, do)(
        *map(as_given, args), **{key: as_given(value) for key, value in kwargs.items()}
    )
    with contextlib.suppress(AttributeError):
        answer.close()  # what watches a team
        return None
    return plain(answer)


def _victim(field: Ground, operation: Operation, plan: Plan, broken: str = "") -> dict[str, Any]:
    """What the victim does; what it says if it lives to say it."""
    if broken:
        take_out(broken)
    tap = Tap(plan)
    tap.listen()
    mailbox = _mailbox(field, filesystem=tap.port(UnsyncedFileSystem()))
    for first in operation.first:
        _carry_out(mailbox, first, field)
    said: dict[str, Any] = {"refused": "", "message": "", "explained": True}
    tap.is_open = True
    try:
        said["answer"] = _carry_out(mailbox, operation, field)
    except PiTeamError as error:
        explained = bool(error.message and error.hint)
        said |= {"refused": error.code, "message": error.message, "explained": explained}
    tap.is_open = False
    return said | {"points": [attrs.astuple(point) for point in tap.points], "resynced": tap.resynced}


def _write_to_crew(field: Ground, number: int) -> list[str]:
    """Send notes that are taken at once, so that no slots run out; their subjects."""
    aliases = ("dora", "carol") if number == 0 else ("carol", "dora")
    one, other = (membership(field.owners[alias]) for alias in aliases)
    subjects = [f"{BYSTANDERS} {number}-{count}" for count in range(PAIRS)]
    with _mailbox(field) as mailbox:
        for subject in subjects:
            mailbox.send(one, other.alias, kind="note", subject=subject, body="x")
            mailbox.notes(other)
    return subjects


def _write_to_quiet(field: Ground, number: int) -> list[str]:
    """As a person, give a member that is not there another name, and its own again; no subjects."""
    alias, other = (("one", "uno"), ("two", "duo"))[number]
    with _mailbox(field) as mailbox:
        for _ in range(PAIRS):
            mailbox.rename_member("quiet", alias, other)
            mailbox.rename_member("quiet", other, alias)
    return []


def _write_on(field: Ground, team: str, number: int) -> list[str]:
    """What one of the others does: write to that team, or to the other one where that is not there."""
    first, second = _write_to_crew, _write_to_quiet
    if team == "quiet":
        first, second = second, first
    try:
        return first(field, number)
    except PiTeamError as error:
        if error.code not in _ELSEWHERE:
            raise
        return second(field, number)


class Cells:
    """Carries out one cell after the other, each on fresh teams.

    Args:
        root: an empty directory to work in.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        gc.collect()
        gc.freeze()  # what a child leaves alone is not copied
        with self._fresh("locked") as field:
            # What a library finds out once a process is found out here, so that no child does it.
            _write_to_crew(field, 0)

    @functools.cache  # noqa: B019 - it lives as long as its process
    def subject(self, name: str, kind: Kind) -> Subject:
        """Carry out an operation undisturbed, in a process of its own."""
        operation = recipe(name, kind)
        with self._fresh(kind) as field:
            before: State = {}
            if kind != "damaged":
                _mailbox(field).look("crew")  # which installs what is pending, and else changes nothing
                before = state(field.path)
        with self._fresh(kind) as field, Child(lambda: _victim(field, operation, Plan())) as child:
            said = child.result()
            assert not said["refused"], said
            if kind in {"pending", "lost"} and field.crew.exists():
                # Not every look installs what is pending, but whoever comes next does.
                _mailbox(field).look("crew")
            after = state(field.path)
        points = tuple(Point(*point) for point in said["points"])
        with self._fresh(kind) as field, Child(lambda: _victim(field, operation, Plan())) as child:
            again = tuple(Point(*point) for point in child.result()["points"])
        for one, other in itertools.zip_longest(points, again, fillvalue=_NO_POINT):
            # Otherwise a number would not name a call.
            assert (one.method, one.step) == (other.method, other.step), (
                f"{one} in one run, {other} in another"
            )
        return Subject(operation, points, before if kind != "damaged" else after, after)

    @contextlib.contextmanager
    def _fresh(self, kind: Kind) -> Iterator[Ground]:
        root = Path(tempfile.mkdtemp(dir=self._root))
        try:
            yield ground(root, kind)
        finally:
            shutil.rmtree(root)

    def carry_out(self, cell: Cell) -> str:
        """Show one; the code that the victim was refused with, or "". Raises AssertionError."""
        if cell.broken[1]:
            with Child(lambda: self._carry_out(cell)) as apart:  # who breaks a rule stays that way
                return str(apart.result())
        return self._carry_out(cell)

    def _carry_out(self, cell: Cell) -> str:
        with self._fresh(cell.kind) as field:
            if cell.plan.how == "kill":
                return self._kill(field, cell)
            if cell.plan.how == "stop":
                return self._stop(field, cell)
            return self._refuse(field, cell)

    def _forked(self, field: Ground, cell: Cell) -> Child:
        operation = recipe(cell.name, cell.kind)
        return Child(lambda: _victim(field, operation, cell.plan, cell.broken[0]))

    def _kill(self, field: Ground, cell: Cell) -> str:
        with self._forked(field, cell) as victim:
            victim.wait_killed()
        self._check(field, cell, self.subject(cell.name, cell.kind).expected(cell.plan))
        return ""

    def _stop(self, field: Ground, cell: Cell) -> str:
        subject = self.subject(cell.name, cell.kind)
        with contextlib.ExitStack() as processes:
            victim = processes.enter_context(self._forked(field, cell))
            victim.wait_stopped()
            before = revisions(field.path)
            others = [
                processes.enter_context(
                    Child(functools.partial(_write_on, field, subject.operation.team, number))
                )
                for number in range(2)
            ]
            sent = [subject for other in others for subject in other.result()]
            between = revisions(field.path)
            assert grown(before, between) > WRITTEN
            victim.resume()
            said = victim.result()
        assert grown(between, revisions(field.path)) >= 0, "the record was put back"
        if not (cell.name == "recover" and not said["refused"]):  # which is meant to undo what they sent
            subjects = evidence.subjects(field.crew)
            assert [subjects[one] for one in sent] == [1] * len(sent), "what others sent is lost or doubled"
        self._check(field, cell, _expected_of(subject, said, cell))
        return str(said["refused"])

    def _refuse(self, field: Ground, cell: Cell) -> str:
        subject = self.subject(cell.name, cell.kind)
        with self._forked(field, cell) as victim:
            said = victim.result()
        points = [Point(*point) for point in said["points"]]
        assert len(points) >= cell.plan.nth, "the call was not reached"
        assert said["resynced"] == [], "a failed sync was repeated on the same descriptor"
        assert said["explained"], "the refusal says neither why nor what to do"
        point, code = points[cell.plan.nth - 1], said["refused"]
        if point.method == "fsync" and point.step in _UNSYNCED and not _is_help(points, cell):
            assert code == _UNSYNCED[point.step], f"{code or 'done'} although {point} failed"
        clean = code != "OUTCOME_UNKNOWN" and point.method not in {"unlink", "rmdir", "os.remove"}
        if clean and cell.kind == "plain" and subject.operation.do not in _REMOVING:
            left = strays(field.path)
            assert left == [], f"left behind: {left}"
        self._check(field, cell, _expected_of(subject, said, cell))
        return str(code)

    # --- what has to hold afterwards

    def _check(self, field: Ground, cell: Cell, expected: tuple[State, ...]) -> None:
        operation = recipe(cell.name, cell.kind)
        if cell.broken[1]:
            take_out(cell.broken[1])
        patience = 0.5 if cell.broken[1] else OPTIONS["patience"]
        with _mailbox(field, patience=patience) as bystander:
            if cell.kind == "damaged":
                self._repeat(bystander, operation, field)
                (kept,) = field.crew.glob("state.json.damaged-*")
                assert kept.read_bytes() == GARBAGE
            if cell.kind not in {"pending", "lost", "damaged"} and cell.name != "recover":
                assert evidence.revision(field.crew) >= field.revision, "the record was put back"
            dora = membership(field.owners["dora"])
            bystander.send(dora, "carol", kind="note", subject=f"{BYSTANDERS} last", body="x")
            assert evidence.subjects(field.crew)[f"{BYSTANDERS} last"] == 1
            if operation.repeated and len(expected) > 1:
                # Half a rename waits for the same rename; half a creation or deletion is none.
                self._repeat(bystander, operation, field)
                expected = expected[1:]
            now = without_bystanders(state(field.path))
            assert now in expected, f"{now} is none of {expected}"
            check_teams(field.path)
            check_swept(bystander, field.path)

    @staticmethod
    def _repeat(bystander: Mailbox, operation: Operation, field: Ground) -> None:
        with contextlib.suppress(PiTeamError):
            _carry_out(bystander, operation, field)


_UNSYNCED: Final = {"4 private file": "STORAGE", "6 sync the link": "OUTCOME_UNKNOWN"}
"""How an operation ends whose sync failed in that step: it is fatal for the attempt."""


def _is_help(points: list[Point], cell: Cell) -> bool:
    """Whether what failed was only a look's that helped, which never fails because of that.

    Some operations begin with such a look, and publish something of their own afterwards.
    """
    if cell.name in LOOKS:
        return True
    published = any(point.step == "8 rename" for point in points[cell.plan.nth :])
    return cell.kind == "lost" and (published or cell.name == "heartbeat")


def _expected_of(subject: Subject, said: dict[str, Any], cell: Cell) -> tuple[State, ...]:
    """The teams after an operation that said that: done, refused, unknown, or done but for what is swept."""
    if said["refused"] == "OUTCOME_UNKNOWN":
        return (subject.before, subject.after)
    if said["refused"]:
        done = subject.operation.do == "delete_team" and "is deleted" in said["message"]
        return (subject.after,) if done else (subject.before,)
    if subject.operation.judges and cell.plan.how == "fail":
        return (subject.before, subject.after)  # who cannot be judged is not swept
    return (subject.after,)

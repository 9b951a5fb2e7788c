"""Judging, case by case, with clocks and processes that the test moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import attrs
import psutil
import pytest

from pi_team.presence.heartbeat import Presence, Sighting
from pi_team.presence.judging import Observer
from pi_team.presence.process import Process, this_process

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_team.domain.model import Verdict
    from pi_team.presence.heartbeat import PresenceDirectory

T0 = 1_800_000_000.0
MISSING = Sighting(None, "missing")
UNREADABLE = Sighting(None, "unreadable")
PID = 4_242
HERE = attrs.evolve(this_process(), pid=PID, start=99)


@attrs.define
class Member:
    alias: str = "lead"
    token: str = "t1"
    pid: int = PID


class FakeClock:
    """Clocks that move when told to; `on_sleep` is what others do meanwhile."""

    def __init__(self) -> None:
        self.wall_time = T0
        self.run_time = 500.0
        self.on_sleep: Callable[[], None] = lambda: None

    def wall(self) -> float:
        return self.wall_time

    def running(self) -> float:
        return self.run_time

    def monotonic(self) -> float:
        return self.run_time

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)
        self.on_sleep()

    def advance(self, seconds: float) -> None:
        self.wall_time += seconds
        self.run_time += seconds


class Files:
    """Presence in memory; `before_look` happens between the reading of the clock and the look."""

    def __init__(self) -> None:
        self.sightings: dict[str, Sighting] = {}
        self.before_look: Callable[[], None] = lambda: None

    def read(self, alias: str, _known: Sighting | None) -> Sighting:
        self.before_look()
        return self.sightings.get(alias, MISSING)


class Case:
    """An observer, its clocks, and what it may see of one member."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.files = Files()
        self.exit: bool | None = False
        self.pid_is_here = True
        self.asked = 0
        self.observer = Observer(
            self.clock, has_exited=self._has_exited, exists=lambda _pid: self.pid_is_here
        )

    def _has_exited(self, process: Process) -> bool | None:
        assert process.pid == PID
        self.asked += 1
        return self.exit

    @property
    def directory(self) -> PresenceDirectory:
        return cast("PresenceDirectory", self.files)

    def beat(self, *, token: str = "t1", age: float = 0.0, by: Process | None = HERE) -> None:
        """The member writes its presence, `age` seconds ago; without `by`, as an older peer does."""
        seen = (self.clock.wall_time - age) * 1_000
        presence = Presence(token, "busy", seen)
        if by is not None:
            presence = attrs.evolve(presence, start=by.start, host=by.host, boot=by.boot, pidns=by.pidns)
        self.files.sightings["lead"] = Sighting(presence)

    def judge(self, token: str = "t1") -> Verdict:
        return self.observer.judge(self.directory, "lead", token, PID)

    def attend(self, times: int = 1, *, looking: bool = False) -> None:
        """The observer's own heartbeats, each an interval after the one before."""
        for _ in range(times):
            self.clock.advance(2)
            self.observer.attended()
            if looking:
                self.judge()


@pytest.fixture
def case() -> Case:
    """A command without heartbeats looks at a member whose presence is fresh and whose process runs."""
    case = Case()
    case.beat()
    return case


@pytest.fixture
def steady(case: Case) -> Case:
    """A session that has long been there looks at such a member."""
    case.attend(4)
    case.beat()
    return case


# --- process exit ---------------------------------------------------------------------------------


def test_an_exit_is_death_at_once_and_for_everybody(case: Case) -> None:
    """A killed session is waited for until its presence has grown old."""
    case.exit = True
    assert case.judge() == "dead"


def test_a_fresh_presence_is_life(case: Case) -> None:
    """A living session is unknown, and its alias cannot be told from an abandoned one."""
    assert case.judge() == "alive"
    case.exit = None
    assert case.judge() == "alive", "in another pid namespace"


def test_a_process_of_an_earlier_boot_is_dead_at_once(case: Case) -> None:
    """After a power cut every command waits for every member of every team."""
    before = attrs.evolve(HERE, boot="0" * 32)
    case.exit = None
    case.beat(age=T0 - psutil.boot_time() + 60, by=before)
    assert case.judge() == "dead"


def test_a_machine_of_the_same_name_is_not_dead(case: Case) -> None:
    """A virtual machine that shares the directory, and its name, with its host loses all its sessions."""
    case.exit = None
    case.clock.wall_time = psutil.boot_time() + 3_600
    case.beat(by=attrs.evolve(HERE, boot="0" * 32))
    assert case.judge() == "alive"


# --- old presence ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("age", "verdict"), [(0, "alive"), (29.9, "alive"), (30.0, "dead"), (3_600, "dead")])
@pytest.mark.parametrize("exit_", [False, None], ids=["stopped", "elsewhere"])
def test_a_session_goes_by_time(steady: Case, age: float, verdict: Verdict, exit_: bool | None) -> None:
    """A stopped session, or one whose container is gone, holds its claim for ever."""
    steady.exit = exit_
    steady.beat(age=age)
    assert steady.judge() == verdict


def test_a_command_does_not_go_by_time(case: Case) -> None:
    """A command that starts as the lid opens finds everybody's presence old, and sweeps the living."""
    case.beat(age=60)
    assert case.judge() == "unknown"


def test_a_session_goes_by_time_only_after_two_intervals(case: Case) -> None:
    """A session polls at each change of the record: many heartbeats in a row are no time spent there."""
    case.beat(age=60)
    for _ in range(50):
        case.clock.advance(0.01)
        case.observer.attended()
        assert case.judge() == "unknown"
    case.attend()
    assert case.judge() == "unknown"
    case.attend()
    assert case.judge() == "dead"


# --- gaps -----------------------------------------------------------------------------------------


def suspended(clock: FakeClock) -> None:
    clock.advance(60)


def set_forward(clock: FakeClock) -> None:
    clock.wall_time += 3_600


def set_back(clock: FakeClock) -> None:
    clock.wall_time -= 3_600


def virtual_machine_resumed(clock: FakeClock) -> None:
    """Its own clocks stood still with it; its wall clock was put right afterwards."""
    clock.wall_time += 60


@pytest.mark.parametrize("gap", [suspended, set_forward, virtual_machine_resumed])
def test_nobody_is_dead_by_time_after_a_gap(steady: Case, gap: Callable[[FakeClock], None]) -> None:
    """A laptop lid: everybody slept, and who wakes first finds everybody else's presence old."""
    gap(steady.clock)
    assert steady.judge() == "unknown", "before its own heartbeat"
    assert steady.observer.has_gap()
    for seconds in (0, 2, 1.9):
        steady.clock.advance(seconds)
        steady.observer.attended()
        assert not steady.observer.has_gap()
        assert steady.judge() == "unknown", "everybody gets two intervals to be heard again"
    steady.attend()
    assert steady.judge() == "dead"


def test_after_a_gap_two_heartbeats_have_to_be_on_time(steady: Case) -> None:
    """The time since its only timely heartbeat counts, in which the observer itself may have been stopped."""
    suspended(steady.clock)
    steady.observer.attended()
    steady.attend()
    steady.clock.advance(2)
    assert steady.judge() == "unknown"
    steady.observer.attended()
    assert steady.judge() == "dead"


def test_a_clock_set_back_is_a_gap(steady: Case) -> None:
    """An observer whose clock was set back goes on to judge by ages that it cannot know."""
    set_back(steady.clock)
    assert steady.observer.has_gap()
    steady.beat(age=60)
    assert steady.judge() == "unknown"


def test_one_late_heartbeat_is_no_gap(steady: Case) -> None:
    """On a busy machine nobody is ever swept, because no poll comes exactly in time."""
    steady.clock.advance(3.9)
    assert not steady.observer.has_gap()
    steady.observer.attended()
    steady.beat(age=31)
    assert steady.judge() == "dead"


def test_who_was_never_there_has_no_gap(case: Case) -> None:
    """A session's first heartbeat is held up by a look into the record."""
    assert not case.observer.has_gap()


@pytest.mark.parametrize("pause", [3.0, 60.0])
def test_a_pause_between_clock_and_look_makes_nobody_older(steady: Case, pause: float) -> None:
    """The clock is read after the file: a pause between the two adds its length to the presence's age."""
    steady.beat(age=28)
    steady.files.before_look = lambda: steady.clock.advance(pause)
    assert steady.judge() == "alive"


# --- presence missing, or another's ---------------------------------------------------------------


def no_file(case: Case) -> None:
    case.files.sightings.clear()


def another_token(case: Case) -> None:
    case.beat(token="t2")


def a_broken_file(case: Case) -> None:
    case.files.sightings["lead"] = Sighting(None, "malformed")


ABSENCES = pytest.mark.parametrize("absent", [no_file, another_token, a_broken_file])


@ABSENCES
def test_absence_is_death_after_two_intervals(steady: Case, absent: Callable[[Case], None]) -> None:
    """A session of which no trace is left holds its claim for ever; or is dead as soon as one looks."""
    absent(steady)
    assert steady.judge() == "unknown"
    steady.attend(looking=True)
    assert steady.judge() == "unknown"
    steady.clock.advance(1.9)
    absent(steady)
    assert steady.judge() == "unknown"
    steady.clock.advance(0.1)
    steady.observer.attended()
    assert steady.judge() == "dead"


@ABSENCES
def test_a_command_only_waits(case: Case, absent: Callable[[Case], None]) -> None:
    """A command declares dead whom it has only just not seen."""
    absent(case)
    for _ in range(10):
        assert case.judge() == "unknown"
        case.clock.advance(1)


def test_a_presence_in_between_begins_the_watch_again(steady: Case) -> None:
    """A living session whose file was overwritten twice for a moment counts as absent all the while."""
    for _ in range(5):
        another_token(steady)
        assert steady.judge() == "unknown"
        steady.attend()
        steady.beat()
        assert steady.judge() == "alive"
        steady.attend()


def test_two_looks_far_apart_are_no_watch(steady: Case) -> None:
    """A member that was absent at two moments, with an hour between them, counts as absent all the while."""
    no_file(steady)
    assert steady.judge() == "unknown"
    steady.attend(30)
    assert steady.judge() == "unknown"


def test_a_watch_does_not_go_through_a_gap(steady: Case) -> None:
    """The lid closes while somebody is missing: those 60 seconds count as watching."""
    no_file(steady)
    assert steady.judge() == "unknown"
    steady.clock.advance(3)
    suspended(steady.clock)
    steady.observer.attended()
    steady.attend(looking=True)
    assert steady.judge() == "unknown"


def test_a_pause_before_the_first_look_is_no_watching(steady: Case) -> None:
    """A watch begins when the clock was read, and a pause before the look itself fills half of it."""
    no_file(steady)
    steady.files.before_look = lambda: steady.clock.advance(1.9)
    assert steady.judge() == "unknown"
    steady.files.before_look = lambda: None
    steady.observer.attended()
    steady.attend(looking=True)
    steady.clock.advance(0.2)
    assert steady.judge() == "unknown"


def test_who_cannot_look_has_seen_nothing(steady: Case) -> None:
    """A session without descriptors, or whose `presence/` was removed, sweeps the whole team."""
    steady.files.sightings["lead"] = UNREADABLE
    steady.attend(10, looking=True)
    assert steady.judge() == "unknown"
    no_file(steady)
    assert steady.judge() == "unknown", "the watch begins with the first look that succeeds"
    steady.attend(2, looking=True)
    assert steady.judge() == "dead"


def test_verdicts_are_on_pairs(steady: Case) -> None:
    """Who joins a dead session's alias inherits its death sentence."""
    no_file(steady)
    assert steady.judge() == "unknown"
    steady.attend(2, looking=True)
    assert steady.judge("t1") == "dead"
    assert steady.judge("t2") == "unknown"
    steady.beat(token="t2")
    assert steady.judge("t2") == "alive"


# --- stamps from the future -----------------------------------------------------------------------


@pytest.mark.parametrize("ahead", [0.001, 60, 3_600])
def test_a_future_stamp_counts_while_the_process_runs(steady: Case, ahead: float) -> None:
    """The clock was set back: every living session looks as if it had never been seen."""
    steady.beat(age=-ahead)
    assert steady.judge() == "alive"
    steady.exit = True
    assert steady.judge() == "dead"


@pytest.mark.parametrize("ahead", [0.001, 3_600])
def test_a_future_stamp_proves_nothing_elsewhere(steady: Case, ahead: float) -> None:
    """A container that ended before the clock was set back lives for as long as it was set back."""
    steady.exit = None
    steady.beat(age=-ahead - 10)
    stamp = steady.files.sightings["lead"]
    assert steady.judge() == "unknown"
    steady.attend(2, looking=True)
    assert steady.files.sightings["lead"] is stamp
    assert steady.judge() == "dead"


def test_a_stamp_written_since_the_clock_was_read_is_no_future_stamp(steady: Case) -> None:
    """A member elsewhere that beats between the two looks of its observer is unknown for a moment."""
    steady.exit = None

    def beats() -> None:
        steady.clock.advance(0.001)
        steady.beat()

    steady.files.before_look = beats
    assert steady.judge() == "alive"


# --- older peers ----------------------------------------------------------------------------------


def test_an_older_peer_that_beats_lives(case: Case) -> None:
    """A peer that gives no start is unknown, or dead, although it beats."""
    case.beat(by=None)
    assert case.judge() == "alive"
    assert case.asked == 0


def test_an_older_peer_is_dead_by_time_whoever_bears_its_pid_now(steady: Case) -> None:
    """The pid of a dead peer was given out again, and it lives for ever."""
    steady.beat(by=None, age=31)
    assert steady.judge() == "dead"


def test_an_older_peer_whose_pid_is_not_here_is_dead_unless_it_beats(steady: Case) -> None:
    """A killed peer is waited for until its presence is old; or one in a container is dead at first sight."""
    steady.pid_is_here = False
    steady.beat(by=None)
    assert steady.judge() == "unknown"
    for _ in range(10):
        steady.attend(looking=True)
        steady.beat(by=None)
        assert steady.judge() == "unknown"
    steady.attend(2, looking=True)
    assert steady.judge() == "dead"


def test_a_future_stamp_of_an_older_peer_proves_nothing(steady: Case) -> None:
    """A pid that exists is taken for proof that the peer itself still runs."""
    steady.beat(by=None, age=-3_600)
    assert steady.judge() == "unknown"
    steady.attend(2, looking=True)
    assert steady.judge() == "dead"


# --- what is displayed ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prepare", "expected"),
    [
        (lambda _case: None, ("busy", "alive")),
        (lambda case: case.beat(age=31), ("offline", "unknown")),
        (lambda case: case.beat(age=-31), ("busy", "alive")),
        (no_file, ("offline", "unknown")),
        (another_token, ("offline", "unknown")),
        (lambda case: case.files.sightings.update(lead=UNREADABLE), ("offline", "unknown")),
        (lambda case: setattr(case, "exit", True), ("offline", "dead")),
    ],
    ids=["fresh", "old", "from the future", "missing", "another's", "unreadable", "exited"],
)
def test_what_is_displayed_comes_from_a_fresh_presence(
    case: Case, prepare: Callable[[Case], None], expected: tuple[str, str]
) -> None:
    """A roster shows a member as idle that was last heard of an hour ago."""
    prepare(case)
    assert case.observer.displayed(case.directory, "lead", "t1", PID) == expected


def test_only_a_display_uses_an_earlier_look_at_a_process(case: Case) -> None:
    """An operation sweeps, or refuses, on a look at the process that was made for a roster."""

    def shown() -> Verdict:
        return case.observer.displayed(case.directory, "lead", "t1", PID)[1]

    assert shown() == "alive"
    case.exit = True
    case.clock.advance(0.2)
    assert shown() == "alive"
    assert case.judge() == "dead"
    assert shown() == "dead"
    case.exit = False
    case.clock.advance(0.26)
    assert shown() == "alive"
    assert case.asked == 3


def test_memory_is_bounded(case: Case) -> None:
    """A session that watches a team for months remembers every alias and process that ever was in it."""
    for number in range(2_000):
        case.files.sightings = {
            f"m{number}": Sighting(Presence(f"t{number}", "idle", T0 * 1_000, 1, "h", "b"))
        }
        case.observer.judge(case.directory, f"m{number}", f"t{number}", PID)
        case.observer.judge(case.directory, f"m{number}", "another", PID)
        case.clock.advance(1)
    assert len(case.observer._sightings) <= 400
    assert len(case.observer._lives) <= 400
    assert len(case.observer._watches) <= 10


# --- hearings -------------------------------------------------------------------------------------


def test_a_hearing_gives_one_verdict_per_operation(case: Case) -> None:
    """A member dies between two guards of one operation, which then contradict each other."""
    hearing = case.observer.hearing(case.directory, [Member()])
    assert hearing("lead", "t1") == "alive"
    case.exit = True
    assert hearing("lead", "t1") == "alive"
    assert case.observer.hearing(case.directory, [Member()])("lead", "t1") == "dead"


def test_a_hearing_says_who_is_undecided(case: Case) -> None:
    """A command that was refused because of an unknown member does not know whom to watch."""
    lead, gone = Member(), Member("gone", "t7")
    hearing = case.observer.hearing(case.directory, [lead, gone, Member("unasked", "t8")])
    assert not hearing.undecided
    assert hearing("lead", "t1") == "alive"
    assert hearing("gone", "t7") == "unknown"
    assert hearing.undecided == (gone,)


def test_a_pair_that_is_no_member_is_unknown(case: Case) -> None:
    """An old token of an alias is judged by the process of the alias's present member."""
    hearing = case.observer.hearing(case.directory, [Member()])
    case.exit = True
    assert hearing("lead", "t0") == "unknown"
    assert hearing("lead", "t1") == "dead"


# --- the watch of a command -----------------------------------------------------------------------


def watch(case: Case) -> tuple[Verdict, float]:
    began = case.clock.run_time
    verdicts = case.observer.watch(case.directory, [Member()])
    return verdicts["lead", "t1"], case.clock.run_time - began


@pytest.mark.parametrize(("exit_", "verdict"), [(True, "dead"), (False, "alive")])
def test_a_watch_ends_when_everybody_is_known(case: Case, verdict: Verdict, *, exit_: bool) -> None:
    """A command waits four seconds for what it knows already."""
    case.exit = exit_
    assert watch(case) == (verdict, 0)


@pytest.mark.parametrize(
    "absent", [no_file, another_token, lambda case: case.beat(age=60)], ids=["missing", "another's", "old"]
)
def test_a_command_that_has_watched_judges_as_a_session(case: Case, absent: Callable[[Case], None]) -> None:
    """A command can never take over an alias of which no process is known to have exited."""
    absent(case)
    assert case.judge() == "unknown"
    verdict, took = watch(case)
    assert verdict == "dead"
    assert 4 <= took <= 5
    assert case.judge() == "dead", "in the operation that it repeats"
    case.clock.advance(60)
    assert case.judge() == "unknown", "not for ever"


def test_who_beats_during_the_watch_is_alive(case: Case) -> None:
    """A command that starts as the lid opens watches, and sweeps those that were about to beat."""
    case.beat(age=60)
    sleeps: list[None] = []

    def others_wake() -> None:
        sleeps.append(None)
        if len(sleeps) == 4:
            case.beat()

    case.clock.on_sleep = others_wake
    assert watch(case) == ("alive", 2.0)


def test_a_pause_begins_the_watch_again(case: Case) -> None:
    """The lid closes while a command watches: the time asleep counts as watching."""
    case.beat(age=60)
    sleeps: list[None] = []

    def lid() -> None:
        sleeps.append(None)
        if len(sleeps) == 7:
            suspended(case.clock)

    case.clock.on_sleep = lid
    verdict, took = watch(case)
    assert verdict == "dead"
    assert 3.5 + 60 + 4 <= took <= 3.5 + 60 + 5


def test_a_watch_that_cannot_look_ends(case: Case) -> None:
    """A command without descriptors, or whose member only an older peer's pid tells, hangs."""
    case.files.sightings["lead"] = UNREADABLE
    verdict, took = watch(case)
    assert verdict == "unknown"
    assert took <= 6

"""The real publication code under every schedule: it holds, and the search itself can be trusted.

The counts are pinned: they change where the code makes other calls, and then deliberately.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

import configurations
import damage
import further_controls
import replay
import scenarios
from configurations import ORDINARY, THOROUGH
from explorer import Explorer, Report
from length import LONG
from pi_team.record.attempt import Attempt, Conflict
from pi_team.record.reading import slot_name
from replay import DriftError

if TYPE_CHECKING:
    from system import Scenario

pytestmark = pytest.mark.slow  # builds, explores or measures for seconds

SMALLEST = attrs.evolve(scenarios.writers(2, 1, bound=2), cuts=False, crashes=0)
QUICK = 2_500
"""States, above which a scenario is for the full suite."""
STATES = {
    "2 writers, 1 each": 2_087,
    "2 writers, 2 each": 37_267,
    "3 writers, 1 each": 100_630,
    "2 writers, 1 each, EIO once": 16_760,
    "1 writer, 1 each, and 2 looks": 1_011,
    "2 writers, 1 and 2, 1 kept": 11_699,
    "1 writer, 2, older peer's slot": 32,
    "2 writers, 1 each, adopting": 6_695,
    "2 writers, 1 each, skipping": 2_707,
    "1 writer, and a rename": 3_840,
    "1 writer, delete and create": 2_840,
    "delete, create and join, 2 heartbeats and a leave": 15_325,
    "a rename, 2 heartbeats and a leave": 1_377,
    "1 writer, 1, and a revision restored": 4_896,
    "1 writer, 1, a damaged record restored": 5_893,
    "2 writers, 1 each, cut twice": 2_087,
}


def holds(scenario: Scenario) -> Report:
    """Explore; a violation is shown as a schedule to be copied into a test."""
    report = Explorer(scenario).run()
    if report.found is not None:
        found = replay.shrunk(scenario, report.found)
        pytest.fail(f"{found.text}\n" + "\n".join(replay.story(scenario, found)))
    return report


def marked(scenario: Scenario) -> object:
    """A parameter, in the full suite only where it takes its time."""
    slow = STATES.get(scenario.name, QUICK) >= QUICK
    return pytest.param(
        scenario, id=scenario.name, marks=[pytest.mark.slow, pytest.mark.timeout(3600)] * slow
    )


WANTED = ORDINARY + (THOROUGH if LONG else ())


@pytest.mark.parametrize("scenario", [marked(scenario) for scenario in WANTED])
def test_every_schedule_keeps_every_invariant(scenario: Scenario) -> None:
    """All schedules within the bound, crashes at every call, every disk after a power cut at every call."""
    states = holds(scenario).states
    if scenario in ORDINARY:
        assert states == STATES[scenario.name]


def test_visiting_states_once_loses_no_schedule() -> None:
    """Every schedule run to its end, none cut short: the same final states, and as many as were counted."""
    pruned = holds(SMALLEST)
    every = Explorer(SMALLEST, prune=False).run()
    assert every.found is None
    assert every.ends == pruned.ends
    assert every.schedules == pruned.schedules == 162
    assert every.states > 3 * pruned.states


def test_running_silent_calls_at_once_loses_no_end() -> None:
    """A switch before each call, also those that commute with all others: the same final states."""
    scenario = attrs.evolve(SMALLEST, bound=None)
    reduced = holds(scenario)
    full = holds(attrs.evolve(scenario, reduce=False))
    assert full.ends == reduced.ends
    assert full.states > 5 * reduced.states


def test_code_is_run_once_for_each_new_answer() -> None:
    """Two writers conflict, help and crash in some hundred ways; that is how often the code has to run."""
    report = holds(SMALLEST)
    assert report.runs < report.schedules
    assert len(report.ends) > 1


def without_the_look(monkeypatch: pytest.MonkeyPatch) -> Scenario:
    """Step 7 taken out of the code, and where that shows."""
    monkeypatch.setattr(Attempt, "verify", lambda _: True)
    return attrs.evolve(scenarios.pruning(2), cuts=False)


BACK = [
    "a until fsync .a1.a.tmp",
    "b until unlink 2.json",
    "a until rename .a1.a.tmp -> state.json",
]


def test_failing_schedule_is_replayed_from_its_print(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a search prints is what a test copies: the shortest way to see it, found and replayed."""
    scenario = without_the_look(monkeypatch)
    report = Explorer(scenario).run()
    assert report.found is not None
    found = replay.shrunk(scenario, report.found)
    assert replay.story(scenario, found) == BACK
    violation = replay.replay(scenario, BACK)
    assert violation is not None
    assert violation.invariant == found.invariant == "Chain"


def test_same_schedule_breaks_nothing_with_the_rule() -> None:
    """The schedule of the test before, on the code as it is: the late link is taken back."""
    scenario = attrs.evolve(scenarios.pruning(2), cuts=False)
    lines = [*BACK[:2], "a until unlink .a1.a.tmp", replay.STOPPED]
    assert replay.replay(scenario, lines) is None


def test_power_cut_is_replayed() -> None:
    """A schedule may end in a power cut that says what it took; here of an acknowledged write."""
    lines = [
        "a until rename .a1.a.tmp -> state.json",
        "the power fails: state.json is still .planted-2.planter.tmp",
    ]
    assert replay.replay(scenarios.writers(2, 1), lines) is None


def test_what_only_a_second_power_cut_shows_is_found_and_replayed() -> None:
    """Who comes after a power cut does without step 6: one cut shows nothing, two do."""
    control = next(one for one in further_controls.CONTROLS if one.name == "fresh-without-step-6")
    with control.dropped():
        scenario = control.scenario()
        assert Explorer(attrs.evolve(scenario, again=None, bound=1)).run().found is None
        report = Explorer(scenario).run()
        assert report.found is not None
        lines = replay.story(scenario, replay.shrunk(scenario, report.found))
        assert lines[-1].startswith("a fresh process until ")
        violation = replay.replay(scenario, lines)
    assert violation is not None
    assert violation.invariant == control.invariant
    assert replay.replay(control.scenario(), lines[:-1]) is None


TWO_RESTORE = [
    "d until rename .junk -> state.json",
    "r until stat state.json for the 2th time",
    "s until stat state.json.damaged-3",
    "r until rename .r1.r.tmp -> state.json",
    "s until open_read 4.json",
    "a until rename .a1.a.tmp -> state.json",
    "s until unlink 4.json",
    "the power fails: state.json is still .r1.r.tmp",
]


def withdraw(self: Attempt) -> bool:
    """Step 7 as it once was for a recovery: where the record is another one, its slot is taken back."""
    if self._unchanged():
        return True
    team = self._team
    if self._holder() == self._id:
        team.fs.unlink(slot_name(self._slot), team.revisions_fd)
    team.fs.unlink(self._private, team.revisions_fd)
    raise Conflict


def test_second_of_two_recoveries_leaves_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both locks were taken away from it, and the first has restored the record, on which a writer goes on.

    The writer has installed the second's slot and built on it. If the second took that slot back, a power cut
    that puts the record back would leave what the writer published without a parent.
    """
    scenario = damage.damaging(3, restorers=2)
    kept = [*TWO_RESTORE[:4], "s until stat .s1.s.tmp", TWO_RESTORE[5], TWO_RESTORE[-1]]
    assert replay.replay(scenario, kept) is None
    monkeypatch.setattr(Attempt, "verify", withdraw)
    violation = replay.replay(scenario, TWO_RESTORE)
    assert violation is not None
    assert violation.invariant == "Shown"


@pytest.mark.parametrize("line", ["a until mkdir nowhere", "a does something"])
def test_schedule_that_the_code_does_not_follow_is_an_error(line: str) -> None:
    """A call that is never made any longer: the replay says so, and does not pass."""
    with pytest.raises(DriftError):
        replay.replay(SMALLEST, [line])


def test_every_configuration_has_a_name_of_its_own() -> None:
    """The table can be read, and the pinned counts are of the ordinary run."""
    names = [(scenario.name, scenario.bound) for scenario in configurations.ORDINARY + THOROUGH]
    assert len(set(names)) == len(names)
    assert {scenario.name for scenario in ORDINARY} == set(STATES)

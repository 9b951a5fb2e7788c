"""Each public operation is killed, stopped and refused at each system call that it makes.

`python tests/crash/run.py` does the same and prints the numbers. With `PI_TEAM_TESTS=long` every cell is
carried out, and the soak is one of ten thousand kills.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final

import attrs
import pytest

import campaign
import pi_team
import recipes
from interposition import UnsyncedFileSystem
from length import LONG
from pi_team.clocks import SystemClock
from pi_team.mailbox import Mailbox
from pi_team.record.filesystem import FileSystem, OsFileSystem
from pi_team.watching import Changes
from tapped import Plan, Tap, port_methods

if TYPE_CHECKING:
    from campaign import Report
    from grounds import Kind

SEED: Final = "1"
PAIRS: Final = recipes.pairs(full=LONG)
IDS: Final = [f"{name} on {kind} teams" for name, kind in PAIRS]
SHARES: Final = 4
"""Tests over which the stops are spread, so that they run side by side."""
SLOW: Final = pytest.mark.timeout(7_200 if LONG else 600)


def sound(report: Report) -> None:
    """Show the numbers, and fail with all that went wrong."""
    print(report)
    assert report.failures == []
    assert report.cells > 0


# --- what is in it --------------------------------------------------------------------------------


def test_every_public_operation_has_a_recipe() -> None:
    """An operation that is added to the mailbox is not left out because nobody thought of it."""
    assert recipes.missing(Mailbox) == set()


def test_operation_without_a_recipe_would_be_noticed() -> None:
    """Control: a mailbox with one method more."""

    class Larger(Mailbox):
        def forward(self) -> None:
            """Has no recipe."""

    assert recipes.missing(Larger) == {"forward"}


def test_nothing_else_that_is_public_writes() -> None:
    """All other public names are values, errors, the ports themselves, or the watch of a mailbox."""
    services = set()
    for name in pi_team.__all__:
        public = getattr(pi_team, name)
        if inspect.isclass(public) and not (
            attrs.has(public) or issubclass(public, Exception) or getattr(public, "_is_protocol", False)
        ):
            services.add(public)
    assert services == {Mailbox, Changes, SystemClock, OsFileSystem}


@pytest.mark.slow
def test_every_call_of_the_port_is_in_the_matrix() -> None:
    """A call that is added to the port comes up in some operation, or this says that none makes it."""
    workers = campaign.shared()
    found = {point.method for pair in recipes.pairs() for point in workers.points(*pair)}
    assert set(port_methods(FileSystem)) - found == set()


def test_call_that_is_added_to_the_port_is_tapped() -> None:
    """Control: a port with one call more, of which nothing here knows."""

    class LargerPort(FileSystem):
        def exchange(self, source: str, target: str) -> None:
            """Is listed nowhere."""

    class Larger(UnsyncedFileSystem):
        def exchange(self, source: str, target: str) -> None:
            done.append((source, target))

    done: list[tuple[str, str]] = []
    tap = Tap(Plan("fail", 2))
    port = tap.port(Larger(), LargerPort)
    tap.is_open = True
    port.exchange("a", target="b")  # type: ignore[attr-defined] # it is made at run time
    with pytest.raises(OSError, match="Input/output"):
        port.exchange("c", "d")  # type: ignore[attr-defined] # as above
    assert [str(point) for point in tap.points] == ["exchange a -> b", "exchange c -> d: EIO"]
    assert done == [("a", "b")]


def test_second_publication_of_an_operation_is_followed_like_its_first() -> None:
    """A rename that first completes what was lost: its own syncs were once taken for those of pruning."""
    points = campaign.shared().points("rename myself", "lost")
    synced = [point.step for point in points if point.method == "fsync"]
    assert synced == ["2 help", *(2 * ["4 private file", "6 sync the link"])]


# --- its cells ------------------------------------------------------------------------------------


@pytest.mark.slow
@SLOW
@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_killed_at_each_call(pair: tuple[str, Kind]) -> None:
    """It happened or did not, as its link says; the next one writes; `doctor` is content after a sweep."""
    sound(campaign.kills(campaign.shared(), [pair], full=LONG))


@pytest.mark.slow
@SLOW
@pytest.mark.parametrize("share", range(SHARES))
def test_stopped_at_a_call_while_others_write_on(share: int) -> None:
    """Its locks are taken from it, 44 revisions are written, its slot is used again, and it wakes up."""
    most = None if LONG else campaign.STOPS // SHARES
    sound(campaign.stops(campaign.shared(), PAIRS[share::SHARES], seed=SEED, most=most))


@pytest.mark.slow
@SLOW
@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_refused_at_each_call(pair: tuple[str, Kind]) -> None:
    """Full, read-only, out of descriptors, out of order: all, nothing, or said to be unknown.

    What could not be synced is not acknowledged, nor synced again by the same descriptor.
    """
    sound(campaign.errors(campaign.shared(), [pair], every=[pair] if LONG else ()))


@pytest.mark.slow
@SLOW
def test_random_kills_of_contending_processes() -> None:
    """Nothing that was acknowledged is lost or doubled, and nobody waits for the dead for long."""
    number = campaign.FULL_KILLS if LONG else campaign.KILLS
    report = campaign.soak(campaign.shared(), seed=SEED, number=number)
    print(report)
    assert report["failures"] == []
    assert report["kills"] == number
    assert report["linked"] > 0


# --- that it would tell ---------------------------------------------------------------------------


def place(method: str, kind: Kind) -> int:
    """The number of that call in a sender's own publication."""
    points = campaign.shared().points("send", kind)
    return next(
        nth
        for nth, point in enumerate(points, 1)
        if (point.method, point.step[0]) in {("link", "5"), ("rename", "8"), ("fsync", "4")}
        and point.method == method
    )


@pytest.mark.slow
def test_kill_would_be_noticed() -> None:
    """Control: where nobody helps, a writer killed between its link and its rename blocks the team."""
    noticed = campaign.control(
        campaign.shared(), ("send", "plain"), Plan("kill", place("rename", "plain")), ("", "helping")
    )
    assert "waited 0.5 s for other writers" in noticed


@pytest.mark.slow
def test_stop_would_be_noticed() -> None:
    """Control: without the look after the link, a writer that slept before its link puts the record back."""
    rule = "the look after the link"
    plan = Plan("stop", place("link", "long"))
    assert campaign.control(campaign.shared(), ("send", "long"), plan, ("", "")) == ""
    noticed = campaign.control(campaign.shared(), ("send", "long"), plan, (rule, ""))
    assert noticed == "the record was put back"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "noticed"),
    [("the sync of the file", "done although fsync"), ("one sync a descriptor", "repeated on the same")],
)
def test_sync_that_failed_would_be_noticed(rule: str, noticed: str) -> None:
    """Control: a writer that goes on although its file could not be synced, and one that tries once more."""
    plan = Plan("fail", place("fsync", "plain"))
    assert noticed in campaign.control(campaign.shared(), ("send", "plain"), plan, (rule, ""))

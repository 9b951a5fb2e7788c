"""The benchmarks run, refuse what cannot be measured, and compare with what they say they compare with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from bench import machine, run, sends
from bench.figures import Figure, percentile
from bench.floor import Floor
from bench.machine import Mount, Unmeasurable

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow  # builds, explores or measures for seconds

DISK = Mount("/", "ext4", "/dev/vda", "rw")
MEMORY = Mount("/media", "tmpfs", "tmpfs", "rw")


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run of every benchmark at a tiny size, as a user starts it."""
    command = [sys.executable, os.path.join(run.ROOT, "bench", "run.py"), "--smoke", "--json", "--dir"]
    path = tmp_path_factory.mktemp("bench")
    finished = subprocess.run([*command, str(path)], capture_output=True, text=True, check=True)
    assert os.listdir(path) == []
    value: dict[str, Any] = json.loads(finished.stdout)
    return value


@pytest.mark.parametrize(
    "target",
    [
        "ratio to SQLite",
        "time per send and message",
        "ratio to one process",
        "p99",
        "refused as BUSY",
        "unchanged record",
        "p50 until it is in the recipient's snapshot",
        "p99 until it is in the recipient's snapshot",
        "import pi_team",
        "pi-team --version",
    ],
)
def test_every_target_is_judged(smoke: dict[str, Any], target: str) -> None:
    """A benchmark that stops printing a figure of the table would go unnoticed otherwise."""
    judged = [
        figure for figure in smoke["figures"] if target in figure["label"] and figure["met"] is not None
    ]
    assert judged
    assert all(isinstance(figure["value"], int | float) for figure in judged)


def test_a_run_says_where_it_was_measured(smoke: dict[str, Any]) -> None:
    """Figures without their file system and its fsync time mean nothing."""
    facts = smoke["file_system"]
    assert facts["kind"]
    assert facts["file_sync"] > 0
    assert facts["directory_sync"] > 0
    assert any(line.startswith("libraries") for line in smoke["machine"])


@pytest.mark.parametrize(
    ("mounted", "said"),
    [
        ([DISK, MEMORY], "tmpfs"),
        ([Mount("/", "overlay", "overlay", "rw,upperdir=/up,volatile")], "volatile"),
        ([Mount("/", "overlay", "overlay", "rw,upperdir=/dev"), Mount("/dev", "tmpfs", "t", "")], "/dev"),
    ],
    ids=["in memory", "volatile overlay", "overlay on memory"],
)
def test_a_file_system_that_does_not_sync_is_refused(mounted: list[Mount], said: str) -> None:
    """Where fsync costs nothing, a durable send seems to cost nothing as well."""
    with pytest.raises(Unmeasurable, match=said) as refused:
        machine.require_syncing("/media/x", mounted)
    assert "--dir" in str(refused.value)


def test_a_disk_below_a_directory_in_memory_counts_as_a_disk() -> None:
    """The deepest mount decides, and not one that merely has a name like it."""
    there = Mount("/media/x", "xfs", "/dev/vdb", "rw")
    assert machine.require_syncing("/media/x/y", [DISK, MEMORY, there]) is there
    assert machine.require_syncing("/mediafile", [DISK, MEMORY]) is DISK


@pytest.mark.parametrize(
    ("journals", "expected"), [(["vda-8"], True), (["vdb-8"], False), (None, False)], ids=str
)
def test_an_ext4_without_a_journal_is_told_from_one_with(
    tmp_path: Path, journals: list[str] | None, *, expected: bool
) -> None:
    """An fsync costs much less without one, and whoever reads the figures would not know why."""
    (tmp_path / "ext4" / "vda").mkdir(parents=True)
    for journal in journals or ():
        (tmp_path / "jbd2" / journal).mkdir(parents=True)
    assert machine.has_journal(DISK, str(tmp_path)) is expected
    assert machine.has_journal(MEMORY, str(tmp_path)) is None
    assert machine.has_journal(Mount("/", "ext4", "/dev/vdc", "rw"), str(tmp_path)) is None


def test_a_run_that_cannot_measure_says_so_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 1 is for this alone."""
    assert run.main(["--only", "start", "--dir", str(tmp_path / "absent")]) == 1
    assert "cannot measure" in capsys.readouterr().err


def test_the_floor_makes_the_calls_of_a_send_and_leaves_what_a_send_leaves(tmp_path: Path) -> None:
    """The floor is honest only if its calls take effect: new slots, another record, nothing left over."""
    floor = Floor(str(tmp_path), messages=2, period=2, history=3)
    methods = [call.method for call in floor.example.calls]
    assert [methods.count(method) for method in ("fsync", "link", "rename")] == [2, 1, 1]
    assert [floor.example.source.count(f"{call}('crew.lock'") for call in ("create", "unlink")] == [1, 1]
    team = tmp_path / "crew"
    before = {path.name for path in (team / "revisions").iterdir()}
    record = os.stat(team / "state.json").st_ino
    floor.once()
    assert {path.name for path in (team / "revisions").iterdir()} - before == {
        f"{len(before) + 1}.json",
        f"{len(before) + 2}.json",
    }
    assert os.stat(team / "state.json").st_ino != record
    assert not list(team.glob("*.lock"))
    assert not list((tmp_path / ".locks").iterdir())


def test_a_measured_send_leaves_the_record_at_its_size(tmp_path: Path) -> None:
    """Otherwise the rate for ten messages is one for dozens."""
    ours = sends.Ours(str(tmp_path), messages=4, history=0)
    ours.once()
    size = ours.record_bytes
    ours.once()
    assert abs(ours.record_bytes - size) < 10
    ours.close()


def test_each_commit_of_the_data_base_writes_all_pages(tmp_path: Path) -> None:
    """SQLite leaves a page alone whose bytes do not change, and would win for nothing."""
    base = sends.Sqlite(str(tmp_path / "base.db"), 50_000)
    log = tmp_path / "base.db-wal"
    before = log.stat().st_size
    base.once()
    assert log.stat().st_size - before >= 50_000
    base.close()


def test_the_figures_in_the_readme_are_replaced_by_those_of_a_run() -> None:
    """`--write` replaces the marked block and nothing else."""
    with open(run.README, encoding="utf-8") as file:
        text = file.read()
    head, tail = text.split(run.BEGIN)[0], text.split(run.END)[1]
    assert run.with_block(text, r"new \1 figures") == (
        f"{head}{run.BEGIN}\n\n```text\nnew \\1 figures\n```\n\n{run.END}{tail}"
    )
    with pytest.raises(Unmeasurable):
        run.with_block("no marks", "")


def test_a_figure_is_judged_by_its_target() -> None:
    """More is better for a rate, less for a time; without a target nothing is judged."""
    assert Figure("s", "l", 0.6, at_least=0.6).met is True
    assert Figure("s", "l", 0.59, at_least=0.6).met is False
    assert Figure("s", "l", 5.0, below=5.0).met is False
    assert Figure("s", "l", 5.0).met is None
    assert "NOT MET" in str(Figure("s", "l", 5.0, below=5.0))


def test_a_percentile_is_one_of_the_values() -> None:
    """Nearest rank: of 200 values the 99th percentile is the 198th, of 25 the largest."""
    assert percentile(range(1, 201), 99) == 198
    assert percentile(range(1, 26), 99) == 25
    assert percentile([7.0], 50) == 7.0

"""Every system call of a publication refused in turn: clean before the link, nothing lost after it."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from cut_short import each_call
from interposition import CHANGING, REFUSALS, Killed
from pi_team.errors import LimitRecord, OutcomeUnknown, StorageError, UnsupportedFilesystem
from pi_team.record import publication
from worlds import World, Writer, appending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from interposition import Call, Point

SLOT = ".*.tmp -> *.json"
INSTALL = ".*.tmp -> state.json"
KEPT = 2
PENDING = ("r1", "r2", "r3", "r4", "r5", "pending")


def renew(world: World, start: str) -> None:
    """A team at a point from which a publication also prunes, or first helps or adopts what is pending."""
    world.clear()
    world.plant(5)
    if start != "settled":
        world.plant_pending(6, PENDING, "pending", private=start == "helping")


def points(world: World, start: str) -> Iterator[tuple[int, Call, bool, str]]:
    """As :func:`each_call`, for one publication, with whether the link has taken effect before the call."""
    calls = each_call(world, lambda anew: renew(anew, start), lambda writer: writer.append("x"))
    linked = False
    for index, call, where in calls:
        yield index, call, linked, where
        linked = linked or call.method == "link"


@pytest.fixture
def world(root: Path) -> World:
    return World(str(root), kept=KEPT)


def outcome(writer: Writer, fail: Callable[[Point], object], index: int) -> type[BaseException] | None:
    """Append with a fault at one call; the class of the error, or None where it succeeded."""
    point = writer.fs.at_call(index)
    fail(point)
    try:
        writer.append("item")
    except (StorageError, OutcomeUnknown) as error:
        return type(error)
    finally:
        assert point.reached
        assert writer.fs.open_names == {}, "a descriptor was leaked"
    return None


@pytest.mark.parametrize(
    ("code", "start"),
    [*((code, "settled") for code in REFUSALS), (errno.EIO, "helping"), (errno.EIO, "adopting")],
    ids=lambda value: value if isinstance(value, str) else errno.errorcode[value],
)
def test_each_call_refused(world: World, code: int, start: str) -> None:
    """A refusal before the link leaves everything as it was, to the byte; after it the item is there once."""
    for index, _, linked, where in points(world, start):
        before = world.photograph()
        error = outcome(world.writer(), lambda point: point.fail(code), index)
        if not linked:
            # Helping may have taken effect by then, and is no part of this operation.
            assert error in (StorageError, None), where
            if error is StorageError:
                assert world.photograph() == before or helped(world, start), where
                assert "item" not in world.items(), where
                assert all("pending" in name for name in world.state().privates), where
        else:
            assert error in (OutcomeUnknown, None), where
        world.writer("next").append("next")
        assert world.items().count("item") == (error is not StorageError), where
        assert world.items()[-1] == "next", where
        assert world.items().count("pending") == (start != "settled"), where
        assert world.state().privates == (), where


def helped(world: World, start: str) -> bool:
    """Whether what was pending, and nothing else, has been installed."""
    return start == "helping" and world.items() == PENDING


@pytest.mark.parametrize("start", ["settled", "helping", "adopting"])
def test_each_call_fails_although_it_took_effect(world: World, start: str) -> None:
    """Performed, and reported as EIO: never lost where it succeeded, never there where it was refused."""
    for index, call, linked, where in points(world, start):
        if call.method not in CHANGING:
            continue
        error = outcome(world.writer(), lambda point: point.fail_after(errno.EIO), index)
        if linked or call.method == "link":
            assert error in (OutcomeUnknown, None), where
        else:
            assert error in (StorageError, None), where
        assert world.state().privates == () or error is OutcomeUnknown or start == "helping", where
        world.writer("next").append("next")
        assert world.items().count("item") == (error is not StorageError), where
        assert world.items()[-1] == "next", where
        assert world.state().privates == (), where


def test_publication_that_is_cut_short_here_also_prunes(world: World) -> None:
    """The calls above are those of all nine steps."""
    renew(world, "settled")
    writer = world.writer()
    writer.append("x")
    assert writer.fs.names("unlink", "*.json")


def test_link_that_fails_although_it_took_effect_is_a_success(world: World) -> None:
    """EIO, EEXIST or EINTR of a link that is there: the slot bears this publication's id, so it goes on."""
    for code in (errno.EIO, errno.EEXIST, errno.EINTR):
        renew(world, "settled")
        writer = world.writer()
        writer.fs.at("link", SLOT).fail_after(code)
        assert writer.append("item").revision == 6
        assert world.items()[-1] == "item"


def failing_after(then: Callable[[], object]) -> Callable[[Callable[[], None]], None]:
    """An action: the call takes effect, then something happens, and it reports EIO all the same."""

    def action(perform: Callable[[], None]) -> None:
        perform()
        then()
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    return action


def test_link_that_fails_and_cannot_be_looked_at_is_unknown(world: World) -> None:
    """Where the slot cannot be read after a failed link nobody knows; the private file stays."""
    renew(world, "settled")
    fs = (writer := world.writer()).fs
    fs.at("link", SLOT).action = failing_after(lambda: fs.at("open_read", "6.json").fail(errno.EMFILE))
    with pytest.raises(OutcomeUnknown):
        writer.append("item")
    world.writer("next").append("next")
    assert world.items()[-2:] == ("item", "next")


def test_link_that_fails_although_it_took_effect_and_others_went_on(world: World) -> None:
    """It slept before it looked: its publication was installed, and its slot pruned and free again."""
    renew(world, "settled")
    writer, other = world.writer(), world.writer("other")
    writer.fs.at("link", SLOT).action = failing_after(lambda: other.append_many(2 * KEPT + 2, "o"))
    assert writer.append("item").revision == 6
    assert 6 not in world.state().slots
    assert world.items().count("item") == 1


def test_rename_that_fails_although_it_took_effect_is_a_success(world: World) -> None:
    """The record bears this publication's id."""
    renew(world, "settled")
    writer = world.writer()
    writer.fs.at("rename", INSTALL).fail_after(errno.EIO)
    assert writer.append("item").revision == 6
    assert world.items()[-1] == "item"


def test_rename_that_fails_although_it_took_effect_and_others_went_on(world: World) -> None:
    """The record is beyond this publication when it is looked at: the private file is gone, so it is in."""
    renew(world, "settled")
    writer, other = world.writer(), world.writer("other")
    writer.fs.at("rename", INSTALL).action = failing_after(lambda: other.append("other"))
    assert writer.append("item").revision == 6
    assert world.items()[-2:] == ("item", "other")


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS])
def test_file_system_without_hard_links(world: World, code: int) -> None:
    """It is named as the reason, and nothing is left."""
    renew(world, "settled")
    before = world.photograph()
    writer = world.writer()
    writer.fs.at("link", SLOT).fail(code)
    with pytest.raises(UnsupportedFilesystem):
        writer.append("item")
    assert world.photograph() == before


def test_failed_fsync_is_not_retried(world: World) -> None:
    """After a failed fsync the kernel may have dropped the pages, and a second one on that file would lie."""
    for index, call, *_ in points(world, "helping"):
        if call.method != "fsync":
            continue
        writer = world.writer()
        outcome(writer, lambda point: point.fail(errno.EIO), index)
        assert f"fsync {call.name}" not in [str(later) for later in writer.fs.calls[index + 1 :]]


@pytest.mark.parametrize("longest", [1, 7, 64])
def test_short_writes(world: World, longest: int) -> None:
    """A file system that takes a few bytes at a time still gets the whole record."""
    renew(world, "settled")
    writer = world.writer()
    writer.fs.longest_write = longest
    writer.append("item")
    assert world.items()[-1] == "item"


@pytest.mark.parametrize("nth", [1, 2, 5])
def test_disk_full_in_the_middle_of_a_record(world: World, nth: int) -> None:
    """Some bytes went in before ENOSPC: the private file is gone again."""
    renew(world, "settled")
    before = world.photograph()
    writer = world.writer()
    writer.fs.longest_write = 40
    writer.fs.at("write", ".*.tmp", nth).fail(errno.ENOSPC)
    with pytest.raises(StorageError, match="the disk is full"):
        writer.append("item")
    assert world.photograph() == before


def test_write_that_takes_nothing(world: World) -> None:
    """A write of zero bytes is an error and not an endless loop."""
    renew(world, "settled")
    before = world.photograph()
    writer = world.writer()
    writer.fs.longest_write = 0
    with pytest.raises(StorageError):
        writer.append("item")
    assert world.photograph() == before


def test_record_at_the_size_limit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record of exactly the limit is written; one byte more is refused before anything is."""
    renew(world, "settled")
    writer = world.writer()
    writer.append("")
    writer.append("")  # from here on a record grows by its item alone
    size = os.path.getsize(world.record()) + len(',""')
    monkeypatch.setattr(publication, "RECORD_BYTES", size + 10)
    before = world.photograph()
    with pytest.raises(LimitRecord):
        writer.append("x" * 11)
    assert world.photograph() == before
    writer.append("x" * 10)
    assert os.path.getsize(world.record()) == size + 10


@pytest.mark.parametrize("start", ["settled", "helping", "adopting"])
def test_killed_before_each_call(world: World, start: str) -> None:
    """A writer that dies anywhere: what it linked is completed once, and nothing else of it counts."""
    for index, _, linked, where in points(world, start):
        writer = world.writer()
        writer.fs.at_call(index).kill()
        with pytest.raises(Killed):
            writer.append("item")
        world.writer("next").append("next")
        assert world.items().count("item") == linked, where
        assert world.items().count("pending") == (start != "settled"), where
        assert world.items()[-1] == "next", where


def test_interrupted_by_the_user_before_the_link(world: World) -> None:
    """Ctrl-C while the private file is written removes it."""
    renew(world, "settled")
    before = world.photograph()
    for method in ("write", "fsync"):
        writer = world.writer()

        def interrupt() -> None:
            raise KeyboardInterrupt

        writer.fs.at(method, ".*.tmp").before(interrupt)
        with pytest.raises(KeyboardInterrupt):
            writer.append("item")
        assert world.photograph() == before


def test_change_that_refuses(world: World) -> None:
    """An operation that raises writes nothing, and its error comes through."""
    renew(world, "settled")
    before = world.photograph()

    def refuse(_: tuple[str, ...]) -> tuple[str, ...]:
        raise LookupError

    writer = world.writer()
    with pytest.raises(LookupError):
        writer.publish(refuse)
    assert world.photograph() == before
    assert writer.fs.open_names == {}
    assert writer.publish(appending("x")).revision == 6

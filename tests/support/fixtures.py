"""Fixtures that tests of several folders use; their conftest.py names those that it wants."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nursery as nurseries
from worlds import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nursery import Nursery

_MEMORY = (
    "/dev/shm"  # what is shown here does not depend on a disk, and thousands of cases are faster without
)


@pytest.fixture
def root() -> Iterator[Path]:
    """An empty directory, in memory where the system has a file system there."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if os.path.isdir(_MEMORY) else None) as path:
        yield Path(path)


@pytest.fixture
def public_path() -> Iterator[Path]:
    """An empty directory that every user can get to, as they cannot to those of pytest."""
    with tempfile.TemporaryDirectory() as path:
        os.chmod(path, 0o755)
        yield Path(path)


@pytest.fixture
def world(root: Path) -> World:
    """A teams directory without a team."""
    return World(str(root))


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    """Forks the processes of a test, and ends them after it."""
    nursery = nurseries.shared()
    yield nursery
    nursery.forget()

"""Fixtures of these tests."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from worlds import World

if TYPE_CHECKING:
    from collections.abc import Iterator

_MEMORY = (
    "/dev/shm"  # what is shown here does not depend on a disk, and thousands of cases are faster without
)


@pytest.fixture
def root() -> Iterator[Path]:
    """An empty directory, in memory where the system has a file system there."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if os.path.isdir(_MEMORY) else None) as path:
        yield Path(path)


@pytest.fixture
def world(root: Path) -> World:
    """A teams directory without a team."""
    return World(str(root))

"""The directories that the TypeScript implementation wrote, with their modes, times and hard links."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import nursery

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["beside", "fixtures", "nursery"]

ARCHIVE = Path(__file__).with_name("fixtures.tar.gz")


@pytest.fixture
def fixtures(tmp_path: Path) -> Path:
    """All of them, each a teams directory, with what is beside it."""
    with tarfile.open(ARCHIVE) as archive:
        # Owned by whoever runs the tests, and exactly the modes that are in the archive.
        for member in archive.getmembers():
            member.uid = member.gid = -1
            member.uname = member.gname = ""
        archive.extractall(tmp_path, filter="fully_trusted")
    return tmp_path / "fixtures"


@pytest.fixture
def beside(fixtures: Path) -> Callable[[str], Any]:
    """What is written beside a fixture, as JSON."""

    def read(name: str) -> Any:
        return json.loads((fixtures / name).read_bytes())

    return read

"""Processes and teams of these tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import nursery as nurseries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nursery import Nursery


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    """Forks the processes of a test, and ends them after it."""
    nursery = nurseries.shared()
    yield nursery
    nursery.forget()

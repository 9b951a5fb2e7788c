"""Fixtures of these tests."""

from __future__ import annotations

from fixtures import root, world

__all__ = ["root", "world"]

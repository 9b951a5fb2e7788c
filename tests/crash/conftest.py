"""Fixtures of these tests."""

from __future__ import annotations

from fixtures import nursery

__all__ = ["nursery"]

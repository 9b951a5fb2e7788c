"""Fixtures of these tests."""

from __future__ import annotations

from fixtures import nursery, public_path

__all__ = ["nursery", "public_path"]

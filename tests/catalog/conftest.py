"""Packages, for the tests of where tools come from."""

from __future__ import annotations

from sites import site

__all__ = ["site"]

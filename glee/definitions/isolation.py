"""How a run was really held, as the record says."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Isolation(Struct, frozen=True, kw_only=True):
    level: Literal["full", "reduced", "container", "nsjail", "off", "trusted"]
    """full: every layer. reduced: fewer, and still files and network. trusted: in Glee's own process, by config."""

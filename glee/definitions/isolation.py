"""How a run was really held, as the record says."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Isolation(Struct, frozen=True, kw_only=True):
    level: Literal["full", "reduced", "container", "nsjail", "off", "trusted"]
    """full: every layer. reduced: fewer, and still files and network. trusted: in Glee's own process, by config."""
    limits: Literal["group", "process"] | None = None
    """What bounds memory and processes: a control group for the whole run, or limits for each of its processes."""

    def __str__(self) -> str:
        return f"isolation={self.level}" + (f" limits={self.limits}" if self.limits else "")

"""What one config file says about which tools exist."""

from __future__ import annotations

from msgspec import Struct


class NameRules(Struct, frozen=True, kw_only=True):
    """The `tools:` part of one file. `allow` is None where the file does not speak of it."""

    source: str
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()

"""A server, for attempts that need somebody to talk to."""

from __future__ import annotations

from servers import server

__all__ = ["server"]

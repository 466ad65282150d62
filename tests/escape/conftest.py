"""A server, for attempts that need somebody to talk to."""

from __future__ import annotations

from servers import authority, secure_server, server

__all__ = ["authority", "secure_server", "server"]

"""The servers, for every test of a runner."""

from __future__ import annotations

from servers import authority, secure_server, server

__all__ = ["authority", "secure_server", "server"]

"""The servers, for every test of the way out."""

from __future__ import annotations

from jails import make_far, make_proxy
from servers import authority, secure_server, server

__all__ = ["authority", "make_far", "make_proxy", "secure_server", "server"]

"""The way out of a run whose network ends at named hosts: what the program is told, and what it must not know."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from typing import Final

from glee.definitions.hosts import is_address, parse_hosts
from glee.definitions.permissions import Hosts
from glee.definitions.tool import Tool
from glee.egress.proxy import Attempt, Gate, Injected, Proxy
from glee.runners.explaining import warn_of
from glee.sandbox.compile import DOOR
from glee.secrets.environment import Secrets

_URL: Final = f"http://127.0.0.1:{DOOR}"
_VARIABLES: Final = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


class WayOut:
    """For one run. Secrets that belong to a host are words without meaning inside; the proxy knows what they mean."""

    def __init__(self, proxy: Proxy, tool: Tool, secrets: Mapping[str, str]) -> None:
        assert isinstance(tool.permissions.network, Hosts)
        self._proxy = proxy
        rules = parse_hosts(tool.permissions.network.hosts)
        trusted = tool.origin.source == "project"  # where a person wrote the manifest, a private address is meant
        self._rules = [rule for rule in rules if trusted or not (is_address(rule.host) or rule.host == "localhost")]
        self._injected = [
            Injected(name=name, value=secrets[name], placeholder=_new_placeholder(name), host=need.host)
            for name, need in tool.permissions.secrets.items()
            if need.host is not None and name in secrets
        ]
        self._gate: Gate | None = None
        self.secrets = Secrets({**secrets, **{one.name: one.placeholder for one in self._injected}})
        """What the program is given."""

    @property
    def environment(self) -> dict[str, str]:
        urls = {f"GLEE_URL_{one.name}": f"{_URL}/to/{one.host}" for one in self._injected}
        return {**dict.fromkeys(_VARIABLES, _URL), "NODE_USE_ENV_PROXY": "1", **urls}

    def open(self, listener: socket.socket) -> None:
        self._gate = self._proxy.open(listener, self._rules, self._injected)

    def close(self) -> None:
        if self._gate is not None:
            self._gate.close()

    @property
    def refused(self) -> list[Attempt]:
        """Whole once it is closed."""
        return self._gate.refused if self._gate is not None else []

    @property
    def reached(self) -> list[tuple[str, int]]:
        return list(self._gate.admitted) if self._gate is not None else []

    def warnings(self) -> tuple[str, ...]:
        """What it was refused, and why hosts could not be reached: a program often tells neither."""
        failures = self._gate.failures if self._gate is not None else ()
        return (*warn_of(self.refused), *(f"the proxy says: {failure}" for failure in failures))


def _new_placeholder(name: str) -> str:
    """It names the secret, so that whoever finds it in a log knows what it stood for."""
    return f"glee-{re.sub('[^a-z0-9]', '-', name.lower())}-{os.urandom(12).hex()}"

"""What one run may reach: judged by its rules, resolved once, and dialled at the address that was checked."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from glee.definitions.hosts import USUAL_PORTS, HostRule, find_rule, parse_authority, to_authority
from glee.definitions.url import Url
from glee.egress.addresses import Resolver, Target
from glee.errors import Blocked, InvalidInput, NetworkFailed, TimedOut

MAX_ATTEMPTS: Final = 100
_SHOWN: Final = 253

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Limits(Struct, frozen=True, kw_only=True):
    """What one run may take of the proxy. The bytes it sends and receives are not counted."""

    connections: int = 64
    head_bytes: int = 32_768
    head_seconds: float = 30
    hello_seconds: float = 5
    dial_seconds: float = 30
    idle_seconds: float = 300


class Attempt(Struct, frozen=True, kw_only=True):
    """Something that was refused."""

    host: str
    """As it was asked for; empty where the request could not be read."""
    port: int | None
    reason: str


class Place(Struct, frozen=True):
    """A host and port that the rules permit."""

    host: str
    port: int
    rule: HostRule

    def __str__(self) -> str:
        return to_authority(self.host, self.port)


class Checkpoint:
    def __init__(self, rules: Sequence[HostRule], resolver: Resolver, limits: Limits) -> None:
        self.refused: list[Attempt] = []
        self.admitted: dict[tuple[str, int], None] = {}
        """Hosts and ports that were asked for and may be."""
        self.failures: dict[str, None] = {}
        """Why hosts that may be asked could not be."""
        self.limits = limits
        self._rules = tuple(rules)
        self._resolver = resolver

    def admit(self, authority: str, *, usual_port: int | None = None) -> Place:
        """Where a request may go. Raises Blocked for what is no host, or none that the manifest names."""
        try:
            host, port = parse_authority(authority)
        except ValueError as error:
            raise self.refuse(authority, None, str(error)) from None
        port = port or usual_port
        if port is None:
            raise InvalidInput(f"{authority} has no port; ask for {authority}:443")
        rule = find_rule(self._rules, host, port)
        if rule is None:
            wanted = to_authority(host, None if port in USUAL_PORTS else port)
            raise self.refuse(host, port, f'add "{wanted}" under permissions.network.hosts')
        if len(self.admitted) < MAX_ATTEMPTS:
            self.admitted[host, port] = None
        return Place(host, port, rule)

    def note_failure(self, reason: str) -> None:
        if len(self.failures) < MAX_ATTEMPTS:
            self.failures[reason] = None

    def refuse(self, host: str, port: int | None, reason: str) -> Blocked:
        """The error to raise, once the attempt is on record."""
        shown = ascii(host)[1:-1][:_SHOWN]
        attempt = Attempt(host=shown, port=port, reason=reason)
        if attempt not in self.refused and len(self.refused) < MAX_ATTEMPTS:
            self.refused.append(attempt)
        what = shown if port is None else to_authority(shown, port)
        return Blocked(f"{what or 'the request'} was refused: {reason}")

    async def dial(self, place: Place, context: ssl.SSLContext | None = None) -> Streams:
        """A connection to one of the addresses that were checked."""
        seconds = self.limits.dial_seconds
        try:
            async with asyncio.timeout(seconds):
                targets = await self._resolve(place)
                for target in targets[:-1]:
                    with contextlib.suppress(OSError):
                        return await _connect(target, place, context)
                return await _connect(targets[-1], place, context)
        except OSError as error:  # a TimeoutError is one too
            if isinstance(error, TimeoutError) and error.errno is None:
                raise TimedOut(
                    f"no connection to {place} within {seconds:g} s; check the host and the network"
                ) from error
            raise NetworkFailed(
                f"no connection to {place}: {_explain(error)}; check the host and the network"
            ) from error

    async def _resolve(self, place: Place) -> list[Target]:
        """A private address is trusted if the rule names it, or localhost, and not if a rule only covers it."""
        url = Url(scheme="https", host=place.host, port=place.port)
        try:
            return await self._resolver.resolve(url, literal_trusted=not place.rule.below)
        except Blocked as error:
            raise self.refuse(place.host, place.port, error.message) from error


async def _connect(target: Target, place: Place, context: ssl.SSLContext | None) -> Streams:
    name = place.host if context else None
    return await asyncio.open_connection(target.address, target.port, ssl=context, server_hostname=name)


def _explain(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not believed: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason}"
    return os.strerror(error.errno) if error.errno else type(error).__name__

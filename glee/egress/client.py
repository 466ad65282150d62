"""The one HTTP client: it connects to the address that was checked, follows nothing, and reads up to a limit.

Connections are kept for reuse by scheme, host, port and address together, so that one opened for one
host never carries a request for another. Proxies and other settings of the environment do not count.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import weakref
from collections.abc import Mapping, Sequence

import httpx
from msgspec import Struct

from glee.definitions.url import Url
from glee.egress.addresses import Resolver, Target
from glee.egress.decoding import Overflow, decode_body
from glee.egress.trust import make_context
from glee.errors import NetworkFailed, TimedOut, TooLarge
from glee.version import VERSION

_Key = tuple[str, str, int, str, int]

for _name in ("httpx", "httpcore"):  # they log whole URLs and headers, and a secret may stand in one
    logging.getLogger(_name).setLevel(logging.WARNING)


class Reply(Struct, frozen=True, kw_only=True):
    status: int
    reason: str
    headers: dict[str, str]
    """Lower-case names."""
    body: bytes


class _NotConnected(NetworkFailed):
    """No connection was made, so nothing was sent."""


class HttpClient:
    def __init__(self, *, resolve: Mapping[str, str] | None = None, ca_file: str | None = None) -> None:
        self._resolver = Resolver(resolve)
        self._ca_file = ca_file
        self._ssl: ssl.SSLContext | None = None
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[_Key, httpx.AsyncClient]]
        self._clients = weakref.WeakKeyDictionary()

    async def request(
        self,
        method: str,
        url: Url,
        *,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        timeout: float | None = None,
        max_bytes: int,
        literal_trusted: bool = False,
    ) -> Reply:
        """One request, whole and bounded. Any status is a reply; only a lack of one is an error."""
        try:
            async with asyncio.timeout(timeout):
                targets = await self._resolver.resolve(url, literal_trusted=literal_trusted)
                for target in targets[:-1]:
                    with contextlib.suppress(_NotConnected):  # nothing was sent yet, so the next address is free to try
                        return await self._send(method, url, target, headers, body, max_bytes)
                return await self._send(method, url, targets[-1], headers, body, max_bytes)
        except TimeoutError as error:
            raise TimedOut(
                f"no answer from {url.authority} within {timeout:g} s; try again, or raise timeout_ms",
                details={"host": url.authority, "timeout_ms": round((timeout or 0) * 1000)},
            ) from error

    async def _send(
        self,
        method: str,
        url: Url,
        target: Target,
        headers: Sequence[tuple[str, str]],
        body: bytes | None,
        limit: int,
    ) -> Reply:
        host = f"[{target.address}]" if ":" in target.address else target.address
        given = {name.lower() for name, _ in headers}
        usual = {"host": url.authority, "user-agent": f"glee/{VERSION}", "accept-encoding": "gzip, deflate"}
        request = httpx.Request(
            method,
            f"{url.scheme}://{host}:{target.port}/",
            headers=[
                *((name.encode(), value.encode()) for name, value in usual.items() if name not in given),
                *((name.encode(), value.encode()) for name, value in headers),
            ],
            content=body,
            extensions={"target": url.target.encode(), "sni_hostname": url.host},
        )
        try:
            reply = await self._client(url, target).send(request, stream=True)
            try:
                return await _read(reply, url, limit)
            finally:
                await reply.aclose()
        except httpx.RequestError as error:
            text = str(error) or type(error).__name__
            kind = _NotConnected if isinstance(error, httpx.ConnectError) else NetworkFailed
            raise kind(
                f"the request to {url.authority} failed: {text}; check the host and the network",
                details={"host": url.authority, "status": None},
            ) from error

    def _client(self, url: Url, target: Target) -> httpx.AsyncClient:
        for loop in [loop for loop in self._clients if loop.is_closed()]:
            del self._clients[loop]  # its connections hold on to the loop, which would keep both for ever
        clients = self._clients.setdefault(asyncio.get_running_loop(), {})
        key = (url.scheme, url.host, url.port, target.address, target.port)
        client = clients.get(key)
        if client is None:
            client = clients[key] = httpx.AsyncClient(
                verify=self._context() if url.scheme == "https" else False,
                trust_env=False,
                timeout=None,  # noqa: S113 the whole request is timed, resolving included
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=8, keepalive_expiry=30),
            )
        return client

    def _context(self) -> ssl.SSLContext:
        if self._ssl is None:
            self._ssl = make_context(self._ca_file)
        return self._ssl

    async def close(self) -> None:
        """Closes the connections of the running loop."""
        for client in self._clients.pop(asyncio.get_running_loop(), {}).values():
            await client.aclose()


async def _read(reply: httpx.Response, url: Url, limit: int) -> Reply:
    raw = bytearray()
    try:
        async for chunk in reply.aiter_raw():
            raw += chunk
            if len(raw) > limit:
                raise Overflow
        body = decode_body(bytes(raw), reply.headers.get("content-encoding", ""), limit)
    except Overflow:
        raise TooLarge(
            f"the response of {url.authority} has more than {limit:,} bytes; ask for less, "
            "or raise limits.output_bytes in your config",
            details={"limit": limit, "status": reply.status_code},
        ) from None
    except ValueError as error:
        raise NetworkFailed(
            f"the response of {url.authority} cannot be read: {error}",
            details={"host": url.authority, "status": reply.status_code},
        ) from error
    return Reply(
        status=reply.status_code,
        reason=reply.reason_phrase,
        headers={name.lower(): value for name, value in reply.headers.items()},
        body=body,
    )

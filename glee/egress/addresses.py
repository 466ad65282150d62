"""Which address a host name may lead to: a public one, or one that a person wrote down themselves."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from glee.definitions.url import Url, parse_address
from glee.errors import Blocked, NetworkFailed

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Target(Struct, frozen=True):
    """What was checked, and therefore what is connected to."""

    address: str
    port: int


class Resolver:
    """Host names to checked addresses; `egress.resolve` of the person's config comes first."""

    def __init__(self, mapped: Mapping[str, str] | None = None) -> None:
        self._mapped = {host.lower(): address for host, address in (mapped or {}).items()}

    async def resolve(self, url: Url, *, literal_trusted: bool) -> list[Target]:
        """At least one target, in the order to try them; one address that may not be reached refuses them all.

        `literal_trusted`: the URL's host was written by a person, so a private literal is meant.
        """
        mapped = self._mapped.get(f"{url.host}:{url.port}") or self._mapped.get(url.host)
        if mapped is not None:
            mapped_to, port = parse_address(mapped)
            return [Target(mapped_to, port or url.port)]
        literal = find_literal(url.host)
        if literal is not None:
            if not literal_trusted and not is_public(literal):
                raise Blocked(f"{url.host} is a private address; only a person's own manifest may name one")
            return [Target(str(literal), url.port)]
        local = literal_trusted and (url.host == "localhost" or url.host.endswith(".localhost"))
        addresses = await _look_up("localhost" if local else url.host, url.port)
        for address in addresses:
            if not local and not is_public(address):
                raise Blocked(
                    f"{url.host} leads to the private address {address}; if that is meant, use the address itself, "
                    "or map the host under egress.resolve in your own config",
                    details={"host": url.host, "address": str(address)},
                )
        if not addresses:
            raise NetworkFailed(f"the host {url.host} has no address", details={"host": url.host})
        return [Target(str(address), url.port) for address in dict.fromkeys(addresses)]


def find_literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_public(address: Address) -> bool:
    """False for private, loopback, link-local, shared, reserved and multicast, in IPv6 clothing too."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if inner is None and address in ipaddress.ip_network("64:ff9b::/96"):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address.is_reserved or address.is_site_local:
            return False
    return address.is_global and not address.is_multicast


async def _in_thread(function: Callable[[], Any]) -> Any:
    """In a thread that nobody waits for at the end: a resolver may hang for a minute, and cannot be stopped."""
    import asyncio
    import threading

    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(error: BaseException | None, value: Any) -> None:
        if not future.done():
            future.set_exception(error) if error else future.set_result(value)

    def work() -> None:
        error, value = None, None
        try:
            value = function()
        except Exception as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(settle, error, value)

    threading.Thread(target=work, name="glee-resolver", daemon=True).start()
    return await future


async def _look_up(host: str, port: int) -> list[Address]:
    try:
        found: list[Any] = await _in_thread(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise NetworkFailed(
            f"the host {host} cannot be found: {reason}; check its name and the network",
            details={"host": host},
        ) from error
    return [ipaddress.ip_address(entry[4][0].split("%")[0]) for entry in found]

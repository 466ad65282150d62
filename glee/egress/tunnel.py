"""A CONNECT tunnel: bytes both ways, once the client's first words fit the host it asked for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from glee.definitions.hosts import is_address
from glee.egress.checkpoint import Checkpoint, Place, Streams
from glee.egress.hello import HANDSHAKE, MAX_BYTES, read_hello
from glee.egress.wire import PIECE
from glee.errors import Blocked

_HTTPS: Final = 443
_UNRECOGNISED_NAME: Final = bytes([0x15, 3, 3, 0, 2, 2, 112])
"""The TLS alert for a server name that does not belong here."""


class Tunnel:
    def __init__(self, checkpoint: Checkpoint, place: Place, touch: Callable[[], None]) -> None:
        self._checkpoint = checkpoint
        self._place = place
        self._touch = touch

    async def run(self, tool: Streams, far: Streams, early: bytes) -> None:
        """Until both sides have ended. `early`: what the tool sent together with its request."""
        up = asyncio.ensure_future(self._send(tool, far, early))
        down = asyncio.ensure_future(self._pump(far[0], tool[1]))
        try:
            await asyncio.gather(up, down)
        except Blocked:
            tool[1].write(_UNRECOGNISED_NAME)
        finally:
            up.cancel()
            down.cancel()
            await asyncio.gather(up, down, return_exceptions=True)

    async def _send(self, tool: Streams, far: Streams, early: bytes) -> None:
        far[1].write(await self._read_opening(tool[0], early))
        await self._pump(tool[0], far[1])

    async def _read_opening(self, reader: asyncio.StreamReader, early: bytes) -> bytes:
        """What the tool says first, checked before the server hears any of it."""
        data = early or await reader.read(MAX_BYTES)
        self._touch()
        if not data:
            return data
        if data[0] != HANDSHAKE:
            if self._place.port == _HTTPS:
                raise self._refuse(f"what was sent to port {_HTTPS} is not TLS")
            return data
        try:
            async with asyncio.timeout(self._checkpoint.limits.hello_seconds):
                return await self._check_hello(reader, data)
        except ValueError as error:
            raise self._refuse(f"the TLS ClientHello cannot be read: {error}") from None
        except TimeoutError:
            raise self._refuse("the TLS ClientHello did not come to its end in time") from None

    async def _check_hello(self, reader: asyncio.StreamReader, data: bytes) -> bytes:
        while (hello := read_hello(data)) is None:
            more = await reader.read(MAX_BYTES)
            if not more:
                raise ValueError("it ends too early")
            data += more
        name = hello.server_name
        if name is None and not is_address(self._place.host):
            raise self._refuse("the TLS ClientHello names no server")
        if name is not None and name != self._place.host:
            raise self._refuse(f"the TLS ClientHello asks for {name[:253]}")
        return data

    def _refuse(self, reason: str) -> Blocked:
        return self._checkpoint.refuse(self._place.host, self._place.port, reason)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(PIECE):
            self._touch()
            writer.write(data)
            await writer.drain()
            self._touch()
        with contextlib.suppress(OSError):  # the other side may have gone altogether
            writer.write_eof()

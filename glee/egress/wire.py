"""HTTP/1.1 over a pair of streams: every message is parsed whole by h11 and written anew, never spliced."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any, Final

import h11

from glee.egress.checkpoint import Limits, Streams
from glee.errors import GleeError, InvalidInput, NetworkFailed, TooLarge, Unavailable

PIECE: Final = 65_536
_HEAD_PIECE: Final = 4096
"""In small pieces, so that a head is cut off soon after its limit."""
_OWN: Final = frozenset(
    b"connection keep-alive te trailer transfer-encoding upgrade http2-settings expect".split()
    + b"content-length host x-glee".split()
)
"""Headers that concern one connection alone, and those the proxy sets itself."""

Header = tuple[bytes, bytes]
Message = h11.Request | h11.Response


class Wire:
    """One side of the proxy: the tool, whom it serves, or the far server, of whom it asks."""

    def __init__(self, role: Any, streams: Streams, limits: Limits, touch: Callable[[], None]) -> None:
        self.reader, self.writer = streams
        self.http = h11.Connection(role, max_incomplete_event_size=limits.head_bytes)
        self._touch = touch

    async def next_event(self) -> Any:
        """The next event of h11. What the other side got wrong is one of our errors."""
        try:
            while (event := self.http.next_event()) is h11.NEED_DATA:
                self.http.receive_data(await self._read())
            return event
        except h11.RemoteProtocolError as error:
            raise self._explain(error) from None  # its text quotes headers

    async def send(self, event: Any) -> None:
        data = self.http.send(event)
        if data:
            self._touch()
            self.writer.write(data)
            await self.writer.drain()

    async def _read(self) -> bytes:
        in_head = self.http.their_state in (h11.IDLE, h11.SEND_RESPONSE)
        data = await self.reader.read(_HEAD_PIECE if in_head else PIECE)
        self._touch()
        return data

    def _explain(self, error: h11.RemoteProtocolError) -> GleeError:
        if self.http.our_role is h11.CLIENT:
            if self.http.trailing_data[1]:
                return NetworkFailed("the server closed the connection before its answer was whole")
            return NetworkFailed("what the server sent is not HTTP/1.1")
        if error.error_status_hint == 431:
            return TooLarge("the head of the request is too long; send fewer or shorter headers")
        if error.error_status_hint == 501:
            return Unavailable("only Transfer-Encoding: chunked is understood")
        return InvalidInput("the request is not HTTP/1.1 as it should be")


def carry(message: Message) -> list[Header]:
    """The headers that go on to the other side, as they were written."""
    listed = b",".join(value for name, value in message.headers if name == b"connection")
    left_out = _OWN | {word.strip().lower() for word in listed.split(b",")}
    return [
        (name, value)
        for name, value in message.headers.raw_items()
        if (key := name.lower()) not in left_out and not key.startswith(b"proxy-")
    ]


def find_header(message: Message, wanted: bytes) -> bytes | None:
    return next((value for name, value in message.headers if name == wanted), None)


def cut(writer: asyncio.StreamWriter) -> None:
    """Ends a connection at once, also where a process forked meanwhile holds a copy of it."""
    connection = writer.get_extra_info("socket")  # none once TLS has ended
    if connection is not None:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
    writer.transport.abort()

"""One connection from the jail: its requests are read, judged and sent on, one after the other."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Final

import h11

from glee.egress.checkpoint import Checkpoint, Place, Streams
from glee.egress.forward import Forward, check_request, read_errand
from glee.egress.tunnel import Tunnel
from glee.egress.wire import PIECE, Wire, cut
from glee.errors import Blocked, GleeError, InvalidInput, NetworkFailed, TimedOut, TooLarge, Unavailable

_STATUS: Final[dict[type[GleeError], tuple[int, str]]] = {
    InvalidInput: (400, "Bad Request"),
    Blocked: (403, "Forbidden"),
    TooLarge: (431, "Request Header Fields Too Large"),
    Unavailable: (501, "Not Implemented"),
    NetworkFailed: (502, "Bad Gateway"),
    TimedOut: (504, "Gateway Timeout"),
}
_PLAIN: Final = 80
_LINGER_SECONDS: Final = 2.0
_LINGER_PIECES: Final = 64

_log = logging.getLogger(__name__)


class Visit:
    def __init__(self, checkpoint: Checkpoint, forward: Forward, own: Sequence[str], streams: Streams) -> None:
        self._checkpoint = checkpoint
        self._forward = forward
        self._own = own
        self._streams = streams
        self._clock: asyncio.Timeout | None = None
        self._wire = Wire(h11.SERVER, streams, checkpoint.limits, self._touch)
        self._asked = ""
        """What is being waited for."""
        self._is_head = False

    async def serve(self) -> None:
        try:
            await self._serve_in_time()
            await self._leave()
        except OSError:
            pass  # the tool has gone
        except Exception as error:  # its text may quote a header
            _log.error("a connection of a jailed tool ended with %s", type(error).__name__)
        finally:
            cut(self._streams[1])

    async def _serve_in_time(self) -> None:
        """Ends what stands still: every byte in either direction puts the end off."""
        seconds = self._checkpoint.limits.idle_seconds
        try:
            async with asyncio.timeout(seconds) as self._clock:
                while await self._serve_one():
                    self._wire.http.start_next_cycle()
        except TimeoutError:
            if self._asked:
                await self._refuse(TimedOut(f"no answer from {self._asked} within {seconds:g} s"))

    def _touch(self) -> None:
        if self._clock and not self._clock.expired():
            self._clock.reschedule(asyncio.get_running_loop().time() + self._checkpoint.limits.idle_seconds)

    async def _serve_one(self) -> bool:
        """True if another request may follow on this connection."""
        try:
            request = await self._read_head()
            if request is None:
                return False
            self._is_head = request.method == b"HEAD"
            check_request(request)
            if request.method == b"CONNECT":
                await self._tunnel(request.target.decode("ascii"))
                return False
            errand = read_errand(request, self._own)
            self._asked = errand.authority
            await self._forward.run(self._wire, request, errand, self._touch)
            self._asked = ""
        except GleeError as error:
            await self._refuse(error)
        return self._wire.http.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}

    async def _read_head(self) -> h11.Request | None:
        if not self._wire.http.trailing_data[0]:
            self._wire.http.receive_data(await self._streams[0].read(1))
        seconds = self._checkpoint.limits.head_seconds
        try:
            async with asyncio.timeout(seconds):
                event = await self._wire.next_event()
        except TimeoutError:
            raise InvalidInput(f"the head of the request did not come to its end within {seconds:g} s") from None
        except InvalidInput as error:
            if self._wire.http.trailing_data[1]:  # it hung up in the middle
                return None
            raise self._checkpoint.refuse("", None, error.message) from None
        return event if isinstance(event, h11.Request) else None

    async def _tunnel(self, authority: str) -> None:
        place = self._checkpoint.admit(authority)
        self._asked = str(place)
        self._check_tunnel(place)
        if not isinstance(await self._wire.next_event(), h11.EndOfMessage):
            raise InvalidInput("a CONNECT request has no body")
        far = await self._checkpoint.dial(place)
        try:
            await self._wire.send(h11.Response(status_code=200, reason=b"Connection established", headers=[]))
            self._asked = ""
            early, _ = self._wire.http.trailing_data
            await Tunnel(self._checkpoint, place, self._touch).run(self._streams, far, early)
        finally:
            cut(far[1])

    def _check_tunnel(self, place: Place) -> None:
        """Nothing inside a tunnel can be seen, so there is none where something must be."""
        secret = self._forward.find_secret(place.host)
        if secret is not None:
            reason = f"the secret {secret.name} belongs to it, so use the base URL in GLEE_URL_{secret.name}"
            raise self._checkpoint.refuse(place.host, place.port, reason)
        if place.port == _PLAIN:
            raise self._checkpoint.refuse(place.host, place.port, "ask for http://… instead of a tunnel to port 80")

    async def _refuse(self, error: GleeError) -> None:
        """Says what went wrong, unless an answer has already begun: then it is cut off, and seen to be."""
        if isinstance(error, NetworkFailed | TimedOut):
            self._checkpoint.note_failure(error.message)
        if self._wire.http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            raise ConnectionAbortedError
        status, reason = _STATUS.get(type(error), (500, "Internal Server Error"))
        await self._answer(status, reason, error.message, refused=isinstance(error, Blocked))

    async def turn_away(self) -> None:
        """For a connection too many."""
        try:
            count = self._checkpoint.limits.connections
            await self._answer(503, "Service Unavailable", f"{count} connections are open already; close some first")
            await self._leave()
        except OSError:
            pass
        finally:
            cut(self._streams[1])

    async def _answer(self, status: int, reason: str, text: str, *, refused: bool = False) -> None:
        body = f"glee: {text}\n".encode()
        headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
        headers += [("Connection", "close"), *([("X-Glee", "refused")] if refused else [])]
        await self._wire.send(h11.Response(status_code=status, reason=reason, headers=headers))
        if not self._is_head:
            await self._wire.send(h11.Data(data=body))
        await self._wire.send(h11.EndOfMessage())

    async def _leave(self) -> None:
        """Waits for the tool to hang up: closing on what it still sends would take the answer from it."""
        reader, writer = self._streams
        writer.transport.set_write_buffer_limits(0)  # so that drain means all of it
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._checkpoint.limits.idle_seconds):
                await writer.drain()
            writer.write_eof()
            async with asyncio.timeout(_LINGER_SECONDS):
                for _ in range(_LINGER_PIECES):
                    if not await reader.read(PIECE):
                        return

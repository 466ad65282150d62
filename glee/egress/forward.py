"""One request of a tool, sent on as a request of our own, and its answer on the way back."""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final

import h11
from msgspec import Struct

from glee.definitions.hosts import parse_authority, to_authority
from glee.egress.checkpoint import Checkpoint, Place
from glee.egress.injection import Injected, Injection, Veil
from glee.egress.wire import Header, Wire, carry, cut, find_header
from glee.errors import InvalidInput, NetworkFailed, Unavailable

_TARGET: Final = re.compile(
    r"(?P<start>(?i:http://)|/to/)(?P<authority>[^/?#]*)(?P<path>/[^?#]*)?(?P<query>\?[^#]*)?", re.ASCII
)
_BODILESS: Final = (204, 304)


class Errand(Struct, frozen=True):
    """What a request asks for: a host, in the clear or by TLS, and what of it."""

    authority: str
    secure: bool
    target: bytes


def read_errand(request: h11.Request, own: Sequence[str]) -> Errand:
    """`http://host/path`, or `/to/host/path` for TLS. `own`: the names of the proxy itself in the jail."""
    text = request.target.decode("ascii")
    for name in own:  # a client that knows of the proxy asks it for the proxy
        text = text.removeprefix(f"http://{name}") if text.startswith(f"http://{name}/to/") else text
    match = _TARGET.fullmatch(text)
    if match is None:
        raise InvalidInput("ask for http://host/path, for CONNECT host:443, or for /to/host/path, which is sent by TLS")
    target = (match["path"] or "/") + (match["query"] or "")
    return Errand(match["authority"], match["start"] == "/to/", target.encode())


def check_request(request: h11.Request) -> None:
    """Raises for what cannot be sent on with one meaning, or not at all."""
    if find_header(request, b"transfer-encoding") and find_header(request, b"content-length"):
        raise InvalidInput("the request has a Content-Length and a Transfer-Encoding; send one of them")
    upgrade = find_header(request, b"upgrade")
    if upgrade is not None and upgrade.lower() != b"h2c":  # which clients offer unasked, and servers may ignore
        raise Unavailable("an Upgrade, as for WebSocket, is not passed on; use CONNECT")


class Forward:
    def __init__(
        self, checkpoint: Checkpoint, injected: Sequence[Injected], trust: Callable[[], ssl.SSLContext]
    ) -> None:
        self._checkpoint = checkpoint
        self._injected = injected
        self._trust = trust

    def find_secret(self, host: str) -> Injected | None:
        """The first that belongs to a host, on whatever port."""
        return next((one for one in self._injected if parse_authority(one.host)[0] == host), None)

    async def run(self, tool: Wire, request: h11.Request, errand: Errand, touch: Callable[[], None]) -> None:
        place = self._checkpoint.admit(errand.authority, usual_port=443 if errand.secure else 80)
        ours, veil = self._rewrite(request, errand, place)
        context = self._trust() if errand.secure else None
        streams = await self._checkpoint.dial(place, context)
        far = Wire(h11.CLIENT, streams, self._checkpoint.limits, touch)
        try:
            await _Exchange(tool, far, place, veil).run(request, ours)
        finally:
            cut(far.writer)

    def _rewrite(self, request: h11.Request, errand: Errand, place: Place) -> tuple[h11.Request, Veil | None]:
        """Our own request, with the secrets that belong to its host, and what hides them in the answer."""
        secrets = [one for one in self._injected if errand.secure and one.belongs_to(place.host, place.port)]
        headers, target, veil = carry(request), errand.target, None
        kept = [one for one in self._injected if parse_authority(one.host)[0] == place.host]
        if kept and not secrets:  # what the host learnt by TLS, it could give back in the clear
            headers = [(name, value) for name, value in headers if name.lower() not in (b"accept-encoding", b"range")]
            headers, veil = [*headers, (b"Accept-Encoding", b"identity")], Injection(kept).veil()
        if secrets:
            injection = Injection(secrets)
            headers = [(name, value) for name, value in headers if name.lower() not in (b"accept-encoding", b"range")]
            headers = [*injection.fill_headers(headers), (b"Accept-Encoding", b"identity")]
            target, veil = injection.fill_target(target), injection.veil()
        usual = place.port == (443 if errand.secure else 80)
        host = to_authority(place.host, None if usual else place.port)
        headers = [(b"Host", host.encode()), *headers, *_framing(request), (b"Connection", b"close")]
        return h11.Request(method=request.method, target=target, headers=headers), veil


def _framing(request: h11.Request) -> list[Header]:
    if find_header(request, b"transfer-encoding"):
        return [(b"Transfer-Encoding", b"chunked")]
    length = find_header(request, b"content-length")
    return [] if length is None else [(b"Content-Length", length)]


class _Exchange:
    """A request and its answer, which may begin before the request has ended."""

    def __init__(self, tool: Wire, far: Wire, place: Place, veil: Veil | None) -> None:
        self._tool = tool
        self._far = far
        self._place = place
        self._veil = veil

    async def run(self, theirs: h11.Request, ours: h11.Request) -> None:
        up = asyncio.ensure_future(self._send(ours))
        down = asyncio.ensure_future(self._answer(theirs))
        try:
            await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
            if not down.done():
                await up  # raises what was wrong with the request
            await down
        finally:
            up.cancel()
            down.cancel()
            await asyncio.gather(up, down, return_exceptions=True)

    async def _send(self, request: h11.Request) -> None:
        with contextlib.suppress(OSError):  # a server that stops listening may still have answered
            await self._far.send(request)
        if self._tool.http.they_are_waiting_for_100_continue:
            await self._tool.send(h11.InformationalResponse(status_code=100, headers=[]))
        while isinstance(event := await self._tool.next_event(), h11.Data):
            with contextlib.suppress(OSError):
                await self._far.send(event)
        if not isinstance(event, h11.EndOfMessage):
            raise ConnectionResetError
        with contextlib.suppress(OSError):
            await self._far.send(h11.EndOfMessage())

    async def _answer(self, request: h11.Request) -> None:
        response = await self._next()
        while isinstance(response, h11.InformationalResponse):
            response = await self._next()
        await self._tool.send(self._rewrite(response, request))
        while isinstance(event := await self._next(), h11.Data):
            data = bytes(event.data)
            await self._tool.send(h11.Data(data=self._veil.feed(data) if self._veil else data))
        if self._veil:
            await self._tool.send(h11.Data(data=self._veil.finish()))
        await self._tool.send(h11.EndOfMessage())

    async def _next(self) -> Any:
        try:
            return await self._far.next_event()
        except OSError as error:
            raise NetworkFailed(f"the connection to {self._place} broke before the answer was whole") from error

    def _rewrite(self, response: h11.Response, request: h11.Request) -> h11.Response:
        headers, reason = carry(response), response.reason
        bodiless = request.method == b"HEAD" or response.status_code in _BODILESS
        if self._veil:
            self._check_encoding(response, bodiless)
            reason = self._veil.whole(reason)
            headers = [(name, self._veil.whole(value)) for name, value in headers if self._veil.whole(name) == name]
        length = find_header(response, b"content-length")
        chunked = find_header(response, b"transfer-encoding")
        if length is not None and not chunked and (bodiless or not self._veil):
            headers.append((b"Content-Length", length))
        return h11.Response(status_code=response.status_code, reason=reason, headers=headers)

    def _check_encoding(self, response: h11.Response, bodiless: bool) -> None:
        """A secret that comes back compressed could not be seen."""
        encodings = [value.lower() for name, value in response.headers if name == b"content-encoding"]
        if not bodiless and any(encoding not in (b"", b"identity") for encoding in encodings):
            raise NetworkFailed(f"{self._place} answered in an encoding that was not asked for")

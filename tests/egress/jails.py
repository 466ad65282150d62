"""What a jailed tool sees of the proxy, and far servers that say exactly what they are told to."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPResponse
from typing import Any, NamedTuple

import pytest
from servers import PATIENCE

from glee.egress.hosts import parse_hosts
from glee.egress.proxy import Attempt, Gate, Injected, Proxy

VALUE = "s3cr3t/value+of=one"
PLACEHOLDER = "glee-secret-TOKEN-5f1c"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    """Lower-case names."""
    body: bytes


class Jail:
    """One run: its listener, which the proxy was given, and the connections of its tool."""

    def __init__(self, proxy: Proxy, hosts: Sequence[str], injected: Sequence[Injected] = ()) -> None:
        listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address: tuple[str, int] = listener.getsockname()
        self.gate: Gate = proxy.open(listener, parse_hosts(hosts), injected)

    @property
    def refused(self) -> list[Attempt]:
        """All of it: what is still under way ends first."""
        self.gate.close()
        return self.gate.refused

    def connect(self) -> socket.socket:
        tool = socket.socket()
        tool.settimeout(PATIENCE)
        tool.connect(self.address)
        return tool

    def ask(self, request: str | bytes) -> Answer:
        """One request on a connection of its own."""
        with self.connect() as tool:
            return ask(tool, request)

    def get(self, target: str, *headers: str) -> Answer:
        lines = [f"GET {target} HTTP/1.1", "Host: whatever.example", *headers, "Connection: close", "", ""]
        return self.ask("\r\n".join(lines))

    def tunnel(self, authority: str) -> socket.socket:
        """A CONNECT that is let through."""
        tool = self.connect()
        tool.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        head = read_until(tool, b"\r\n\r\n")
        assert head == b"HTTP/1.1 200 Connection established\r\n\r\n"
        return tool


def ask(tool: socket.socket, request: str | bytes, *, method: str | None = None) -> Answer:
    data = request if isinstance(request, bytes) else request.encode("latin-1")
    tool.sendall(data)
    return read_answer(tool, method=method or data.split(b" ")[0].decode("latin-1"))


def read_answer(tool: socket.socket, *, method: str = "GET") -> Answer:
    response = HTTPResponse(tool, method=method)
    response.begin()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, response.read())


def read_until(connection: socket.socket, mark: bytes) -> bytes:
    data = b""
    while not data.endswith(mark):
        byte = connection.recv(1)
        assert byte, f"ended after {data!r}"
        data += byte
    return data


def read_all(connection: socket.socket) -> bytes:
    """Until the other side ends, in whichever way."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65_536):
            data += piece
    return data


def secret(host: str = "one.example", value: str = VALUE, placeholder: str = PLACEHOLDER) -> Injected:
    return Injected(name="TOKEN", value=value, placeholder=placeholder, host=host)


class Far:
    """A server that follows a script on each connection, and keeps what the last one raised."""

    def __init__(self, script: Callable[[Any], None], context: ssl.SSLContext | None = None) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        self._script = script
        self._context = context
        self.connections = 0
        self.ended = threading.Event()
        self.error: BaseException | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """As `egress.resolve` takes it."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE)
        try:
            if self._context:
                connection = self._context.wrap_socket(connection, server_side=True)
            with connection:
                self._script(connection)
        except BaseException as error:
            self.error = error
        self.ended.set()

    def wait(self) -> None:
        """Returns once a connection has come to its end, as its script has it."""
        assert self.ended.wait(PATIENCE)
        if self.error:
            raise self.error

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def sends(data: bytes) -> Callable[[Any], None]:
    """A script: whatever the request, these bytes, and the end."""

    def script(connection: socket.socket) -> None:
        read_until(connection, b"\r\n\r\n")
        connection.sendall(data)

    return script


@pytest.fixture
def make_far() -> Iterator[Callable[..., Far]]:
    made: list[Far] = []

    def make(script: Callable[[Any], None], context: ssl.SSLContext | None = None) -> Far:
        made.append(Far(script, context))
        return made[-1]

    yield make
    for far in made:
        far.close()


@pytest.fixture
def make_proxy() -> Iterator[Callable[..., Proxy]]:
    made: list[Proxy] = []

    def make(**options: Any) -> Proxy:
        made.append(Proxy(**options))
        return made[-1]

    yield make
    for proxy in made:
        proxy.close()

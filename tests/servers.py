"""Real HTTP and HTTPS servers on loopback: they answer as they are told and remember what they were asked."""

from __future__ import annotations

import gzip
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme

PATIENCE = 20.0
"""Seconds that a server or a test waits for what is sure to come."""


class Received(NamedTuple):
    """A request as it came over the wire, header names in lower case."""

    method: str
    target: str
    headers: dict[str, list[str]]
    body: bytes

    def header(self, name: str) -> str | None:
        values = self.headers.get(name)
        return ", ".join(values) if values else None


class Hanging:
    """A request that gets no answer: `entered` when it came, `left` when its caller hung up."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.left = threading.Event()

    def __call__(self, handler: BaseHTTPRequestHandler) -> None:
        self.entered.set()
        handler.connection.settimeout(PATIENCE)
        try:
            handler.connection.recv(1)
        except OSError:
            pass
        self.left.set()
        handler.close_connection = True


Answer = Callable[[BaseHTTPRequestHandler], None]


class _Listener(ThreadingHTTPServer):
    """Says when a connection is over, and keeps quiet about callers that hang up."""

    daemon_threads = True
    request_queue_size = 64
    closed: Callable[[], None]

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.closed()

    def handle_error(self, *_: object) -> None:
        return


class Server:
    """One server on a free port. Whatever has no answer of its own is answered with an empty object."""

    def __init__(self, context: ssl.SSLContext | None = None, address: str = "127.0.0.1") -> None:
        self.requests: list[Received] = []
        self.connections = 0
        self.closed = 0
        self._ended = threading.Condition()
        self._answers: dict[str, Answer] = {}
        self._scheme = "https" if context else "http"
        self._address = address
        self._http = _Listener((address, 0), self._handler_class())
        self._http.closed = self._count_closed
        if context:
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def address(self) -> str:
        """As `egress.resolve` takes it."""
        return f"{self._address}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self._scheme}://{self.address}"

    @property
    def last(self) -> Received:
        return self.requests[-1]

    def answer(
        self,
        path: str,
        body: Any = None,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        compress: bool = False,
    ) -> None:
        """What a path is answered with from now on: bytes and text as they are, anything else as JSON."""
        data = (
            body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        )
        given = dict(headers or {})
        if compress:
            data = gzip.compress(data)
            given["Content-Encoding"] = "gzip"
        if not isinstance(body, bytes | str):
            given.setdefault("Content-Type", "application/json")

        def send(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(status)
            for name, value in given.items():
                handler.send_header(name, value)
            if status != 204:
                handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            if handler.command != "HEAD" and status != 204:
                handler.wfile.write(data)

        self._answers[path] = send

    def hang(self, path: str) -> Hanging:
        """Leaves requests to a path without an answer."""
        hanging = self._answers[path] = Hanging()
        return hanging

    def answer_with(self, path: str, answer: Answer) -> None:
        """Lets a function write the whole response."""
        self._answers[path] = answer

    def _count_closed(self) -> None:
        with self._ended:
            self.closed += 1
            self._ended.notify_all()

    def wait_closed(self, count: int) -> None:
        """Returns once that many connections are over, on both sides or on ours."""
        with self._ended:
            assert self._ended.wait_for(lambda: self.closed >= count, PATIENCE)

    def close(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def _handler_class(server) -> type[BaseHTTPRequestHandler]:  # noqa: N805 `self` is the handler here
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle(self) -> None:
                server.connections += 1
                try:
                    super().handle()
                except OSError:
                    self.close_connection = True

            def finish(self) -> None:
                try:
                    super().finish()
                except OSError:
                    pass

            def answer(self) -> None:
                headers: dict[str, list[str]] = {}
                for name, value in self.headers.items():
                    headers.setdefault(name.lower(), []).append(value)
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                server.requests.append(Received(self.command, self.path, headers, body))
                known = server._answers.get(self.path.partition("?")[0])
                if known is None:
                    server.answer("*", {})
                    known = server._answers["*"]
                known(self)

            do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer  # noqa: N815 the names are the library's

            def log_message(self, *_: object) -> None:
                return

        return Handler


class Authority:
    """A certificate authority of the tests' own, and the file that makes Glee trust it."""

    def __init__(self, folder: Path) -> None:
        self._ca = trustme.CA()
        self.file = folder / "authority.pem"
        self._ca.cert_pem.write_to_path(str(self.file))

    def context(self, *hosts: str) -> ssl.SSLContext:
        """What a server for these hosts needs."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert(*hosts).configure_cert(context)
        return context


@pytest.fixture
def server() -> Iterator[Server]:
    """A plain HTTP server."""
    running = Server()
    yield running
    running.close()


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def secure_server(authority: Authority) -> Iterator[Server]:
    """An HTTPS server for several names, all of which lead to it only through `egress.resolve`."""
    names = ("api.search.brave.com", "slack.com", "one.example", "two.example", "127.0.0.1")
    running = Server(authority.context(*names))
    yield running
    running.close()

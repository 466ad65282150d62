"""The way out of a jail in plain HTTP, over real sockets: what is let through, what is not, and what is left of it."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from jails import Answer, Far, Jail, ask, read_all, read_answer, read_until, sends
from servers import PATIENCE, Server

from glee.egress.hosts import parse_hosts
from glee.egress.proxy import Attempt, Limits, Proxy

MakeProxy = Callable[..., Proxy]
MakeFar = Callable[..., Far]
ADD_EVIL = 'add "evil.example" under permissions.network.hosts'


@pytest.fixture
def jail(server: Server, make_proxy: MakeProxy) -> Jail:
    """A run that may reach one.example, which stands at the server, as does everything it may not reach."""
    names = ("one.example", "one.example:8080", "evil.example", "below.two.example", "two.example")
    proxy = make_proxy(resolve=dict.fromkeys(names, server.address))
    return Jail(proxy, ["one.example", "*.two.example"])


def refusal(text: str) -> Answer:
    body = f"glee: {text}\n".encode()
    headers = {
        "content-type": "text/plain; charset=utf-8",
        "content-length": str(len(body)),
        "connection": "close",
        "x-glee": "refused",
    }
    return Answer(403, headers, body)


def failure(status: int, text: str) -> Answer:
    answer = refusal(text)
    return Answer(status, {name: value for name, value in answer.headers.items() if name != "x-glee"}, answer.body)


def statuses(data: bytes) -> list[int]:
    """Of answers that came one after the other."""
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", data)]


def jail_for(far: Far, make_proxy: MakeProxy, **limits: Any) -> Jail:
    return Jail(make_proxy(resolve={"one.example": far.address}, limits=Limits(**limits)), ["one.example"])


# Where a request may go


def test_a_permitted_host_is_reached(jail: Jail, server: Server) -> None:
    server.answer("/path", {"a": 1}, headers={"X-Own": "kept"})

    answer = jail.get("http://one.example/path?q=%20|1", "X-Mine: yes", "User-Agent: tool")

    assert (answer.status, answer.body, answer.headers["x-own"]) == (200, b'{"a": 1}', "kept")
    assert (server.last.method, server.last.target) == ("GET", "/path?q=%20|1")
    assert server.last.headers == {
        "host": ["one.example"],
        "x-mine": ["yes"],
        "user-agent": ["tool"],
        "connection": ["close"],
    }
    assert jail.refused == []


def test_a_body_arrives_as_it_was_sent(jail: Jail, server: Server) -> None:
    jail.ask("POST http://below.two.example/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")

    assert (server.last.method, server.last.body, server.last.header("host")) == (
        "POST",
        b"hello",
        "below.two.example",
    )


def test_a_host_that_the_manifest_does_not_name_is_refused_with_the_line_that_would_allow_it(
    jail: Jail, server: Server
) -> None:
    assert jail.get("http://evil.example/") == refusal(f"evil.example:80 was refused: {ADD_EVIL}")
    assert server.requests == []
    assert jail.refused == [Attempt(host="evil.example", port=80, reason=ADD_EVIL)]


@pytest.mark.parametrize(
    ("authority", "line"),
    [
        ("one.example:8080", "one.example:8080"),
        ("two.example", "two.example"),
        ("ONE.example.evil.example", "one.example.evil.example"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]:8080", "[::1]:8080"),
        ("[::ffff:7f00:1]", "[::ffff:7f00:1]"),
        ("169.254.169.254", "169.254.169.254"),
        ("localhost", "localhost"),
    ],
)
def test_the_line_that_would_allow_a_host_is_written_as_the_manifest_has_it(
    jail: Jail, server: Server, authority: str, line: str
) -> None:
    answer = jail.get(f"http://{authority}/")

    body = answer.body.decode().replace("[::ffff:127.0.0.1]", "[::ffff:7f00:1]")  # as newer Pythons write it
    assert (answer.status, answer.headers["x-glee"]) == (403, "refused")
    assert body.endswith(f'was refused: add "{line}" under permissions.network.hosts\n')
    assert server.requests == []


def test_an_empty_list_of_hosts_means_none(server: Server, make_proxy: MakeProxy) -> None:
    jail = Jail(make_proxy(resolve={"evil.example": server.address}), [])

    assert [jail.get("http://evil.example/").status, jail.get("/to/evil.example/").status] == [403, 403]
    assert server.connections == 0
    assert jail.refused == [
        Attempt(host="evil.example", port=80, reason=ADD_EVIL),
        Attempt(host="evil.example", port=443, reason=ADD_EVIL),
    ]


@pytest.mark.parametrize("form", ["CONNECT {}:80", "GET http://{}/", "GET http://{}:80", "GET /to/{}/"])
@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("evil.example\0.one.example", ""),
        ("evil.example .one.example", ""),
        ("evil.example\x7f.one.example", ""),
        ("one.ex\xe4mple", ""),
        ("one.example@evil.example", "one.example@evil.example"),
        ("one.example:80@evil.example", "one.example:80@evil.example"),
        ("evil.example%2f.one.example", "evil.example%2f.one.example"),
        ("evil.example\\.one.example", "evil.example\\\\.one.example"),
        ("one.example.", "one.example."),
        (".two.example", ".two.example"),
        ("127.1", "127.1"),
        ("0x7f.1", "0x7f.1"),
        ("0x7f000001", "0x7f000001"),
        ("2130706433", "2130706433"),
        ("0177.0.0.1", "0177.0.0.1"),
        ("127.0.0.1.", "127.0.0.1."),
        ("[::1%25lo]", "[::1%25lo]"),
    ],
)
def test_what_is_no_host_is_refused_before_anything_else(
    jail: Jail, server: Server, form: str, host: str, shown: str
) -> None:
    request = form.format(host)

    answer = jail.ask(f"{request} HTTP/1.1\r\nHost: one.example\r\n\r\n")

    assert (answer.status, answer.headers["x-glee"]) == (403, "refused")
    assert server.connections == 0
    [attempt] = jail.refused
    assert (attempt.host.removesuffix(":80"), attempt.port) == (shown, None)


@pytest.mark.parametrize(
    "target",
    ["/", "/favicon.ico", "*", "https://one.example/", "ftp://one.example/", "one.example:80", "http://one.example/#f"],
)
def test_what_a_proxy_is_not_asked_is_explained(jail: Jail, server: Server, target: str) -> None:
    said = "ask for http://host/path, for CONNECT host:443, or for /to/host/path, which is sent by TLS"

    assert jail.get(target) == failure(400, said)
    assert (server.connections, jail.refused) == (0, [])


# Where a name may lead


class Names:
    """Stands in for the system's resolver: the answers to each question, the last one for ever."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        self.asked.append(host)
        address = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (address, port))]


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "::1", "fd00::1", "::ffff:127.0.0.1"]
)
def test_a_permitted_name_that_leads_to_a_private_address_is_refused(
    make_proxy: MakeProxy, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    jail = Jail(make_proxy(), ["one.example"])
    monkeypatch.setattr(socket, "getaddrinfo", Names(address))

    answers = [jail.get("http://one.example/"), jail.ask("CONNECT one.example:443 HTTP/1.0\r\n\r\n")]

    assert [answer.status for answer in answers] == [403, 403]
    assert [(attempt.host, attempt.port) for attempt in jail.refused] == [("one.example", 80), ("one.example", 443)]
    assert jail.refused[0].reason.startswith("one.example leads to the private address ")


def test_a_name_is_resolved_once_and_the_address_that_was_checked_is_dialled(
    server: Server, make_proxy: MakeProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, dialled = Names("93.184.216.34", "127.0.0.1"), []

    async def connect(loop: Any, connection: socket.socket, address: tuple[str, int]) -> None:
        dialled.append(address)
        connection.setblocking(True)
        connection.connect(("127.0.0.1", server.port))
        connection.setblocking(False)

    jail = Jail(make_proxy(), ["one.example"])
    monkeypatch.setattr(socket, "getaddrinfo", names)
    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", connect)

    first, second = jail.get("http://one.example/"), jail.get("http://one.example/")

    assert (first.status, second.status) == (200, 403)
    assert (names.asked, dialled) == (["one.example", "one.example"], [("93.184.216.34", 80)])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_private_address_is_reached_if_the_manifest_names_it(
    server: Server, make_proxy: MakeProxy, host: str
) -> None:
    jail = Jail(make_proxy(), [f"{host}:{server.port}"])

    assert jail.get(f"http://{host}:{server.port}/x").status == 200
    assert server.last.header("host") == f"{host}:{server.port}"


def test_a_rule_that_only_covers_a_name_does_not_trust_where_it_leads(server: Server, make_proxy: MakeProxy) -> None:
    jail = Jail(make_proxy(), [f"*.localhost:{server.port}"])

    assert jail.get(f"http://app.localhost:{server.port}/").status in (403, 502)
    assert server.connections == 0


def test_a_host_that_cannot_be_reached_is_a_failure_and_not_a_refusal(
    make_proxy: MakeProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    jail = Jail(make_proxy(resolve={"one.example": f"127.0.0.1:{port}"}), ["one.example", "nowhere.example"])

    def unknown(*_: object, **__: object) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)

    assert jail.get("http://one.example/") == failure(
        502, "no connection to one.example:80: Connection refused; check the host and the network"
    )
    assert jail.get("http://nowhere.example/") == failure(
        502, "the host nowhere.example cannot be found: Name or service not known; check its name and the network"
    )
    assert jail.refused == []


def test_a_host_that_does_not_come_to_the_door_is_a_failure_too(
    make_proxy: MakeProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, done = threading.Event(), threading.Event()

    def hang(*_: object, **__: object) -> list[Any]:
        asked.set()
        done.wait(PATIENCE)
        return []

    jail = Jail(make_proxy(limits=Limits(dial_seconds=0.05)), ["one.example"])
    monkeypatch.setattr(socket, "getaddrinfo", hang)

    answer = jail.get("http://one.example/")
    done.set()

    assert asked.is_set()
    assert answer == failure(504, "no connection to one.example:80 within 0.05 s; check the host and the network")
    assert jail.refused == []


# What is sent on


def test_headers_of_one_connection_stay_on_it(jail: Jail, server: Server) -> None:
    jail.ask(
        "GET http://one.example/ HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: x\r\nProxy-Connection: x\r\n"
        "Keep-Alive: 5\r\nTE: trailers\r\nTrailer: X\r\nX-Hop: x\r\nConnection: X-Hop, close\r\nX-Own: 1\r\n\r\n"
    )

    assert server.last.headers == {"host": ["one.example"], "x-own": ["1"], "connection": ["close"]}


def test_headers_of_the_far_connection_stay_there(jail: Jail, server: Server) -> None:
    hops = {"Keep-Alive": "timeout=5", "Proxy-Authenticate": "Basic", "X-Glee": "refused", "X-Hop": "x"}
    server.answer("/", b"text", headers={**hops, "Connection": "x-hop, keep-alive", "X-Own": "1"})

    answer = jail.get("http://one.example")

    names = set(answer.headers) - {"server", "date"}
    assert (answer.body, names) == (b"text", {"x-own", "content-length", "connection"})


def test_one_connection_carries_one_request_after_another(jail: Jail, server: Server) -> None:
    with jail.connect() as tool:
        first = ask(tool, "GET http://one.example/1 HTTP/1.1\r\nHost: a\r\n\r\n")
        second = ask(tool, "GET http://below.two.example/2 HTTP/1.1\r\nHost: a\r\n\r\n")
        third = ask(tool, "GET http://evil.example/3 HTTP/1.1\r\nHost: a\r\n\r\n")

    assert [first.status, second.status, third.status] == [200, 200, 403]
    assert [(one.target, one.header("host")) for one in server.requests] == [
        ("/1", "one.example"),
        ("/2", "below.two.example"),
    ]


def test_requests_that_come_together_are_judged_apart(jail: Jail, server: Server) -> None:
    with jail.connect() as tool:
        tool.sendall(
            b"POST http://one.example/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"
            b"GET http://evil.example/2 HTTP/1.1\r\nHost: a\r\n\r\n"
        )
        assert statuses(read_all(tool)) == [200, 403]

    assert [(one.target, one.body) for one in server.requests] == [("/1", b"hi")]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ("Content-Length: 3\r\nTransfer-Encoding: chunked", 400),
        ("Transfer-Encoding: chunked\r\nContent-Length: 3", 400),
        ("Content-Length: 3\r\nContent-Length: 4", 403),
        ("Content-Length: +3", 403),
        ("Content-Length : 3", 403),
        ("Transfer-Encoding: xchunked", 501),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", 501),
        (" Content-Length: 3", 403),
        ("Host: b", 403),
        ("X: a\rContent-Length: 3", 403),
        ("X\0: a", 403),
    ],
)
def test_a_request_of_two_meanings_goes_nowhere(jail: Jail, server: Server, headers: str, status: int) -> None:
    start = (
        "POST http://one.example/ HTTP/1.1\r\n"
        if headers.startswith(" ")
        else "POST http://one.example/ HTTP/1.1\r\nHost: a\r\n"
    )

    answer = jail.ask(f"{start}{headers}\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: evil.example\r\n\r\n")

    assert (answer.status, server.connections) == (status, 0)


def test_a_folded_header_is_sent_on_unfolded(jail: Jail, make_far: MakeFar, make_proxy: MakeProxy) -> None:
    heads: list[bytes] = []

    def script(connection: socket.socket) -> None:
        heads.append(read_until(connection, b"\r\n\r\n"))
        connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    jail = jail_for(make_far(script), make_proxy)

    jail.get("http://one.example/", "X-Long: a", "  Content-Length: 9")

    assert heads == [b"GET / HTTP/1.1\r\nHost: one.example\r\nX-Long: a Content-Length: 9\r\nConnection: close\r\n\r\n"]


def test_what_follows_a_chunked_body_is_not_part_of_the_request(make_far: MakeFar, make_proxy: MakeProxy) -> None:
    received: list[bytes] = []

    def script(connection: socket.socket) -> None:
        received.append(read_until(connection, b"0\r\n\r\n"))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        received.append(read_all(connection))

    far = make_far(script)
    jail = jail_for(far, make_proxy)

    with jail.connect() as tool:
        tool.sendall(
            b"POST http://one.example/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
            b"3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nX-Trailer: 1\r\n\r\n"
            b"GET /smuggled HTTP/1.1\r\nHost: evil.example\r\n\r\n"
        )
        assert statuses(read_all(tool)) == [200, 400]

    far.wait()
    head, _, body = received[0].partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[1:] == [b"Host: one.example", b"Transfer-Encoding: chunked", b"Connection: close"]
    assert (body, received[1]) == (b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", b"")


def test_a_connection_is_not_handed_over_to_another_protocol(jail: Jail, server: Server) -> None:
    answer = jail.ask(
        "GET http://one.example/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    )

    assert answer == failure(501, "an Upgrade, as for WebSocket, is not passed on; use CONNECT")
    assert (server.connections, jail.refused) == (0, [])


def test_an_offer_of_http2_is_left_out(jail: Jail, server: Server) -> None:
    offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk"

    with jail.connect() as tool:
        answers = [ask(tool, f"GET http://one.example/ HTTP/1.1\r\nHost: a\r\n{offer}\r\n\r\n") for _ in range(2)]

    assert [answer.status for answer in answers] == [200, 200]
    assert server.last.headers == {"host": ["one.example"], "connection": ["close"]}


def test_a_client_that_waits_for_leave_to_send_gets_it(jail: Jail, server: Server) -> None:
    with jail.connect() as tool:
        tool.sendall(
            b"POST http://one.example/ HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        )
        assert read_until(tool, b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
        assert ask(tool, b"hi", method="POST").status == 200

    assert (server.last.body, server.last.header("expect")) == (b"hi", None)


def test_a_refused_client_gets_no_leave_to_send(jail: Jail) -> None:
    answer = jail.ask(
        "POST http://evil.example/ HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    )

    assert answer.status == 403


def test_a_head_request_keeps_its_length_and_has_no_body(jail: Jail, server: Server) -> None:
    server.answer("/", b"12345")

    with jail.connect() as tool:
        answer = ask(tool, "HEAD http://one.example/ HTTP/1.1\r\nHost: a\r\n\r\n")
        refused = ask(tool, "HEAD http://evil.example/ HTTP/1.1\r\nHost: a\r\n\r\n")

    assert (answer.status, answer.headers["content-length"], answer.body) == (200, "5", b"")
    assert (refused.status, refused.body) == (403, b"")


def test_a_client_of_http_1_0_is_served_and_left(jail: Jail, make_far: MakeFar, make_proxy: MakeProxy) -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
    jail = jail_for(make_far(sends(chunked)), make_proxy)

    with jail.connect() as tool:
        tool.sendall(b"GET http://one.example/ HTTP/1.0\r\n\r\n")
        assert read_all(tool) == b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc"


# What comes back


@pytest.mark.parametrize(
    ("said", "status", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, b"abc"),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", 200, b"until the end"),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", 200, b"until the end"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n", 200, b"abc"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            200,
            b"abc",
        ),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", 404, b""),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", 304, b""),
        (b"", 502, b"glee: the server closed the connection before its answer was whole\n"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", 502, b"glee: what the server sent is not HTTP/1.1\n"),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
            502,
            b"glee: what the server sent is not HTTP/1.1\n",
        ),
        (b"HTTP/1.1 200 OK\r\nX: " + bytes(50_000), 502, b"glee: what the server sent is not HTTP/1.1\n"),
    ],
)
def test_an_answer_in_any_form_is_written_anew(
    make_far: MakeFar, make_proxy: MakeProxy, said: bytes, status: int, body: bytes
) -> None:
    jail = jail_for(make_far(sends(said)), make_proxy)

    answer = jail.get("http://one.example/")

    assert (answer.status, answer.body, jail.refused) == (status, body, [])


def test_an_answer_that_breaks_off_is_seen_to_break_off(make_far: MakeFar, make_proxy: MakeProxy) -> None:
    jail = jail_for(make_far(sends(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")), make_proxy)

    with jail.connect() as tool:
        tool.sendall(b"GET http://one.example/ HTTP/1.1\r\nHost: a\r\n\r\n")
        assert read_all(tool).endswith(b"Content-Length: 9\r\n\r\nabc")


def test_bodies_flow_in_both_directions_before_they_have_ended(make_far: MakeFar, make_proxy: MakeProxy) -> None:
    def script(connection: socket.socket) -> None:
        read_until(connection, b"\r\n\r\n")
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(3):  # each piece is sent back before the next one comes
            piece = read_until(connection, b"x\r\n")
            connection.sendall(piece)
        assert read_until(connection, b"0\r\n\r\n") == b"0\r\n\r\n"
        connection.sendall(b"0\r\n\r\n")

    far = make_far(script)
    jail = jail_for(far, make_proxy)

    with jail.connect() as tool:
        tool.sendall(b"POST http://one.example/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        read_until(tool, b"\r\n\r\n")
        for number in range(3):
            tool.sendall(b"3\r\n%d-x\r\n" % number)
            assert read_until(tool, b"x\r\n") == b"3\r\n%d-x\r\n" % number
        tool.sendall(b"0\r\n\r\n")
        assert read_until(tool, b"0\r\n\r\n") == b"0\r\n\r\n"
    far.wait()


def test_a_server_may_answer_before_it_has_heard_everything(make_far: MakeFar, make_proxy: MakeProxy) -> None:
    said = b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!"
    jail = jail_for(make_far(sends(said)), make_proxy)

    answer = jail.ask("POST http://one.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nonly this")

    assert (answer.status, answer.body) == (413, b"no!")


def test_a_body_that_is_not_what_it_says_ends_the_request(make_far: MakeFar, make_proxy: MakeProxy) -> None:
    received: list[bytes] = []
    far = make_far(lambda connection: received.append(read_all(connection)))
    jail = jail_for(far, make_proxy)

    answer = jail.ask(
        "POST http://one.example/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n"
    )

    far.wait()
    assert answer.status == 400
    assert received[0].endswith(b"\r\n\r\n3\r\nabc\r\n")


def test_a_large_body_passes_in_both_directions(jail: Jail, server: Server) -> None:
    data = os.urandom(3_000_000)
    server.answer("/large", data)

    with jail.connect() as tool:
        head = b"POST http://one.example/large HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n"
        assert ask(tool, head + data).body == data
    assert server.last.body == data


# How much, and how long


def test_a_connection_too_many_is_told_so(make_proxy: MakeProxy) -> None:
    jail = Jail(make_proxy(limits=Limits(connections=2)), ["one.example"])

    held = [jail.connect() for _ in range(2)]
    told = [read_answer_of(jail) for _ in range(2)]
    for tool in held:
        tool.close()

    assert told == [failure(503, "2 connections are open already; close some first")] * 2


def read_answer_of(jail: Jail) -> Answer:
    with jail.connect() as tool:
        return read_answer(tool)


def test_far_too_many_connections_are_not_even_told(make_proxy: MakeProxy) -> None:
    jail = Jail(make_proxy(limits=Limits(connections=1)), ["one.example"])

    held, told, dropped = jail.connect(), jail.connect(), jail.connect()

    assert (read_all(dropped), read_until(told, b"\r\n")) == (b"", b"HTTP/1.1 503 Service Unavailable\r\n")
    for tool in (held, told, dropped):
        tool.close()


def test_a_head_without_end_is_cut_off(jail: Jail, server: Server) -> None:
    long = jail.get("http://one.example/", f"X: {'a' * 40_000}")
    fits = jail.get("http://one.example/", f"X: {'a' * 30_000}")

    assert long == failure(431, "the head of the request is too long; send fewer or shorter headers")
    assert (fits.status, len(server.requests), jail.refused) == (200, 1, [])


def test_a_head_that_does_not_come_to_its_end_is_not_waited_for(make_proxy: MakeProxy) -> None:
    jail = Jail(make_proxy(limits=Limits(head_seconds=0.05)), ["one.example"])

    answer = jail.ask("GET http://one.example/ HTTP/1.1\r\nHost: a\r\n")

    assert answer == failure(400, "the head of the request did not come to its end within 0.05 s")


def test_a_head_that_its_sender_gives_up_is_no_attempt_at_anything(jail: Jail) -> None:
    with jail.connect() as tool:
        tool.sendall(b"GET http://evil.exa")
        tool.shutdown(socket.SHUT_WR)
        assert read_all(tool) == b""

    assert jail.refused == []


def test_a_connection_that_stands_still_is_ended(make_proxy: MakeProxy) -> None:
    jail = Jail(make_proxy(limits=Limits(idle_seconds=0.05)), ["one.example"])

    with jail.connect() as tool:
        assert read_all(tool) == b""


def test_an_answer_that_does_not_come_is_a_failure(server: Server, make_proxy: MakeProxy) -> None:
    hanging = server.hang("/")
    jail = Jail(make_proxy(resolve={"one.example": server.address}, limits=Limits(idle_seconds=0.3)), ["one.example"])

    answer = jail.get("http://one.example/")

    assert answer == failure(504, "no answer from one.example within 0.3 s")
    assert hanging.left.wait(PATIENCE)


def test_what_was_refused_is_kept_once_and_not_without_end(jail: Jail) -> None:
    with jail.connect() as tool:
        del tool
    for number in (*range(120), 0, 1):
        jail.get(f"http://evil{number}.example/")

    assert [attempt.host for attempt in jail.refused] == [f"evil{number}.example" for number in range(100)]


# The end of a run, and of the proxy


def test_closing_ends_everything_of_the_run_and_nothing_else(make_far: MakeFar, make_proxy: MakeProxy) -> None:
    heard: list[bytes] = []

    def script(connection: socket.socket) -> None:
        read_until(connection, b"\r\n\r\n")
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun")
        heard.append(read_all(connection))

    far = make_far(script)
    proxy = make_proxy(resolve={"one.example": far.address})
    jail, other = Jail(proxy, ["one.example"]), Jail(proxy, [])
    streaming, idle, bystander = jail.connect(), jail.connect(), other.connect()
    streaming.sendall(b"GET http://one.example/ HTTP/1.1\r\nHost: a\r\n\r\n")
    read_until(streaming, b"begun")

    jail.gate.close()
    jail.gate.close()

    far.wait()
    assert (read_all(streaming), read_all(idle), heard) == (b"", b"", [b""])
    with pytest.raises(ConnectionRefusedError):
        jail.connect()
    assert ask(bystander, "GET http://one.example/ HTTP/1.1\r\nHost: a\r\n\r\n").status == 403
    for tool in (streaming, idle, bystander):
        tool.close()


def test_closing_the_proxy_closes_every_gate_and_another_can_be_opened(server: Server, make_proxy: MakeProxy) -> None:
    proxy = make_proxy(resolve={"one.example": server.address})
    jails = [Jail(proxy, ["one.example"]) for _ in range(3)]
    held = [jail.connect() for jail in jails]

    proxy.close()
    proxy.close()

    assert [read_all(tool) for tool in held] == [b""] * 3
    for tool, jail in zip(held, jails, strict=True):
        tool.close()
        jail.gate.close()
    assert Jail(proxy, ["one.example"]).get("http://one.example/").status == 200
    assert [thread.name for thread in threading.enumerate()].count("glee-egress") == 1


def test_many_threads_open_use_and_close_gates_of_one_proxy(server: Server, make_proxy: MakeProxy) -> None:
    names = {f"host{number}.example": server.address for number in range(8)}
    proxy = make_proxy(resolve=names)

    def work(number: int) -> list[int]:
        jail = Jail(proxy, [f"host{number}.example"])
        statuses = [jail.get(f"http://host{other}.example/").status for other in (number, (number + 1) % 8)]
        with ThreadPoolExecutor(2) as closers:
            list(closers.map(lambda _: jail.gate.close(), range(2)))
        return statuses

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [[200, 403]] * 8


def test_a_forked_process_opens_gates_of_its_own_and_leaves_those_of_its_parent(tmp_path: Any, server: Server) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import os, socket, sys, urllib.request
from glee.egress.hosts import parse_hosts
from glee.egress.proxy import Proxy

def reach(port):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({{"http": f"http://127.0.0.1:{{port}}"}}))
    return opener.open("http://one.example/", timeout=20).status

def open_gate():
    listener = socket.create_server(("127.0.0.1", 0))
    return proxy.open(listener, parse_hosts(["one.example"])), listener.getsockname()[1]

proxy = Proxy(resolve={{"one.example": "{server.address}"}})
gate, port = open_gate()
statuses = [reach(port)]
child = os.fork()
if child == 0:
    gate.close()
    own, own_port = open_gate()
    good = reach(own_port) == 200 and reach(port) == 200
    own.close()
    proxy.close()
    os._exit(0 if good else 1)
statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
statuses.append(reach(port))
proxy.close()
print(statuses)
"""
    )

    done = subprocess.run(
        [sys.executable, "-W", "ignore", program], capture_output=True, text=True, timeout=PATIENCE, check=False
    )

    assert (done.stdout, done.stderr) == ("[200, 0, 200]\n", "")


def test_a_gate_that_is_left_open_does_not_hold_up_the_end_of_the_program() -> None:
    program = """
import socket
from glee.egress.proxy import Proxy
listener = socket.create_server(("127.0.0.1", 0))
gate = Proxy().open(listener, ())
tool = socket.create_connection(listener.getsockname())
tool.sendall(b"CONNECT a.example:443 HTTP/1.0\\r\\n\\r\\n")
print(tool.recv(12))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "b'HTTP/1.1 403'\n", "")


def test_nothing_is_logged_of_what_was_asked(jail: Jail, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    for host in ("one.example", "evil.example"):
        jail.get(f"http://{host}/?q=hidden-query", "X-Token: hidden-header")

    assert "hidden" not in caplog.text
    assert "hidden" not in repr(jail.refused)


def test_a_listener_on_ipv6_serves_too(make_proxy: MakeProxy) -> None:
    listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    address = listener.getsockname()[:2]
    make_proxy().open(listener, parse_hosts([]))

    with socket.create_connection(address, PATIENCE) as tool:
        assert ask(tool, "GET http://evil.example/ HTTP/1.1\r\nHost: a\r\n\r\n").status == 403

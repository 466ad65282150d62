"""CONNECT tunnels: what is said first must fit the host that was asked for."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Any

import pytest
from hellos import client_hello, fragment
from jails import Far, Jail, read_all, read_until
from servers import Authority, Server

from glee.egress.proxy import Attempt, Limits, Proxy

MakeProxy = Callable[..., Proxy]
MakeFar = Callable[..., Far]
REQUEST = b"GET /x HTTP/1.1\r\nHost: one.example\r\nConnection: close\r\n\r\n"
ALERT = bytes([0x15, 3, 3, 0, 2, 2, 112])


@pytest.fixture
def jail(secure_server: Server, make_proxy: MakeProxy) -> Jail:
    names = ("one.example", "two.example", "evil.example")
    proxy = make_proxy(resolve=dict.fromkeys(names, secure_server.address))
    return Jail(proxy, ["one.example", f"127.0.0.1:{secure_server.port}"])


class Listening:
    """A far server that keeps what it hears until the other side ends."""

    def __init__(self, make_far: MakeFar, make_proxy: MakeProxy, *hosts: str, **limits: Any) -> None:
        self.heard: list[bytes] = []
        self.far = make_far(lambda connection: self.heard.append(read_all(connection)))
        proxy = make_proxy(resolve={"one.example": self.far.address}, limits=Limits(**limits))
        self.jail = Jail(proxy, hosts or ("one.example",))

    def refused(self) -> tuple[bytes, list[str]]:
        """What the server heard, and why the tool was refused."""
        self.far.wait()
        assert {(attempt.host, attempt.port) for attempt in self.jail.refused} <= {("one.example", 443)}
        return self.heard[0], [attempt.reason for attempt in self.jail.refused]


@pytest.fixture
def listening(make_far: MakeFar, make_proxy: MakeProxy) -> Listening:
    return Listening(make_far, make_proxy)


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.file))


def test_tls_passes_through_and_is_the_tools_own(jail: Jail, secure_server: Server, authority: Authority) -> None:
    with (
        jail.tunnel("one.example:443") as tool,
        trusting(authority).wrap_socket(tool, server_hostname="one.example") as tls,
    ):
        tls.sendall(REQUEST)
        assert read_all(tls).startswith(b"HTTP/1.1 200 OK")

    assert (secure_server.last.target, jail.refused) == ("/x", [])


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_client_hello_in_many_records_is_put_together(
    jail: Jail, secure_server: Server, authority: Authority, size: int
) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = trusting(authority).wrap_bio(incoming, outgoing, server_hostname="one.example")
    with jail.tunnel("ONE.example:443") as tool:
        with pytest.raises(ssl.SSLWantReadError):
            tls.do_handshake()
        for byte in fragment(outgoing.read(), size):
            tool.sendall(bytes([byte]))
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                tool.sendall(outgoing.read())
                incoming.write(tool.recv(65_536))
        tls.write(REQUEST)
        tool.sendall(outgoing.read())
        read_all(tool)

    assert (secure_server.last.target, jail.refused) == ("/x", [])


def test_a_client_hello_may_come_with_the_request(listening: Listening) -> None:
    hello = client_hello("one.example")
    with listening.jail.connect() as tool:
        tool.sendall(b"CONNECT one.example:443 HTTP/1.0\r\n\r\n" + hello)
        head = read_until(tool, b"\r\n\r\n")
        tool.shutdown(socket.SHUT_WR)
        read_all(tool)

    assert head.startswith(b"HTTP/1.1 200 ")
    assert listening.refused() == (hello, [])


def test_connecting_elsewhere_is_refused(jail: Jail, secure_server: Server) -> None:
    answer = jail.ask("CONNECT evil.example:443 HTTP/1.1\r\nHost: one.example:443\r\n\r\n")

    reason = 'add "evil.example" under permissions.network.hosts'
    assert (answer.status, answer.headers["x-glee"]) == (403, "refused")
    assert answer.body.decode() == f"glee: evil.example:443 was refused: {reason}\n"
    assert (secure_server.connections, jail.refused) == (0, [Attempt(host="evil.example", port=443, reason=reason)])


@pytest.mark.parametrize("port", [22, 25, 8443])
def test_connecting_to_another_port_is_refused(jail: Jail, port: int) -> None:
    assert jail.ask(f"CONNECT one.example:{port} HTTP/1.1\r\nHost: a\r\n\r\n").status == 403


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("CONNECT one.example HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("CONNECT one.example:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi", 400),
        ("CONNECT one.example:443/x HTTP/1.1\r\nHost: a\r\n\r\n", 403),
        ("CONNECT https://one.example:443 HTTP/1.1\r\nHost: a\r\n\r\n", 403),
        ("CONNECT one.example:0443 HTTP/1.1\r\nHost: a\r\n\r\n", 403),
    ],
)
def test_a_connect_that_is_none_goes_nowhere(jail: Jail, secure_server: Server, request_: str, status: int) -> None:
    assert (jail.ask(request_).status, secure_server.connections) == (status, 0)


def test_a_client_hello_for_another_host_never_reaches_the_server(listening: Listening) -> None:
    with listening.jail.tunnel("one.example:443") as tool:
        tool.sendall(client_hello("two.example"))
        assert read_all(tool) == ALERT

    assert listening.refused() == (b"", ["the TLS ClientHello asks for two.example"])


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (client_hello(None), "the TLS ClientHello names no server"),
        (client_hello("one.example.evil.example"), "the TLS ClientHello asks for one.example.evil.example"),
        (b"\x16\3\1\0\0", "the TLS ClientHello cannot be read: a record has no possible length"),
        (b"\x16\3\1\0\4\2\0\0\0", "the TLS ClientHello cannot be read: it is not a ClientHello"),
        (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "what was sent to port 443 is not TLS"),
        (b"SSH-2.0-x\r\n", "what was sent to port 443 is not TLS"),
    ],
)
def test_what_is_not_tls_for_that_host_never_reaches_its_server(listening: Listening, said: bytes, reason: str) -> None:
    with listening.jail.tunnel("one.example:443") as tool:
        tool.sendall(said)
        read_all(tool)

    assert listening.refused() == (b"", [reason])


def test_a_client_hello_that_breaks_off_never_reaches_the_server(listening: Listening) -> None:
    with listening.jail.tunnel("one.example:443") as tool:
        tool.sendall(client_hello("one.example")[:-1])
        tool.shutdown(socket.SHUT_WR)
        read_all(tool)

    assert listening.refused() == (b"", ["the TLS ClientHello cannot be read: it ends too early"])


def test_a_client_hello_without_end_is_not_waited_for(make_far: MakeFar, make_proxy: MakeProxy) -> None:
    listening = Listening(make_far, make_proxy, hello_seconds=0.05)

    with listening.jail.tunnel("one.example:443") as tool:
        tool.sendall(client_hello("one.example")[:-1])
        read_all(tool)

    assert listening.refused() == (b"", ["the TLS ClientHello did not come to its end in time"])


def test_a_tunnel_in_which_nothing_is_said_may_just_end(listening: Listening) -> None:
    with listening.jail.tunnel("one.example:443") as tool:
        tool.shutdown(socket.SHUT_WR)
        assert read_all(tool) == b""

    assert listening.refused() == (b"", [])


def test_an_address_needs_no_server_name(jail: Jail, secure_server: Server, authority: Authority) -> None:
    with (
        jail.tunnel(secure_server.address) as tool,
        trusting(authority).wrap_socket(tool, server_hostname="127.0.0.1") as tls,
    ):
        tls.sendall(REQUEST)
        assert read_all(tls).startswith(b"HTTP/1.1 200 OK")

    assert jail.refused == []


def test_other_ports_may_speak_other_protocols_and_the_server_first(make_far: MakeFar, make_proxy: MakeProxy) -> None:
    def script(connection: socket.socket) -> None:
        connection.sendall(b"220 hello\r\n")
        assert read_until(connection, b"\r\n") == b"EHLO me\r\n"
        assert connection.recv(1) == b""  # the tool has ended its half, and still listens
        connection.sendall(b"250 bye\r\n")

    far = make_far(script)
    jail = Jail(make_proxy(resolve={"one.example": far.address}), ["one.example:25"])

    with jail.tunnel("one.example:25") as tool:
        assert read_until(tool, b"\r\n") == b"220 hello\r\n"
        tool.sendall(b"EHLO me\r\n")
        tool.shutdown(socket.SHUT_WR)
        assert read_all(tool) == b"250 bye\r\n"

    far.wait()
    assert jail.refused == []


def test_tls_on_other_ports_is_checked_too(make_far: MakeFar, make_proxy: MakeProxy) -> None:
    listening = Listening(make_far, make_proxy, "one.example:8443")

    with listening.jail.tunnel("one.example:8443") as tool:
        tool.sendall(client_hello("evil.example"))
        assert read_all(tool) == ALERT

    listening.far.wait()
    assert (listening.heard, len(listening.jail.refused)) == ([b""], 1)


def test_a_server_that_cannot_be_reached_is_told_before_the_tunnel_opens(make_proxy: MakeProxy) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    jail = Jail(make_proxy(resolve={"one.example": address}), ["one.example"])

    answer = jail.ask("CONNECT one.example:443 HTTP/1.1\r\nHost: a\r\n\r\n")

    said = b"glee: no connection to one.example:443: Connection refused; check the host and the network\n"
    assert (answer.status, answer.body, jail.refused) == (502, said, [])


def test_a_tunnel_that_stands_still_is_ended(make_far: MakeFar, make_proxy: MakeProxy) -> None:
    listening = Listening(make_far, make_proxy, idle_seconds=0.3)

    with listening.jail.tunnel("one.example:443") as tool:
        assert read_all(tool) == b""

    assert listening.refused() == (b"", [])


def test_closing_the_gate_ends_a_tunnel_on_both_sides(make_far: MakeFar, make_proxy: MakeProxy) -> None:
    listening = Listening(make_far, make_proxy, "one.example:25")

    with listening.jail.tunnel("one.example:25") as tool:
        tool.sendall(b"begun")
        listening.jail.gate.close()
        assert read_all(tool) == b""

    listening.far.wait()
    assert listening.heard[0] in (b"", b"begun")


def test_there_is_no_tunnel_to_port_80_where_any_host_could_be_named(server: Server, make_proxy: MakeProxy) -> None:
    jail = Jail(make_proxy(resolve={"one.example": server.address}), ["one.example"])

    answer = jail.ask("CONNECT one.example:80 HTTP/1.1\r\nHost: a\r\n\r\n")

    assert (answer.status, server.connections) == (403, 0)

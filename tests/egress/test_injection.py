"""Secrets that a tool never sees: where they are put in, where not, and that they do not come back."""

from __future__ import annotations

import base64
import json
import logging
import socket
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jails import PLACEHOLDER, VALUE, Far, Jail, read_until, secret, sends
from servers import Authority, Server

from glee.egress.injection import Veil
from glee.egress.proxy import Attempt, Injected, Proxy
from glee.errors import ConfigError

MakeProxy = Callable[..., Proxy]
MakeFar = Callable[..., Far]
OTHER = "glee-secret-OTHER-77aa"


@pytest.fixture
def jail(secure_server: Server, authority: Authority, make_proxy: MakeProxy) -> Jail:
    """A run with a secret for one.example, which may also reach two.example."""
    names = ("one.example", "one.example:8443", "two.example", "slack.com")
    proxy = make_proxy(resolve=dict.fromkeys(names, secure_server.address), ca_file=str(authority.file))
    return Jail(proxy, ["one.example", "one.example:8443", "two.example"], [secret()])


def echo(handler: BaseHTTPRequestHandler) -> None:
    """Gives back everything it was sent."""
    told = {"target": handler.path, "headers": dict(handler.headers.items())}
    body = json.dumps(told).encode()
    handler.send_response(200)
    handler.send_header("X-Echo", handler.headers.get("X-Token", ""))
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def test_the_value_is_put_into_headers_and_query(jail: Jail, secure_server: Server) -> None:
    answer = jail.get(
        f"/to/one.example/v1/{PLACEHOLDER}?key={PLACEHOLDER}&q=1",
        f"Authorization: Bearer {PLACEHOLDER}",
        f"X-Both: {PLACEHOLDER},{PLACEHOLDER}",
        "Accept-Encoding: gzip",
        "Range: bytes=0-3",
    )

    assert answer.status == 200
    assert secure_server.last.target == f"/v1/{PLACEHOLDER}?key=s3cr3t%2Fvalue%2Bof%3Done&q=1"
    assert secure_server.last.headers == {
        "host": ["one.example"],
        "authorization": [f"Bearer {VALUE}"],
        "x-both": [f"{VALUE},{VALUE}"],
        "accept-encoding": ["identity"],
        "connection": ["close"],
    }


def test_the_value_is_put_into_a_password(jail: Jail, secure_server: Server) -> None:
    for user in (PLACEHOLDER, f"me:{PLACEHOLDER}", "me:other"):
        jail.get("/to/one.example", f"Authorization: basic {base64.b64encode(user.encode()).decode()}")
    jail.get("/to/one.example", "Authorization: Basic not base64!")

    sent = [request.header("authorization") for request in secure_server.requests]
    plain = [base64.b64decode(str(value).partition(" ")[2]).decode() for value in sent[:3]]
    assert (plain, sent[3]) == ([VALUE, f"me:{VALUE}", "me:other"], "Basic not base64!")


def test_the_value_is_never_put_into_a_body(jail: Jail, secure_server: Server) -> None:
    body = f'{{"token": "{PLACEHOLDER}"}}'

    jail.ask(f"POST /to/one.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n{body}")

    assert secure_server.last.body == body.encode()


@pytest.mark.parametrize("host", ["two.example", "one.example:8443"])
def test_another_host_gets_a_meaningless_word(jail: Jail, secure_server: Server, host: str) -> None:
    secure_server.answer_with("/", echo)

    answer = jail.get(f"/to/{host}/?k={PLACEHOLDER}", f"X-Token: {PLACEHOLDER}", "Accept-Encoding: gzip")

    assert (secure_server.last.target, secure_server.last.header("x-token")) == (f"/?k={PLACEHOLDER}", PLACEHOLDER)
    assert secure_server.last.header("accept-encoding") == ("gzip" if host == "two.example" else "identity")
    assert VALUE not in answer.body.decode()


@pytest.mark.parametrize("asked", ["one.example:443", "one.example:8443"])
def test_there_is_no_tunnel_to_a_host_that_has_a_secret(jail: Jail, secure_server: Server, asked: str) -> None:
    answer = jail.ask(f"CONNECT {asked} HTTP/1.1\r\nHost: a\r\n\r\n")

    assert (answer.status, secure_server.connections) == (403, 0)
    assert b"GLEE_URL_" in answer.body


def test_what_the_host_was_told_by_tls_does_not_come_back_in_the_clear(server: Server, make_proxy: MakeProxy) -> None:
    server.answer("/", VALUE)
    jail = Jail(make_proxy(resolve={"one.example": server.address}), ["one.example"], [secret()])

    assert jail.get("http://one.example/").body == PLACEHOLDER.encode()


def test_nothing_is_put_into_a_request_in_the_clear(server: Server, make_proxy: MakeProxy) -> None:
    jail = Jail(make_proxy(resolve={"one.example": server.address}), ["one.example"], [secret("one.example:80")])

    jail.get(f"http://one.example/?k={PLACEHOLDER}", f"X-Token: {PLACEHOLDER}")

    assert (server.last.target, server.last.header("x-token")) == (f"/?k={PLACEHOLDER}", PLACEHOLDER)


def test_each_secret_goes_to_its_own_host_and_port(
    secure_server: Server, authority: Authority, make_proxy: MakeProxy
) -> None:
    proxy = make_proxy(
        resolve={"one.example": secure_server.address, "two.example": secure_server.address},
        ca_file=str(authority.file),
    )
    secrets = [secret(), secret("two.example:8443", value=f"x{PLACEHOLDER}x", placeholder=OTHER)]
    jail = Jail(proxy, ["one.example", "two.example:8443"], secrets)

    for host in ("one.example", "two.example:8443"):
        jail.get(f"/to/{host}/", f"X-Token: {PLACEHOLDER} {OTHER}")

    sent = [(request.header("host"), request.header("x-token")) for request in secure_server.requests]
    assert sent == [
        ("one.example", f"{VALUE} {OTHER}"),
        ("two.example:8443", f"{PLACEHOLDER} x{PLACEHOLDER}x"),
    ]


def test_a_host_that_is_not_permitted_is_refused_although_a_secret_belongs_to_it(
    secure_server: Server, make_proxy: MakeProxy
) -> None:
    jail = Jail(make_proxy(resolve={"slack.com": secure_server.address}), ["one.example"], [secret("slack.com")])

    answer = jail.get("/to/slack.com/", f"X-Token: {PLACEHOLDER}")

    reason = 'add "slack.com" under permissions.network.hosts'
    assert (answer.status, answer.headers["x-glee"], secure_server.connections) == (403, "refused", 0)
    assert jail.refused == [Attempt(host="slack.com", port=443, reason=reason)]


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_client_that_asks_the_proxy_for_the_proxy_is_understood(jail: Jail, secure_server: Server, name: str) -> None:
    answer = jail.get(f"http://{name}:{jail.address[1]}/to/one.example/x", f"X-Token: {PLACEHOLDER}")

    assert (answer.status, secure_server.last.target, secure_server.last.header("x-token")) == (200, "/x", VALUE)


def test_a_certificate_that_nobody_vouches_for_gets_no_secret(secure_server: Server, make_proxy: MakeProxy) -> None:
    jail = Jail(make_proxy(resolve={"one.example": secure_server.address}), ["one.example"], [secret()])

    answer = jail.get("/to/one.example/", f"X-Token: {PLACEHOLDER}")

    assert (answer.status, secure_server.requests, jail.refused) == (502, [], [])
    assert answer.body.startswith(b"glee: no connection to one.example:443: its certificate is not believed: ")


def test_a_certificate_for_another_name_gets_no_secret(
    secure_server: Server, authority: Authority, make_proxy: MakeProxy
) -> None:
    proxy = make_proxy(resolve={"three.example": secure_server.address}, ca_file=str(authority.file))
    jail = Jail(proxy, ["three.example"], [secret("three.example")])

    assert (jail.get("/to/three.example/").status, secure_server.requests) == (502, [])


def test_what_is_not_tls_gets_no_secret(server: Server, make_proxy: MakeProxy) -> None:
    jail = Jail(make_proxy(resolve={"one.example": server.address}), ["one.example"], [secret()])

    answer = jail.get("/to/one.example/", f"X-Token: {PLACEHOLDER}")

    assert (answer.status, server.requests) == (502, [])
    assert answer.body.startswith(b"glee: no connection to one.example:443: TLS failed: ")


def test_an_echo_gives_the_placeholder_back(jail: Jail, secure_server: Server) -> None:
    secure_server.answer_with("/", echo)
    token = base64.b64encode(f"me:{PLACEHOLDER}".encode()).decode()

    answer = jail.get(f"/to/one.example/?k={PLACEHOLDER}", f"X-Token: {PLACEHOLDER}", f"Authorization: Basic {token}")

    told = json.loads(answer.body)
    assert (told["target"], told["headers"]["X-Token"], told["headers"]["Authorization"]) == (
        f"/?k={PLACEHOLDER}",
        PLACEHOLDER,
        f"Basic {token}",
    )
    assert (answer.headers["x-echo"], "content-length" in answer.headers) == (PLACEHOLDER, False)


def test_an_echo_in_pieces_gives_the_placeholder_back(
    make_far: MakeFar, make_proxy: MakeProxy, authority: Authority
) -> None:
    said = f"a {VALUE} b {VALUE[:5]}{VALUE} c {VALUE[:-1]}".encode()

    def script(connection: socket.socket) -> None:
        read_until(connection, b"\r\n\r\n")
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for byte in said:
            connection.sendall(b"1\r\n%c\r\n" % byte)
        connection.sendall(f"0\r\nX-Trailer: {VALUE}\r\n\r\n".encode())

    far = make_far(script, authority.context("one.example"))
    proxy = make_proxy(resolve={"one.example": far.address}, ca_file=str(authority.file))

    answer = Jail(proxy, ["one.example"], [secret()]).get("/to/one.example/")

    assert answer.body.decode() == f"a {PLACEHOLDER} b {VALUE[:5]}{PLACEHOLDER} c {VALUE[:-1]}"
    assert answer.headers == {"transfer-encoding": "chunked", "connection": "close"}


def test_reason_and_headers_give_the_placeholder_back(
    make_far: MakeFar, make_proxy: MakeProxy, authority: Authority
) -> None:
    value = "Plain-Value"
    head = f"HTTP/1.1 404 No {value}\r\nX-{value}: 1\r\nLocation: https://two.example/?k={value}\r\n"
    far = make_far(sends(f"{head}Content-Length: 0\r\n\r\n".encode()), authority.context("one.example"))
    proxy = make_proxy(resolve={"one.example": far.address}, ca_file=str(authority.file))
    jail = Jail(proxy, ["one.example"], [secret(value=value)])

    with jail.connect() as tool:
        tool.sendall(b"GET /to/one.example/ HTTP/1.0\r\n\r\n")
        head = read_until(tool, b"\r\n\r\n").decode()

    location = f"https://two.example/?k={PLACEHOLDER}"
    assert head == f"HTTP/1.1 404 No {PLACEHOLDER}\r\nLocation: {location}\r\nConnection: close\r\n\r\n"


def test_an_answer_that_could_hide_the_value_is_not_passed_on(jail: Jail, secure_server: Server) -> None:
    secure_server.answer("/", f"token {VALUE}", compress=True)

    answer = jail.get("/to/one.example/")

    said = b"glee: one.example:443 answered in an encoding that was not asked for\n"
    assert (answer.status, answer.body) == (502, said)


def test_a_redirect_is_given_to_the_tool_as_it_is(jail: Jail, secure_server: Server) -> None:
    secure_server.answer("/", b"", status=302, headers={"Location": "https://evil.example/?next=1"})

    answer = jail.get("/to/one.example/")

    assert (answer.status, answer.headers["location"]) == (302, "https://evil.example/?next=1")
    assert len(secure_server.requests) == 1


def test_a_head_request_keeps_the_length_of_what_it_would_have_got(jail: Jail, secure_server: Server) -> None:
    secure_server.answer("/", b"12345")

    answer = jail.ask("HEAD /to/one.example/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")

    assert (answer.status, answer.headers["content-length"]) == (200, "5")


def test_neither_values_nor_queries_are_logged_or_shown(jail: Jail, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    jail.get(f"/to/one.example/?hidden={PLACEHOLDER}", f"X-Token: {PLACEHOLDER}")

    assert (VALUE in caplog.text, "hidden" in caplog.text) == (False, False)
    assert repr(secret()) == "<Injected TOKEN for one.example>"


@pytest.mark.parametrize("value", ["", "a\nb", "a\r\nX: b", "a\0", " a", "a "])
def test_a_value_that_cannot_stand_in_a_header_opens_no_gate(make_proxy: MakeProxy, value: str) -> None:
    with pytest.raises(ConfigError, match=r"^the secret TOKEN is empty, or holds a line break"):
        Jail(make_proxy(), ["one.example"], [secret(value=value)])


@pytest.mark.parametrize(
    "broken", [secret(placeholder=""), secret(placeholder="a b"), secret(host="https://one.example")]
)
def test_a_secret_without_a_word_or_a_host_opens_no_gate(make_proxy: MakeProxy, broken: Injected) -> None:
    with pytest.raises(ValueError, match=r"^the placeholder of TOKEN|is not a port$"):
        Jail(make_proxy(), ["one.example"], [broken])


def test_a_broken_authority_file_opens_no_gate(make_proxy: MakeProxy) -> None:
    with pytest.raises(ConfigError, match=r"^egress.ca_file /nowhere.pem cannot be read: "):
        Jail(make_proxy(ca_file="/nowhere.pem"), ["one.example"], [secret()])


WORDS = st.dictionaries(st.text("ab", min_size=1, max_size=4).map(str.encode), st.just(b"-"), min_size=1, max_size=4)


@given(WORDS, st.text("abc", max_size=40).map(str.encode), st.data())
def test_a_veil_hides_the_same_however_the_stream_is_cut(
    words: dict[bytes, bytes], text: bytes, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    veil = Veil(words)

    shown = b"".join([*map(veil.feed, pieces), veil.finish()])

    assert shown == Veil(words).whole(text)


@given(WORDS, st.text("abc", max_size=40).map(str.encode))
def test_a_veil_holds_back_less_than_a_word(words: dict[bytes, bytes], text: bytes) -> None:
    veil = Veil(dict.fromkeys(words, b""))

    shown = veil.feed(text) + veil.finish()

    assert len(veil.feed(text)) > len(shown) - max(map(len, words))

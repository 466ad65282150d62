"""Which server a ClientHello asks for, however it is cut up, and what is not a ClientHello."""

from __future__ import annotations

import contextlib

import pytest
from hellos import build_hello, client_hello, extension, fragment, server_name, to_record
from hypothesis import given
from hypothesis import strategies as st

from glee.egress.hello import Hello, read_hello

HELLO = client_hello("one.example")


@pytest.mark.parametrize(
    ("data", "hello"),
    [
        (HELLO, Hello("one.example")),
        (client_hello("ONE.example"), Hello("one.example")),
        (client_hello(None), Hello(None)),
        (HELLO + b"\x17\3\3 early data", Hello("one.example")),
        (build_hello(extension(5, b"x"), server_name(b"a.example")), Hello("a.example")),
        (build_hello(), Hello(None)),
    ],
)
def test_the_server_is_read(data: bytes, hello: Hello) -> None:
    assert read_hello(data) == hello


def test_a_hello_of_before_extensions_names_no_server() -> None:
    body = b"\3\3" + bytes(32) + b"\0" + b"\0\2\x13\1" + b"\1\0"

    assert read_hello(to_record(b"\1" + len(body).to_bytes(3) + body)) == Hello(None)


@given(st.integers(1, 600), st.data())
def test_any_cut_gives_the_same_answer_once_it_is_whole(size: int, data: st.DataObject) -> None:
    whole = fragment(HELLO, size)
    part = whole[: data.draw(st.integers(0, len(whole) - 1))]

    assert read_hello(part) is None
    assert read_hello(whole) == Hello("one.example")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"GET / HTTP/1.1\r\n", "it is not a TLS handshake"),
        (b"\x16\2\1\0\1\1", "it is not a TLS handshake"),
        (b"\x16\3\1\0\0", "a record has no possible length"),
        (b"\x16\3\1\x40\1", "a record has no possible length"),
        (to_record(b"\2\0\0\0"), "it is not a ClientHello"),
        (to_record(b"\1\1\0\0"), "its length is not what it says"),
        (to_record(HELLO[5:] + b"\0"), "its length is not what it says"),
        (to_record(HELLO[5:20]) + b"\x17\3\1\0\1x", "it is not a TLS handshake"),
        (to_record(b"\1\0\0\1x"), "it ends too early"),
        (build_hello(server_name(b"a.example"), server_name(b"b.example")), "an extension stands there twice"),
        (build_hello(server_name(b"a.example", b"b.example")), "something follows where nothing may"),
        (build_hello(server_name(b"a.example", kind=1)), "the server is named by something else than a host name"),
        (build_hello(server_name(b"")), "the server's name is not a host name"),
        (build_hello(server_name(b"a\0.example")), "the server's name is not a host name"),
        (build_hello(server_name("ä.example".encode())), "the server's name is not a host name"),
        (build_hello(extension(0, b"")), "it ends too early"),
        (build_hello(extension(0, b"\0\0")), "it ends too early"),
        (build_hello(extension(0, b"\0\0x")), "something follows where nothing may"),
        (build_hello(b"\0\0\0\x50x"), "it ends too early"),
        (to_record(b"\1\0\x3f\0" + bytes(100)) + b"".join(to_record(b"x") for _ in range(2800)), "it is too long"),
    ],
)
def test_what_is_not_a_client_hello_is_explained(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}$"):
        read_hello(data)


@given(st.binary(max_size=200) | st.binary(max_size=200).map(to_record) | st.binary(max_size=99).map(build_hello))
def test_no_bytes_do_more_than_fail(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(read_hello(data), Hello | None)

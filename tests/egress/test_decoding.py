"""Compressed bodies, honest and hostile."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest

from glee.egress.decoding import Overflow, decode_body

LIMIT = 1_000_000


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("data", "encodings"),
    [
        (b"hello", ""),
        (b"hello", "identity"),
        (gzip.compress(b"hello"), "gzip"),
        (gzip.compress(b"hello"), "X-GZIP"),
        (zlib.compress(b"hello"), "deflate"),
        (raw_deflate(b"hello"), "deflate"),
        (gzip.compress(zlib.compress(b"hello")), "deflate, gzip"),
        (gzip.compress(b"hel") + gzip.compress(b"lo"), "gzip"),
        (gzip.compress(b"hel") + gzip.compress(b"") + gzip.compress(b"lo") + b"\0" * 512, "gzip"),
    ],
)
def test_what_the_header_says_is_taken_off(data: bytes, encodings: str) -> None:
    assert decode_body(data, encodings, LIMIT) == b"hello"


@pytest.mark.parametrize("encodings", ["gzip", "gzip, gzip", "gzip, gzip, gzip"])
def test_a_bomb_is_stopped_at_the_limit_without_being_unpacked(encodings: str) -> None:
    bomb = b"\0" * 50_000_000
    for _ in encodings.split(","):
        bomb = gzip.compress(bomb)
    tracemalloc.start()
    try:
        with pytest.raises(Overflow):
            decode_body(bomb, encodings, LIMIT)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 5 * LIMIT


@pytest.mark.parametrize(("data", "encodings"), [(b"hello", "gzip"), (b"hello", "deflate"), (b"hello", "br")])
def test_what_cannot_be_taken_off_is_a_fault(data: bytes, encodings: str) -> None:
    with pytest.raises(ValueError, match=r"not gzip|not deflate|was not asked for"):
        decode_body(data, encodings, LIMIT)


PACKED = {"gzip": gzip.compress(b"hello" * 100), "deflate": zlib.compress(b"hello" * 100)}


@pytest.mark.parametrize("encoding", PACKED)
@pytest.mark.parametrize("missing", [1, 4, 8])
def test_what_was_cut_off_on_the_way_is_a_fault(encoding: str, missing: int) -> None:
    with pytest.raises(ValueError, match=f"^the body is not {encoding}: "):
        decode_body(PACKED[encoding][:-missing], encoding, LIMIT)


def test_a_bomb_in_several_parts_is_stopped_at_the_limit() -> None:
    with pytest.raises(Overflow):
        decode_body(gzip.compress(b"\0" * (LIMIT // 2 + 1)) * 2, "gzip", LIMIT)


def test_an_empty_body_has_nothing_to_take_off() -> None:
    assert decode_body(b"", "gzip", LIMIT) == b""

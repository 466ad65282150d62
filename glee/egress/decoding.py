"""Compressed responses, unpacked up to a limit: a few hundred bytes can hold gigabytes."""

from __future__ import annotations

import zlib
from typing import Final

_EITHER: Final = 47
"""For zlib: gzip or zlib, told apart by the header."""
_PIECE: Final = 4096
_RAW: Final = -15
"""For zlib: deflate without a header, as some servers send it."""


class Overflow(Exception):
    """There is more than the limit."""


def decode_body(data: bytes, encodings: str, limit: int) -> bytes:
    """Takes off what Content-Encoding says, the last first. ValueError for what cannot be taken off."""
    for encoding in reversed([word.strip().lower() for word in encodings.split(",")]):
        if encoding in ("", "identity"):
            continue
        if encoding not in ("gzip", "x-gzip", "deflate"):
            raise ValueError(f"the encoding {encoding} was not asked for")
        data = _inflate(data, encoding, limit)
    if len(data) > limit:
        raise Overflow
    return data


def _inflate(data: bytes, encoding: str, limit: int) -> bytes:
    if not data:
        return data
    try:
        return _unpack(data, _EITHER, limit)
    except zlib.error as error:
        if encoding != "deflate":
            raise ValueError(f"the body is not {encoding}: {error}") from error
    try:
        return _unpack(data, _RAW, limit)
    except zlib.error as error:
        raise ValueError(f"the body is not {encoding}: {error}") from error


def _unpack(data: bytes, window: int, limit: int) -> bytes:
    """All of its members; one that ends too early was cut off on the way. In small pieces, which copies least."""
    unpacked = bytearray()
    unpacker = None
    for start in range(0, len(data), _PIECE):
        piece = data[start : start + _PIECE]
        while piece := piece if unpacker else piece.lstrip(b"\0"):
            unpacker = unpacker or zlib.decompressobj(window)
            unpacked += unpacker.decompress(piece, limit + 1 - len(unpacked))
            if len(unpacked) > limit:
                raise Overflow
            piece = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
            unpacker = None if unpacker.eof else unpacker
    if unpacker is not None:
        raise zlib.error("it ends too early")
    return bytes(unpacked)

"""The first words of TLS: which server a ClientHello asks for, read strictly and without answering it."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

HANDSHAKE: Final = 0x16
"""The first byte of every TLS connection."""
MAX_BYTES: Final = 16_384
_CLIENT_HELLO: Final = 1
_SERVER_NAME: Final = 0
_HOST_NAME: Final = 0


class Hello(Struct, frozen=True):
    """What a ClientHello says in the clear."""

    server_name: str | None
    """Lower case; None if it names no server."""


def read_hello(data: bytes) -> Hello | None:
    """None while more bytes are needed; a ValueError says why it is not a ClientHello."""
    message = _join_records(data)
    if message is not None:
        return Hello(_find_server_name(message))
    if len(data) > MAX_BYTES:
        raise ValueError("it is too long")
    return None


def _join_records(data: bytes) -> bytes | None:
    """The handshake message, which may be spread over several records; it fills the last of them."""
    message = b""
    while data:
        if data[0] != HANDSHAKE or (len(data) > 1 and data[1] != 3):
            raise ValueError("it is not a TLS handshake")
        length = int.from_bytes(data[3:5])
        if len(data) >= 5 and not 0 < length <= MAX_BYTES:
            raise ValueError("a record has no possible length")
        if len(data) < 5 + length:
            return None
        message, data = message + data[5 : 5 + length], data[5 + length :]
        if message[0] != _CLIENT_HELLO:
            raise ValueError("it is not a ClientHello")
        if len(message) >= 4:
            wanted = 4 + int.from_bytes(message[1:4])
            if wanted > MAX_BYTES or len(message) > wanted:
                raise ValueError("its length is not what it says")
            if len(message) == wanted:
                return message[4:]
    return None


def _find_server_name(message: bytes) -> str | None:
    fields = _Fields(message)
    fields.take(2 + 32)
    fields.take_sized(1)
    fields.take_sized(2)
    fields.take_sized(1)
    if fields.is_done():
        return None
    extensions = _Fields(fields.take_sized(2))
    fields.check_done()
    found: dict[int, bytes] = {}
    while not extensions.is_done():
        kind = int.from_bytes(extensions.take(2))
        if kind in found:
            raise ValueError("an extension stands there twice")
        found[kind] = extensions.take_sized(2)
    return _read_name(found[_SERVER_NAME]) if _SERVER_NAME in found else None


def _read_name(extension: bytes) -> str:
    """The list has one entry: with two, servers differ in which they take."""
    fields = _Fields(extension)
    names = _Fields(fields.take_sized(2))
    fields.check_done()
    if names.take(1) != bytes([_HOST_NAME]):
        raise ValueError("the server is named by something else than a host name")
    name = names.take_sized(2)
    names.check_done()
    if not name or not all(0x20 < byte < 0x7F for byte in name):
        raise ValueError("the server's name is not a host name")
    return name.decode("ascii").lower()


class _Fields:
    """Bytes taken from the front, never more than there are."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        if self._at + count > len(self._data):
            raise ValueError("it ends too early")
        self._at += count
        return self._data[self._at - count : self._at]

    def take_sized(self, width: int) -> bytes:
        """A field that begins with its own length in so many bytes."""
        return self.take(int.from_bytes(self.take(width)))

    def is_done(self) -> bool:
        return self._at == len(self._data)

    def check_done(self) -> None:
        if not self.is_done():
            raise ValueError("something follows where nothing may")

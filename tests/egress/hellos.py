"""ClientHellos as OpenSSL writes them, and in pieces."""

from __future__ import annotations

import contextlib
import ssl


def client_hello(name: str | None) -> bytes:
    """The first flight of a client that asks for this server, as one TLS record."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    outgoing = ssl.MemoryBIO()
    connection = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


def fragment(record: bytes, size: int) -> bytes:
    """The same handshake in many small records."""
    message = record[5:]
    pieces = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(record[:3] + len(piece).to_bytes(2) + piece for piece in pieces)


def build_hello(*extensions: bytes) -> bytes:
    """A ClientHello by hand, with these extensions."""
    listed = b"".join(extensions)
    body = b"\3\3" + bytes(32) + b"\0" + b"\0\2\x13\1" + b"\1\0" + len(listed).to_bytes(2) + listed
    return to_record(b"\1" + len(body).to_bytes(3) + body)


def to_record(message: bytes) -> bytes:
    return b"\x16\3\1" + len(message).to_bytes(2) + message


def extension(kind: int, data: bytes) -> bytes:
    return kind.to_bytes(2) + len(data).to_bytes(2) + data


def server_name(*names: bytes, kind: int = 0) -> bytes:
    entries = b"".join(bytes([kind]) + len(name).to_bytes(2) + name for name in names)
    return extension(0, len(entries).to_bytes(2) + entries)

"""Secrets that a tool never sees: put into its requests on the way out, taken from the answers on the way back."""

from __future__ import annotations

import base64
import binascii
import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

from msgspec import Struct

from glee.definitions.hosts import parse_authority
from glee.errors import ConfigError

Headers = list[tuple[bytes, bytes]]


class Injected(Struct, frozen=True, kw_only=True):
    """A secret, the word that stands for it in the jail, and the one host that may have it."""

    name: str
    value: str
    placeholder: str
    host: str
    """`api.example.com`, or with a port; without one it is 443."""

    def __repr__(self) -> str:
        return f"<Injected {self.name} for {self.host}>"

    def belongs_to(self, host: str, port: int) -> bool:
        own, own_port = parse_authority(self.host)
        return (own, own_port or 443) == (host, port)


def check_injected(secrets: Iterable[Injected]) -> None:
    """A ConfigError for a value that cannot stand in a header, where it would be cut or add another."""
    for secret in secrets:
        if not secret.value.isprintable() or secret.value != secret.value.strip() or not secret.value:
            raise ConfigError(
                f"the secret {secret.name} is empty, or holds a line break, a control character or a space at its end, "
                "and cannot stand in a request; set it again without"
            )
        if not re.fullmatch(r"[A-Za-z0-9._~-]+", secret.placeholder):
            raise ValueError(f"the placeholder of {secret.name} is not a word of letters, digits and ._~-")
        parse_authority(secret.host)


class Injection:
    """The secrets of one host, for one request and its answer."""

    def __init__(self, secrets: Sequence[Injected]) -> None:
        self._values = {secret.placeholder.encode(): secret.value.encode() for secret in secrets}
        self._words = _compile(self._values)
        self._back: dict[bytes, bytes] = {}
        for secret in secrets:
            forms = (secret.value, quote(secret.value, safe=""), json.dumps(secret.value)[1:-1])
            self._back |= dict.fromkeys((form.encode() for form in forms), secret.placeholder.encode())

    def fill_headers(self, headers: Headers) -> Headers:
        return [(name, self._fill_header(name.lower(), value)) for name, value in headers]

    def fill_target(self, target: bytes) -> bytes:
        """The query alone: a path is what servers write into their logs."""
        path, mark, query = target.partition(b"?")
        return path + mark + self._words.sub(lambda word: quote(self._values[word[0]], safe="").encode(), query)

    def veil(self) -> Veil:
        """What hides in the answer all that was put in; ask once the request is filled."""
        return Veil(self._back)

    def _fill_header(self, name: bytes, value: bytes) -> bytes:
        scheme, _, token = value.partition(b" ")
        if name == b"authorization" and scheme.lower() == b"basic":
            return scheme + b" " + self._fill_basic(token.strip())
        return self._fill(value)

    def _fill_basic(self, token: bytes) -> bytes:
        """User and password are base64 together, so that a placeholder does not show in them."""
        try:
            plain = base64.b64decode(token, validate=True)
        except binascii.Error:
            return token
        filled = self._fill(plain)
        if filled == plain:
            return token
        sent = base64.b64encode(filled)
        self._back[sent] = token
        return sent

    def _fill(self, text: bytes) -> bytes:
        return self._words.sub(lambda word: self._values[word[0]], text)


class Veil:
    """Replaces words in a stream, also where one straddles two pieces."""

    def __init__(self, words: Mapping[bytes, bytes]) -> None:
        self._words = dict(words)
        self._pattern = _compile(words)
        self._longest = max(map(len, words))
        self._held = b""

    def whole(self, text: bytes) -> bytes:
        return self._pattern.sub(lambda word: self._words[word[0]], text)

    def feed(self, data: bytes) -> bytes:
        """What can be said already. An end that may be the beginning of a word is held back."""
        data = self._held + data
        openings = self._find_openings(data)
        pieces, start, end = [], 0, 0
        while True:
            at = bisect_left(openings, start)
            end = openings[at] if at < len(openings) else len(data)
            found = self._pattern.search(data, start)
            if found is None or found.start() >= end:
                break
            pieces += [data[start : found.start()], self._words[found[0]]]
            start = found.end()
        self._held = data[end:]
        return b"".join([*pieces, data[start:end]])

    def finish(self) -> bytes:
        """What was held back."""
        held, self._held = self._held, b""
        return self.whole(held)

    def _find_openings(self, data: bytes) -> list[int]:
        """Where the rest of the data is the beginning of a word, and not the whole."""
        places = range(max(0, len(data) - self._longest + 1), len(data))
        return [at for at in places if self._may_open(data, at)]

    def _may_open(self, data: bytes, at: int) -> bool:
        length = len(data) - at
        return any(word[0] == data[at] and len(word) > length and data.endswith(word[:length]) for word in self._words)


def _compile(words: Iterable[bytes]) -> re.Pattern[bytes]:
    """The longest first, so that a word is not taken for the beginning of another."""
    return re.compile(b"|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)))

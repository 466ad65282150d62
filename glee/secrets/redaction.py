"""Secret values taken out of whatever leaves a call: text, JSON, bytes, in the forms they commonly take."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote, quote_plus

from glee.definitions.json_text import decode_json, encode_json, to_json_value

MARK: Final = "[secret]"
_URL_SAFE: Final = str.maketrans("+/", "-_")


class Redactor:
    """Knows some values and replaces them wherever they stand, plain, quoted, percent- or base64-encoded."""

    __slots__ = ("_bytes", "_text")

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values if value for form in _forms(value)}
        longest_first = sorted(forms, key=len, reverse=True)
        pattern = "|".join(map(re.escape, longest_first))
        self._text = re.compile(pattern) if forms else None
        self._bytes = re.compile(pattern.encode("utf-8", "surrogateescape")) if forms else None

    def text(self, text: str) -> str:
        return self._text.sub(MARK, text) if self._text else text

    def data(self, data: bytes) -> bytes:
        return self._bytes.sub(MARK.encode(), data) if self._bytes else data

    def value(self, value: Any) -> Any:
        """Through and through a JSON value, keys and numbers included."""
        if self._text is None:
            return value
        try:
            return self._walk(value)
        except RecursionError:  # nested deeper than Python walks, but not than JSON is written
            return decode_json(self.text(encode_json(value).decode()))

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self._walk(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._walk(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return MARK if self._holds(value) else value
        if value is None or isinstance(value, bool):
            return value
        return self._walk(to_json_value(value))

    def _holds(self, number: float) -> bool:
        try:
            return self._text is not None and self._text.search(f"{number} {encode_json(number).decode()}") is not None
        except ValueError:  # a number of thousands of digits
            return False

    def __repr__(self) -> str:
        return "<Redactor>"


NOTHING = Redactor(())


def _forms(value: str) -> set[str]:
    raw = value.encode("utf-8", "surrogateescape")
    forms = {value, raw.decode("utf-8", "replace"), repr(value)[1:-1], repr(raw)[2:-1]}
    for percent in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        forms |= {percent, re.sub("%..", lambda code: code[0].lower(), percent)}
    for quoted in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        forms |= {quoted, quoted.replace("/", "\\/")}
    forms.add(value.replace("~", "~0").replace("/", "~1"))  # in a JSON pointer
    if value.strip():
        forms.add(value.strip())  # in a header
    if len(value) >= 4:
        forms |= _base64_forms(raw) | {raw.hex(), raw.hex().upper()}
    return forms


def _base64_forms(raw: bytes) -> set[str]:
    """As it stands alone, and the part that stays the same wherever it stands in a longer text."""
    forms = {base64.b64encode(raw).decode(), base64.b64encode(raw).decode().rstrip("=")}
    for offset in (1, 2):
        encoded = base64.b64encode(b"\0" * offset + raw).decode().rstrip("=")
        inner = encoded[offset + 1 : len(encoded) - len(encoded) % 4]
        if len(inner) >= 8:
            forms.add(inner)
    aligned = base64.b64encode(raw[: len(raw) - len(raw) % 3]).decode()
    if len(aligned) >= 8:
        forms.add(aligned)
    return forms | {form.translate(_URL_SAFE) for form in forms}

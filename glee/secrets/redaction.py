"""Secret values taken out of whatever leaves a call: text, JSON, bytes, in the forms they commonly take."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote, quote_plus

MARK: Final = "[secret]"


class Redactor:
    """Knows some values and replaces them wherever they stand, plain, quoted, percent- or base64-encoded."""

    __slots__ = ("_bytes", "_text")

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values if value for form in _forms(value)}
        longest_first = sorted(forms, key=len, reverse=True)
        pattern = "|".join(map(re.escape, longest_first))
        self._text = re.compile(pattern) if forms else None
        self._bytes = re.compile(pattern.encode()) if forms else None

    def text(self, text: str) -> str:
        return self._text.sub(MARK, text) if self._text else text

    def data(self, data: bytes) -> bytes:
        return self._bytes.sub(MARK.encode(), data) if self._bytes else data

    def value(self, value: Any) -> Any:
        """Through and through a JSON value, keys and numbers included."""
        if self._text is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return MARK if self._text.fullmatch(str(value)) else value
        return value

    def __repr__(self) -> str:
        return "<Redactor>"


NOTHING = Redactor(())


def _forms(value: str) -> set[str]:
    raw = value.encode("utf-8", "surrogateescape")
    forms = {value, quote(value, safe=""), quote(value), quote_plus(value), json.dumps(value)[1:-1]}
    forms.add(json.dumps(value, ensure_ascii=False)[1:-1])
    if len(value) >= 4:
        forms.update(_base64_forms(raw))
        forms.add(raw.hex())
    return forms


def _base64_forms(raw: bytes) -> set[str]:
    """As it stands alone, and the part that stays the same wherever it stands in a longer text."""
    forms = {base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()}
    for offset in (1, 2):
        encoded = base64.b64encode(b"\0" * offset + raw).decode().rstrip("=")
        inner = encoded[offset + 1 : len(encoded) - len(encoded) % 4]
        if len(inner) >= 8:
            forms.add(inner)
    aligned = base64.b64encode(raw[: len(raw) - len(raw) % 3]).decode()
    if len(aligned) >= 8:
        forms.add(aligned)
    return forms

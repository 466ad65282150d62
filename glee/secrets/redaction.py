"""Secret values taken out of whatever leaves a call: text, JSON, bytes, in the forms they commonly take."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Any, Final

from glee.definitions.json_text import decode_json, encode_json, to_json_value

MARK: Final = "[secret]"
_URL_SAFE: Final = str.maketrans("+/", "-_")
_RETURN: Final = "\r"
_BACKSLASHES: Final = r"(?:\\+|(?:%5[cC]|&#0*92;|&#[xX]0*5[cC];|\\{1,2}x5[cC]|\\{1,2}u005[cC])+)"
"""A run of them: escaping doubles it, perhaps more than once, so any run may stand for any other."""
_SHORT: Final = {"\n": "n", "\t": "t", "\r": "r", "\b": "b", "\f": "f"}
_NAMED: Final = {
    "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;", " ": r"\+", "~": "~0", "/": "~1",
}  # fmt: skip


class Redactor:
    """Knows some values and replaces them wherever they stand, plain, quoted, percent- or base64-encoded."""

    __slots__ = ("_bytes", "_text")

    def __init__(self, values: Iterable[str]) -> None:
        values = sorted(filter(None, values), key=len, reverse=True)
        forms = {form for value in values for form in _forms(value)}
        longest_first = sorted(forms, key=len, reverse=True)
        mixed = [_in_any_mix(text) for value in values for text in dict.fromkeys((value, value.strip())) if text]
        pattern = "|".join((*mixed, *map(re.escape, longest_first)))
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
            return self._walk_object(value)
        if isinstance(value, list | tuple):
            return [self._walk(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return MARK if self._holds(value) else value
        if value is None or isinstance(value, bool):
            return value
        try:
            return self._walk(to_json_value(value))
        except TypeError:
            return self.text(str(value))

    def _walk_object(self, value: dict[Any, Any]) -> dict[str, Any]:
        """Two keys that come to look the same are told apart by a number."""
        walked: dict[str, Any] = {}
        for key, item in value.items():
            shown = text = self.text(str(key))
            count = 1
            while shown in walked:
                count += 1
                shown = f"{text} {count}"
            walked[shown] = self._walk(item)
        return walked

    def _holds(self, number: float) -> bool:
        try:
            return self._text is not None and self._text.search(f"{number} {encode_json(number).decode()}") is not None
        except ValueError:  # a number of thousands of digits
            return False

    def __repr__(self) -> str:
        return "<Redactor>"


NOTHING = Redactor(())


def _in_any_mix(value: str) -> str:
    """Each character as it is or escaped, whatever was done to its neighbours: programs differ in what they escape."""
    value = value.replace("\r\n", "\n")
    return "".join(map(_in_any_form, re.findall(r"\\+|[^\\]", value)))


def _in_any_form(part: str) -> str:
    """One character, or a run of backslashes."""
    if part[0] == "\\":
        return _BACKSLASHES
    return part if part.isascii() and part.isalnum() else f"(?:{'|'.join(_escapes(part))})"


def _escapes(char: str) -> list[str]:
    """As URLs, JSON, Python, HTML and JSON pointers write it; a line's end with whatever indents the next."""
    raw = char.encode("utf-8", "surrogateescape")
    units = char.encode("utf-16-be", "surrogatepass")
    forms = [
        "".join(f"%{_either_case(f'{byte:02x}')}" for byte in raw),
        "".join(rf"\\{{1,2}}x{_either_case(f'{byte:02x}')}" for byte in raw),
        "".join(rf"\\{{1,2}}u{_either_case(units[at : at + 2].hex())}" for at in range(0, len(units), 2)),
        f"&#0*{ord(char)};",
        f"&#[xX]0*{_either_case(f'{ord(char):x}')};",
        rf"\\{re.escape(_SHORT.get(char, char))}",
        re.escape(char),
    ]
    if not char.isascii():
        code = f"x{ord(char):02x}" if ord(char) < 256 else f"U{ord(char):08x}"
        forms.insert(0, rf"\\{{1,2}}{code[0]}{_either_case(code[1:])}")
    if char in _NAMED:
        forms.insert(0, _NAMED[char])
    if char == "\n":
        forms = [rf"(?:{'|'.join(_escapes(_RETURN))})?(?:{'|'.join(forms[:-1])})", r"\r?\n[ \t]*"]
    return forms


def _either_case(digits: str) -> str:
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)


def _forms(value: str) -> set[str]:
    raw = value.encode("utf-8", "surrogateescape")
    forms = {value, raw.decode("utf-8", "replace"), repr(raw)[2:-1]}
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

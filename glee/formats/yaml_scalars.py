"""Plain scalars of YAML 1.2's core schema, with a doubt wherever another reader would see something else."""

from __future__ import annotations

import re
from typing import Any, Final

MAX_DIGITS: Final = 400

AMBIGUOUS: Final = {word for w in ("yes", "no", "on", "off") for word in (w, w.title(), w.upper())}
_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)|0x[0-9a-fA-F]+|0o[0-7]+")
_OLD_OCTAL = re.compile(r"[-+]?0[0-9_]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_INFINITIES = (float("inf"), float("-inf"))

Doubt = tuple[str, str, str]
"""Rule, message, hint."""


def resolve_plain(text: str) -> tuple[Any, Doubt | None]:
    """The value of a scalar without quotes or tag, and what is doubtful about it."""
    if text in _NULLS:
        return None, None
    if text in _BOOLEANS:
        return _BOOLEANS[text], None
    if text[0].isdigit() or text[0] in "+-.":
        return _resolve_number(text)
    if text in AMBIGUOUS:
        meant = "true" if text.lower() in ("yes", "on") else "false"
        message = f"{text} is a boolean to some readers and text to others"
        return text, ("boolean", message, f'write {meant}, or "{text}" in quotes')
    return text, None


def _resolve_number(text: str) -> tuple[Any, Doubt | None]:
    if _INTEGER.fullmatch(text):
        if len(text) <= MAX_DIGITS:
            return int(text, 0), None
        return text, ("number", f"a number of more than {MAX_DIGITS} digits", "write it in quotes")
    if _OLD_OCTAL.fullmatch(text):
        message = f"{text} is octal to some readers and decimal to others"
        return text, ("octal", message, f'write "{text}" in quotes, or the number without the leading zero')
    if _FLOAT.fullmatch(text) and float(text) not in _INFINITIES:
        return float(text), None
    if _NOT_FINITE.fullmatch(text) or _FLOAT.fullmatch(text):
        return text, ("number", f"{text} cannot be written in JSON", "use a finite number, or quotes")
    return text, None

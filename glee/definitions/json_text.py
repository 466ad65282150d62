"""JSON in and out: fast for what nearly everything is, complete for what msgspec leaves out."""

from __future__ import annotations

import contextlib
import json
import math
import os
from typing import Any, TypeVar

import msgspec

_encode = msgspec.json.Encoder(enc_hook=str).encode
_decode = msgspec.json.Decoder().decode
T = TypeVar("T")
_NATIVE = (str, int, bool, type(None))


def _convert(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"a {type(value).__name__} is not JSON")


_encode_strictly = msgspec.json.Encoder(enc_hook=_convert).encode


def encode_json(value: Any) -> bytes:
    """Compact JSON. Whole numbers of any size are kept; values JSON does not know become text."""
    try:
        return _encode(value)
    except OverflowError:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        plain = json.dumps(msgspec.to_builtins(value, str_keys=True, enc_hook=str))
        finite = json.loads(plain, parse_constant=lambda _: None)
        return json.dumps(finite, separators=(",", ":")).encode()


def decode_json(data: bytes | str) -> Any:
    """A JSON value; ValueError if it is none."""
    if not data.strip():
        raise ValueError("it is empty")
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if "\\u" in str(data):
            with contextlib.suppress(ValueError, RecursionError):
                return json.loads(data)  # it knows half a character when it sees one
        raise ValueError(str(error)) from error


def decode_as(data: bytes | str, kind: type[T]) -> T:
    """A value of a type; ValueError if it is none."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        try:
            return msgspec.convert(decode_json(data), kind)
        except ValueError:
            raise ValueError(str(error)) from error


def to_json_value(value: Any) -> Any:
    """A Python value as plain JSON types: dataclasses, dates, enums and the like; else TypeError."""
    if type(value) in _NATIVE:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    try:
        return _decode(_encode_strictly(value))
    except UnicodeEncodeError:
        return json.loads(encode_json(value))
    except RecursionError:
        raise ValueError("the value holds itself, or is nested too deep") from None

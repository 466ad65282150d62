"""JSON in and out, for everything a tool may hand over."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import math
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glee.definitions.json_text import decode_json, encode_json, to_json_value


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Old(str, enum.Enum):  # noqa: UP042
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    tags: list[str]


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        (5, 5),
        (2**70, 2**70),
        ("s", "s"),
        (2.5, 2.5),
        (math.nan, None),
        (math.inf, None),
        (Colour.RED, "red"),
        (Old.RED, "red"),
        (Level.HIGH, 3),
        (Point(1, ["a"]), {"x": 1, "tags": ["a"]}),
        ({1: {2}}, {"1": [2]}),
        (b"x", "eA=="),
        (datetime.date(2024, 1, 2), "2024-01-02"),
        (datetime.datetime(2024, 1, 2, 3, 4, 5), "2024-01-02T03:04:05"),
        (decimal.Decimal("1.50"), "1.50"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Path("a/b"), "a/b"),
        ([Colour.RED, {"p": Path("a")}], ["red", {"p": "a"}]),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_python_value_becomes_plain_json_types(value: Any, plain: Any) -> None:
    converted = to_json_value(value)

    assert (converted, type(converted)) == (plain, type(plain))
    assert decode_json(encode_json(converted)) == plain


def test_a_value_that_holds_itself_is_a_value_error() -> None:
    value: list[Any] = []
    value.append(value)

    with pytest.raises(ValueError, match="holds itself"):
        to_json_value(value)


def test_text_that_is_no_utf8_is_still_written_as_json() -> None:
    assert json.loads(encode_json({"a": ["\ud800", Path("b"), math.nan]})) == {"a": ["\ud800", "b", None]}


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"nul", b"[1,]", b"NaN", b"\xff", b'"\xff"', b"1 2", b"[" * 100_000, '"\ud800"', b"1" + b"0" * 5000],
    ids=lambda data: repr(data[:12]),
)
def test_what_is_not_json_is_a_value_error(data: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_json(data)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=15,
)


@given(json_values)
def test_any_json_value_comes_back(value: Any) -> None:
    assert decode_json(encode_json(value)) == value
    assert json.loads(encode_json(value)) == value
    assert to_json_value(value) == value


@given(st.binary() | st.text())
def test_any_bytes_are_json_or_a_value_error(data: Any) -> None:
    try:
        value = decode_json(data)
    except ValueError:
        return
    assert decode_json(encode_json(value)) == value

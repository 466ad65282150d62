"""What an example expects: `"..."` is any string, a trailing `...` any rest, and a difference is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glee.formats.expectation import ANY_REST, diff, matches, parse_expected, show, without_rest


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ('{"a": [1, "..."]}', {"a": [1, "..."]}),
        ("[...]", [ANY_REST]),
        ("[1, ...]", [1, ANY_REST]),
        ("[1,\n  ...\n]", [1, ANY_REST]),
        ("{...}", {ANY_REST: True}),
        ('{"a": 1, ...}', {"a": 1, ANY_REST: True}),
        ('{"a": [1, ...], ...}', {"a": [1, ANY_REST], ANY_REST: True}),
        ('["[...]", "a, ...]"]', ["[...]", "a, ...]"]),
        (r'["\"", ...]', ['"', ANY_REST]),
        ('["\\\\", ...]', ["\\", ANY_REST]),
    ],
)
def test_a_trailing_rest_is_read_and_strings_are_left_alone(text: str, value: Any) -> None:
    assert parse_expected(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "...", "[..., 1]", "[1 ...]", "[....]", "{...: 1}", "{'a': 1}", "[1,]", '"open', "[" * 50_000, '["\n", ...]'],
    ids=lambda text: text[:12],
)
def test_what_is_not_json_but_for_its_rest_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_expected(text)


@pytest.mark.parametrize(
    "text",
    [
        "[" + " " * 300_000 + "x",
        "." * 300_000,
        '"' + '\\"' * 150_000,
        "[...]," * 60_000,
        '"' * 300_001,
        "... " * 80_000,
        "\\" * 300_000,
    ],
    ids=lambda text: text[:12],
)
def test_no_text_makes_reading_slower_than_its_length(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_expected(text)


@pytest.mark.parametrize(
    ("expected", "actual", "fits"),
    [
        ("5", 5, True),
        ("5", 5.0, True),
        ("5", 6, False),
        ("1", True, False),
        ("true", 1, False),
        ("true", True, True),
        ("null", None, True),
        ("null", False, False),
        ("0", False, False),
        ('"..."', "anything", True),
        ('"..."', "", True),
        ('"..."', "...", True),
        ('"..."', 5, False),
        ('"..."', None, False),
        ('"a..."', "abc", False),
        ('["...", 1]', ["x", 1], True),
        ('["..."]', ["x", "y"], False),
        ("[]", [], True),
        ("[]", [1], False),
        ("[...]", [], True),
        ("[...]", [1, 2], True),
        ("[...]", {}, False),
        ("[1, ...]", [1], True),
        ("[1, ...]", [1, 2, 3], True),
        ("[1, ...]", [2], False),
        ("[1, ...]", [], False),
        ("{}", {}, True),
        ("{}", {"a": 1}, False),
        ("{...}", {"a": 1}, True),
        ("{...}", [], False),
        ('{"a": 1, ...}', {"a": 1, "b": 2}, True),
        ('{"a": 1, ...}', {"b": 2}, False),
        ('{"a": 1, ...}', {"a": 2}, False),
        ('{"a": 1}', {"a": 1, "b": 2}, False),
        ('{"a": {"b": ["...", ...]}}', {"a": {"b": ["x", 1]}}, True),
        ('{"...": 1}', {"a": 1}, False),
        ('[{"title": "..."}, ...]', [{"title": "x"}, {"title": 5}], True),
    ],
)
def test_a_value_fits_or_does_not(expected: str, actual: Any, fits: bool) -> None:
    assert matches(parse_expected(expected), actual) is fits


def test_what_is_spelled_out_is_left_when_the_rest_is_taken_away() -> None:
    assert without_rest(parse_expected('{"a": [1, {"b": 2, ...}, ...], ...}')) == {"a": [1, {"b": 2}]}


def test_an_expectation_is_shown_as_a_person_would_write_it() -> None:
    assert show(parse_expected('{"b": [1, ...], "a": "ü", ...}')) == (
        '{\n  "a": "ü",\n  "b": [\n    1,\n    ...\n  ],\n  ...\n}'
    )


def test_a_difference_is_shown_line_by_line() -> None:
    assert diff("a\nb\nc", "a\nx\nc") == "--- expected\n+++ actual\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c"
    assert diff("a\n", "a") == ""


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)


@given(json_values)
def test_any_json_value_is_what_it_says(value: Any) -> None:
    expected = parse_expected(json.dumps(value, ensure_ascii=False))

    assert expected == value
    assert matches(expected, value)


@given(st.lists(json_values, max_size=4), st.lists(json_values, max_size=4))
def test_a_list_with_a_rest_fits_every_longer_list(start: list[Any], rest: list[Any]) -> None:
    text = json.dumps(start)[:-1] + (", ...]" if start else "...]")

    assert matches(parse_expected(text), start + rest)


@given(st.dictionaries(st.text(), json_values, max_size=4), st.dictionaries(st.text(), json_values, max_size=4))
def test_an_object_with_a_rest_fits_every_larger_object(start: dict[str, Any], rest: dict[str, Any]) -> None:
    text = json.dumps(start)[:-1] + (", ...}" if start else "...}")

    assert matches(parse_expected(text), {**rest, **start})


@given(st.text(st.sampled_from('[]{}",.:\\ 1a\n')))
def test_any_text_is_an_expectation_or_a_value_error(text: str) -> None:
    try:
        parse_expected(text)
    except ValueError as error:
        assert str(error)  # noqa: PT017

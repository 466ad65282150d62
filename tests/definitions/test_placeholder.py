"""Placeholders: types kept, text made, absence passed on, literals left alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glee.definitions.placeholder import (
    ABSENT,
    Name,
    Template,
    fill_value,
    find_templates,
    has_unclosed,
    parse_template,
    to_text,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
names = st.text(st.characters(exclude_characters="${}", exclude_categories=["Cs"]), max_size=8)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ("",)),
        ("plain", ("plain",)),
        ("${x}", (Name("x"),)),
        ("a${x}b${y}", ("a", Name("x"), "b", Name("y"))),
        ("${x}${y}", (Name("x"), Name("y"))),
        ("$${x}", ("${x}",)),
        ("$$${x}", ("$${x}",)),
        ("$${x}${x}", ("${x}", Name("x"))),
        ("${", ("${",)),
        ("${a${x}}", ("${a", Name("x"), "}")),
        ("$x {x} $", ("$x {x} $",)),
        ("${ x }", (Name(" x "),)),
        ("${}", (Name(""),)),
    ],
)
def test_a_string_is_cut_at_its_placeholders(text: str, parts: tuple[Any, ...]) -> None:
    assert parse_template(text) == Template(parts)


@pytest.mark.parametrize("value", [5, 2.5, True, False, None, "s", ["a", 1], {"k": [1]}, 2**70])
def test_a_value_that_is_exactly_one_placeholder_keeps_its_json_type(value: Any) -> None:
    filled = fill_value({"body": ["${x}"]}, {"x": value})

    assert (filled, type(filled["body"][0])) == ({"body": [value]}, type(value))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("s", "<s>"),
        (5, "<5>"),
        (5.0, "<5>"),
        (2.5, "<2.5>"),
        (1e300, "<1e300>"),
        (2**70, "<1180591620717411303424>"),
        (True, "<true>"),
        (False, "<false>"),
        (["a", 1], '<["a",1]>'),
        ({"k": None}, '<{"k":null}>'),
    ],
)
def test_inside_a_longer_string_a_value_becomes_text(value: Any, text: str) -> None:
    assert fill_value("<${x}>", {"x": value}) == text


def test_what_was_not_given_drops_its_key_and_its_item_at_any_depth() -> None:
    value = {"keep": 1, "drop": "${x}", "part": "a ${x}", "list": ["${x}", "${y}"], "deep": {"drop": "${x}"}}

    assert fill_value(value, {"y": 2}) == {"keep": 1, "list": [2], "deep": {}}


def test_a_whole_value_that_was_not_given_is_absent() -> None:
    assert (fill_value("${x}", {}), repr(ABSENT), bool(ABSENT)) == (ABSENT, "ABSENT", False)


def test_null_stays_null_as_a_value_and_is_absent_inside_a_text() -> None:
    assert fill_value({"a": "${x}", "b": "<${x}>"}, {"x": None}) == {"a": None}


def test_an_escaped_placeholder_is_a_literal() -> None:
    assert fill_value(["$${x}", "a $${x} ${x}", "$5", "{x}"], {"x": 1}) == ["${x}", "a ${x} 1", "$5", "{x}"]


def test_a_filled_value_is_never_filled_again() -> None:
    assert fill_value("${a} ${b}", {"a": "${b}", "b": "$${a}"}) == "${b} $${a}"


def test_keys_are_never_filled() -> None:
    assert fill_value({"${x}": 1}, {"x": "y"}) == {"${x}": 1}


def test_each_value_is_encoded_and_the_literal_around_it_is_not() -> None:
    template = parse_template("/a b/${x}/${y}")

    assert template.fill({"x": "1/2", "y": 3}, encode=lambda text: text.replace("/", "%2F")) == "/a b/1%2F2/3"


@pytest.mark.parametrize(
    ("text", "unclosed"),
    [
        ("${a", True),
        ("${a ${b}", True),
        ("${${a}}", True),
        ("${a}", False),
        ("$${a", False),
        ("$$${{", False),
        ("$", False),
    ],
)
def test_an_opening_without_its_end_is_noticed(text: str, unclosed: bool) -> None:
    assert has_unclosed(text) is unclosed


def test_every_string_with_a_placeholder_is_found_with_its_path() -> None:
    value = {"a": "${x}", "b": ["no", {"c": "$${y}"}], "d": 5, "e": ("${z}",)}

    assert list(find_templates(value)) == [(("a",), "${x}"), (("b", 1, "c"), "$${y}"), (("e", 0), "${z}")]


@given(st.text())
def test_escaping_and_filling_any_text_gives_it_back(text: str) -> None:
    escaped = text.replace("${", "$${")

    assert fill_value(escaped, {}) == text
    assert parse_template(escaped).names == ()


@given(names, json_values)
def test_any_value_comes_through_an_exact_placeholder_unchanged(name: str, value: Any) -> None:
    assert fill_value("${" + name + "}", {name: value}) is value


@given(st.lists(st.tuples(st.text().filter(lambda text: "$" not in text), names), min_size=1, max_size=5), st.text())
def test_a_template_finds_exactly_the_names_it_was_written_with(pairs: list[tuple[str, str]], value: str) -> None:
    template = parse_template("".join(f"{literal}${{{name}}}" for literal, name in pairs))

    assert template.names == tuple(name for _, name in pairs)
    assert template.fill(dict.fromkeys(template.names, value)) == "".join(literal + value for literal, _ in pairs)


@given(st.text())
def test_any_text_can_be_parsed_and_filled(text: str) -> None:
    template = parse_template(text)

    assert isinstance(template.fill(dict.fromkeys(template.names, "v")), str)
    assert isinstance(has_unclosed(text), bool)


@given(json_values)
def test_any_json_value_has_a_text(value: Any) -> None:
    assert isinstance(to_text(value), str)

"""Arguments from placeholders: one item each, and a value never becomes an option."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glee.errors import InvalidInput
from glee.runners.arguments import fill_arguments

PATTERN = {"properties": {"x": {"type": "string", "pattern": "^-[a-z]$"}}}
ITEM_PATTERN = {"properties": {"x": {"type": "array", "items": {"type": "string", "pattern": "^-[a-z]$"}}}}


@pytest.mark.parametrize(
    ("items", "values", "filled"),
    [
        (["a", 1, True, 1.5], {}, ["a", "1", "true", "1.5"]),
        (["${x}"], {"x": "a b; $(rm)"}, ["a b; $(rm)"]),
        (["${x}"], {"x": ""}, [""]),
        (["${x}"], {"x": 7}, ["7"]),
        (["${x}"], {"x": False}, ["false"]),
        (["${x}"], {"x": {"a": [1]}}, ['{"a":[1]}']),
        (["a", "${x}", "b"], {}, ["a", "b"]),
        (["a", "${x}", "b"], {"x": None}, ["a", "b"]),
        (["--n=${x}"], {}, []),
        (["--n=${x}"], {"x": 3}, ["--n=3"]),
        (["$${x}"], {"x": 3}, ["${x}"]),
        (["a$${x}-${x}"], {"x": 3}, ["a${x}-3"]),
        (["${x}"], {"x": ["a", 2, "c d"]}, ["a", "2", "c d"]),
        (["-", "${x}"], {"x": []}, ["-"]),
        (["in-${x}"], {"x": [1, 2]}, ["in-[1,2]"]),
        (["${x}"], {"x": "${x}"}, ["${x}"]),
    ],
)
def test_an_item_becomes_one_argument_a_list_several_and_an_absent_input_none(
    items: list[Any], values: dict[str, Any], filled: list[str]
) -> None:
    assert fill_arguments(items, values, {}) == filled


@pytest.mark.parametrize(
    ("items", "value"),
    [
        (["${x}"], "-rf"),
        (["${x}"], "--help"),
        (["${x}"], "-"),
        (["${x}"], "--"),
        (["${x}"], -5),
        (["${x}"], ["a", "-b"]),
        (["a", "${x}"], "-b"),
        (["-", "${x}"], "-b"),
        (["--level=3", "${x}"], "-b"),
        (["${x}/sub"], "-b"),
        (["--name", "${x}"], ["a", "-b"]),
        (["--name", "y", "${x}"], "-b"),
        (["--name=${x}", "${x}"], "-b"),
        (["--name", "--", "${x}"], "-b"),
        (["-n", "--", "y", "${x}"], "-b"),
    ],
)
def test_a_value_that_begins_with_a_dash_is_refused(items: list[Any], value: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        fill_arguments(items, {"x": value}, {"properties": {"x": {"type": "string"}}})

    assert caught.value.message.startswith("the input x begins with a dash (")
    assert caught.value.details == {
        "violations": [
            {
                "pointer": "/x",
                "rule": "dash",
                "message": "begins with a dash",
                "hint": "give a value that does not begin with a dash",
            }
        ]
    }


@pytest.mark.parametrize(
    ("items", "value", "schema", "filled"),
    [
        (["-n", "${x}"], "-5", {}, ["-n", "-5"]),
        (["--name", "${x}"], "--help", {}, ["--name", "--help"]),
        (["--name", "${x}"], ["-a", "b"], {}, ["--name", "-a", "b"]),
        (["--name=${x}"], "-5", {}, ["--name=-5"]),
        (["a${x}"], "-5", {}, ["a-5"]),
        (["--", "${x}", "b", "${x}"], "-rf", {}, ["--", "-rf", "b", "-rf"]),
        (["${x}"], "-v", PATTERN, ["-v"]),
        (["${x}"], ["-v", "-w"], ITEM_PATTERN, ["-v", "-w"]),
        (["${x}"], "a-b", {}, ["a-b"]),
        (["${x}"], " -b", {}, [" -b"]),
    ],
)
def test_a_dash_is_admitted_after_an_option_after_two_dashes_and_by_the_inputs_own_pattern(
    items: list[Any], value: Any, schema: dict[str, Any], filled: list[str]
) -> None:
    assert fill_arguments(items, {"x": value}, schema) == filled


def test_an_absent_input_after_an_option_does_not_open_the_way_for_the_next_one() -> None:
    with pytest.raises(InvalidInput, match="the input y begins with a dash"):
        fill_arguments(["--limit", "${x}", "${y}"], {"y": "-rf"}, {})


def test_an_empty_value_does_not_hide_the_dash_of_the_next_one() -> None:
    with pytest.raises(InvalidInput, match="begins with a dash"):
        fill_arguments(["${x}${y}"], {"x": "", "y": "-rf"}, {})


@pytest.mark.parametrize("items", [["${x}"], ["--name", "${x}"], ["a ${x}"], ["--", "${x}"]])
def test_a_nul_character_is_refused(items: list[Any]) -> None:
    with pytest.raises(InvalidInput, match=r"^the input x holds a NUL character, which no argument can$"):
        fill_arguments(items, {"x": "a\0b"}, {})


@given(st.text())
def test_no_value_at_all_becomes_an_option_or_a_second_argument(value: str) -> None:
    try:
        filled = fill_arguments(["first", "${x}", "last"], {"x": value}, {})
    except InvalidInput:
        assert value.startswith("-") or "\0" in value
        return

    assert filled == ["first", value, "last"]
    assert not value.startswith("-")


def test_an_empty_value_lets_no_dash_slip_in_behind_it() -> None:
    schema = {"properties": {"a": {"type": "string", "pattern": "^-?$"}, "b": {"type": "string"}}}

    with pytest.raises(InvalidInput, match="the input b begins with a dash"):
        fill_arguments(["${a}${b}"], {"a": "", "b": "-rf"}, schema)


@pytest.mark.parametrize("before", ["-1", "-la", "-", "--name=x", "plain"])
def test_what_takes_no_value_lets_no_dash_follow(before: str) -> None:
    with pytest.raises(InvalidInput):
        fill_arguments([before, "${a}"], {"a": "--exec=evil"}, {"properties": {"a": {"type": "string"}}})


@pytest.mark.parametrize(
    ("schema", "value"),
    [({"items": {"pattern": "^--"}}, "--evil"), ({"pattern": "^--"}, ["--evil"]), ({"pattern": "x"}, -5)],
)
def test_a_pattern_admits_only_what_it_was_asked_about(schema: dict[str, Any], value: Any) -> None:
    with pytest.raises(InvalidInput):
        fill_arguments(["${a}"], {"a": value}, {"properties": {"a": schema}})


def test_a_long_list_is_filled_in_a_time_that_grows_with_its_length_alone() -> None:
    assert len(fill_arguments(["${x}"], {"x": [1] * 200_000}, {})) == 200_000

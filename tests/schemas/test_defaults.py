"""Defaults: put where they are missing, never shared, and never written into the caller's own objects."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glee.schemas.defaults import compile_defaults

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "default": 10},
        "nothing": {"default": None},
        "tags": {"type": "array", "default": []},
        "where": {"properties": {"path": {"default": "."}, "deep": {"properties": {"n": {"default": {"m": 1}}}}}},
        "made": {"default": {}, "properties": {"x": {"default": 1}}},
        "plain": {},
    },
}


@pytest.mark.parametrize(
    ("value", "filled"),
    [
        ({}, {"count": 10, "nothing": None, "tags": [], "made": {"x": 1}}),
        (
            {"count": None, "tags": ["a"], "made": {"x": 2}},
            {"count": None, "nothing": None, "tags": ["a"], "made": {"x": 2}},
        ),
        (
            {"where": {}},
            {"count": 10, "nothing": None, "tags": [], "made": {"x": 1}, "where": {"path": "."}},
        ),
        (
            {"where": {"deep": {}}},
            {
                "count": 10,
                "nothing": None,
                "tags": [],
                "made": {"x": 1},
                "where": {"path": ".", "deep": {"n": {"m": 1}}},
            },
        ),
        (
            {"where": 5, "other": 6},
            {"count": 10, "nothing": None, "tags": [], "made": {"x": 1}, "where": 5, "other": 6},
        ),
        ([], []),
        (None, None),
    ],
)
def test_defaults_fill_what_is_missing_and_nothing_else(value: Any, filled: Any) -> None:
    fill = compile_defaults(SCHEMA)

    assert fill is not None
    assert fill(value) == filled


def test_the_callers_own_objects_are_never_touched() -> None:
    value = {"where": {"deep": {}}}
    before = copy.deepcopy(value)

    compile_defaults(SCHEMA)(value)  # type: ignore[misc]

    assert value == before


def test_two_calls_never_share_a_default_and_the_schema_keeps_its_own() -> None:
    schema = copy.deepcopy(SCHEMA)
    fill = compile_defaults(schema)
    assert fill is not None

    first = fill({"where": {"deep": {}}})
    first["tags"].append("x")
    first["made"]["y"] = 2
    first["where"]["deep"]["n"]["m"] = 3

    assert fill({"where": {"deep": {}}})["where"] == {"path": ".", "deep": {"n": {"m": 1}}}
    assert (fill({})["tags"], fill({})["made"], schema) == ([], {"x": 1}, SCHEMA)


@pytest.mark.parametrize(
    "schema", [True, False, None, {}, {"properties": []}, {"properties": {"a": True}}, {"properties": {"a": {}}}]
)
def test_a_schema_without_defaults_costs_nothing(schema: Any) -> None:
    assert compile_defaults(schema) is None


@given(
    st.dictionaries(st.sampled_from("abc"), st.integers() | st.lists(st.integers())),
    st.dictionaries(st.sampled_from("abcd"), st.integers()),
)
def test_what_was_given_always_wins(defaults: dict[str, Any], value: dict[str, Any]) -> None:
    fill = compile_defaults({"properties": {name: {"default": default} for name, default in defaults.items()}})

    assert (fill(value) if fill else value) == {**defaults, **value}


POINT = {"properties": {"x": {"default": 0}, "label": {"default": []}}}
AT = {
    "properties": {"at": {"$ref": "#/$defs/p"}, "odd": {"$ref": "#/$defs/a~1b%20c"}, "gone": {"$ref": "#/$defs/q"}},
    "$defs": {"p": POINT, "a/b c": POINT},
}


@pytest.mark.parametrize(
    ("schema", "value", "filled"),
    [
        ({"$ref": "#/$defs/p", "$defs": {"p": POINT}}, {}, {"x": 0, "label": []}),
        (AT, {}, {}),
        (AT, {"at": {"x": 1}}, {"at": {"x": 1, "label": []}}),
        (AT, {"odd": {}, "gone": {}}, {"odd": {"x": 0, "label": []}, "gone": {}}),
        ({"items": POINT}, [{}, {"x": 1, "label": ["a"]}, 7], [{"x": 0, "label": []}, {"x": 1, "label": ["a"]}, 7]),
        ({"properties": {"points": {"items": POINT}}}, {"points": [{}]}, {"points": [{"x": 0, "label": []}]}),
        ({"properties": {"points": {"items": POINT}}}, {"points": "none"}, {"points": "none"}),
        ({"allOf": [POINT, {"properties": {"y": {"default": 1}}}]}, {"x": 5}, {"x": 5, "y": 1, "label": []}),
        ({"allOf": [{"$ref": "#/$defs/p"}, True], "$defs": {"p": POINT}}, {}, {"x": 0, "label": []}),
        (
            {"properties": {"n": {"default": 1}, "children": {"items": {"$ref": "#"}}}},
            {"children": [{}, {"children": [{"n": 2}]}]},
            {"n": 1, "children": [{"n": 1}, {"n": 1, "children": [{"n": 2}]}]},
        ),
        (
            {"$ref": "#/$defs/a", "$defs": {
                "a": {"properties": {"b": {"$ref": "#/$defs/b"}, "n": {"default": 1}}},
                "b": {"properties": {"a": {"$ref": "#/$defs/a"}, "m": {"default": 2}}},
            }},
            {"b": {"a": {"b": {}}}},
            {"n": 1, "b": {"m": 2, "a": {"n": 1, "b": {"m": 2}}}},
        ),
    ],
)  # fmt: skip
def test_defaults_are_found_behind_references_items_and_all_of(schema: Any, value: Any, filled: Any) -> None:
    before = copy.deepcopy(value)
    fill = compile_defaults(schema)

    assert fill is not None
    assert (fill(value), value) == (filled, before)


def test_defaults_behind_references_are_never_shared_between_calls() -> None:
    fill = compile_defaults({"items": {"$ref": "#/$defs/p"}, "$defs": {"p": POINT}})
    assert fill is not None

    first, second = fill([{}, {}])
    first["label"].append("mine")

    assert (second, fill([{}])) == ({"x": 0, "label": []}, [{"x": 0, "label": []}])

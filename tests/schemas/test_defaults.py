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

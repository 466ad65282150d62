"""The published contracts: valid 2020-12, and every field explained to whoever edits a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from glee.definitions.tool import GROUPS
from glee.schemas import load_schema
from glee.schemas.validator import find_schema_fault

PUBLISHED = ["tool", "config"]


def find_fields(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every property anywhere in a schema, with the path to it."""
    if isinstance(schema, list):
        for index, item in enumerate(schema):
            yield from find_fields(item, f"{path}/{index}")
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "properties":
                yield from ((f"{path}/{name}", field) for name, field in value.items())
            yield from find_fields(value, f"{path}/{key}")


def resolve(root: dict[str, Any], field: dict[str, Any]) -> dict[str, Any]:
    reference = field.get("$ref")
    return root["$defs"][reference.rsplit("/", 1)[-1]] if reference else field


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_schema_is_valid_2020_12_and_says_so(name: str) -> None:
    schema = load_schema(name)

    assert find_schema_fault(schema) is None
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_field_of_a_published_schema_is_described(name: str) -> None:
    root = load_schema(name)
    fields = list(find_fields(root))

    assert len(fields) > 10
    assert [path for path, field in fields if not resolve(root, field).get("description")] == []


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_object_with_fields_refuses_unknown_ones(name: str) -> None:
    def find_open(schema: Any, path: str = "") -> Iterator[str]:
        if isinstance(schema, dict):
            if "properties" in schema and "additionalProperties" not in schema and schema.get("type") == "object":
                yield path
            for key, value in schema.items():
                yield from find_open(value, f"{path}/{key}")

    assert list(find_open(load_schema(name))) == (["/properties/inputs/properties/schema"] if name == "tool" else [])


def test_the_manifest_has_every_field_the_format_names() -> None:
    schema = load_schema("tool")

    assert list(schema["properties"]) == [
        "$schema",
        "name",
        "description",
        "kind",
        "version",
        "group",
        "dangerous",
        "idempotent",
        "inputs",
        "outputs",
        "exec",
        "permissions",
        "limits",
        "approval",
        "examples",
    ]
    assert {kind: list(schema["$defs"][kind]["properties"]) for kind in ("http", "command", "python")} == {
        "http": ["method", "url", "headers", "query", "body", "response", "timeout_ms"],
        "command": ["entrypoint", "args", "cwd", "stdout", "exit_codes_ok", "timeout_ms"],
        "python": ["module", "function", "args", "venv", "cwd", "return", "timeout_ms"],
    }


def test_the_groups_of_the_schema_are_those_of_the_definitions_and_net() -> None:
    assert sorted(load_schema("tool")["properties"]["group"]["enum"]) == sorted([*GROUPS, "net"])

"""The validator: faults of schemas, violations of values, and nothing fetched or hung on the way."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glee.errors import DefinitionError
from glee.schemas.validator import SchemaFault, Validator, Violation, find_schema_fault, nearest, to_pointer


@pytest.mark.parametrize(
    ("schema", "value", "violation"),
    [
        (
            {"required": ["name"]},
            {},
            Violation(pointer="", rule="required", message='"name" is a required property', hint="add `name`"),
        ),
        (
            {"properties": {"who": {"required": ["name"]}}},
            {"who": {}},
            Violation(
                pointer="/who", rule="required", message='"name" is a required property', hint="add `name` to `who`"
            ),
        ),
        (
            {"properties": {"n": {"type": "integer"}}},
            {"n": "5"},
            Violation(
                pointer="/n",
                rule="type",
                message='"5" is not of type "integer"',
                hint="give `n` as integer, not string",
            ),
        ),
        (
            {"properties": {"n": {"type": ["integer", "null"]}}},
            {"n": 1.5},
            Violation(
                pointer="/n",
                rule="type",
                message='1.5 is not of types "null", "integer"',
                hint="give `n` as integer or null, not number",
            ),
        ),
        (
            {"properties": {"name": {}, "age": {}}, "additionalProperties": False},
            {"nmae": 1},
            Violation(
                pointer="",
                rule="additionalProperties",
                message="Additional properties are not allowed ('nmae' was unexpected)",
                hint="remove `nmae` or write `name`; known: name, age",
            ),
        ),
        (
            {"properties": {"name": {}}, "unevaluatedProperties": False},
            {"zzz": 1},
            Violation(
                pointer="",
                rule="unevaluatedProperties",
                message="Unevaluated properties are not allowed ('zzz' was unexpected)",
                hint="remove `zzz`; known: name",
            ),
        ),
        (
            {"items": {"enum": ["a", 1, None, True]}},
            ["b"],
            Violation(
                pointer="/0",
                rule="enum",
                message='"b" is not one of "a", 1 or 2 other candidates',
                hint='use one of: "a", 1, null, true',
            ),
        ),
        ({"const": None}, 1, Violation(pointer="", rule="const", message="null was expected", hint="use exactly null")),
        (
            {"pattern": "^a$"},
            "b",
            Violation(
                pointer="", rule="pattern", message='"b" does not match "^a$"', hint="give the input in the form ^a$"
            ),
        ),
        (
            {"maximum": 3},
            4,
            Violation(
                pointer="",
                rule="maximum",
                message="4 is greater than the maximum of 3",
                hint="keep the input within maximum 3",
            ),
        ),
        (
            {"properties": {"a/b~c": {"minLength": 2}}},
            {"a/b~c": "x"},
            Violation(
                pointer="/a~1b~0c",
                rule="minLength",
                message='"x" is shorter than 2 characters',
                hint="keep `a/b~c` within minLength 2",
            ),
        ),
        (
            {"oneOf": [{}, {}]},
            1,
            Violation(
                pointer="",
                rule="oneOf",
                message="1 is valid under more than one of the schemas listed in the 'oneOf' keyword",
                hint="make the input fit exactly one of the forms it may have",
            ),
        ),
        (
            {"anyOf": [{"type": "string"}]},
            1,
            Violation(
                pointer="",
                rule="anyOf",
                message="1 is not valid under any of the schemas listed in the 'anyOf' keyword",
                hint="make the input fit one of the forms it may have",
            ),
        ),
        (
            {"uniqueItems": True},
            [1, 1],
            Violation(
                pointer="",
                rule="uniqueItems",
                message="[1,1] has non-unique elements",
                hint="change the input so that it satisfies `uniqueItems`",
            ),
        ),
        (
            {"properties": {"a": {"$ref": "#/$defs/name"}}, "$defs": {"name": {"type": "string"}}},
            {"a": []},
            Violation(
                pointer="/a", rule="type", message='[] is not of type "string"', hint="give `a` as string, not array"
            ),
        ),
        (
            False,
            {},
            Violation(
                pointer="",
                rule="falseSchema",
                message="False schema does not allow {}",
                hint="remove the input; nothing is allowed here",
            ),
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_violation_says_where_which_rule_and_what_to_do(schema: Any, value: Any, violation: Violation) -> None:
    validator = Validator(schema)

    assert (validator.violations(value), validator.is_valid(value)) == ([violation], False)


KEYWORDS: list[tuple[Any, Any]] = [
    ({"maxItems": 0}, [1]),
    ({"minItems": 2}, [1]),
    ({"contains": {"type": "string"}}, [1]),
    ({"contains": {"type": "integer"}, "minContains": 2}, [1]),
    ({"contains": {"type": "integer"}, "maxContains": 1}, [1, 1]),
    ({"not": {}}, 1),
    ({"dependentRequired": {"a": ["b"]}}, {"a": 1}),
    ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 1}),
    ({"propertyNames": {"maxLength": 1}}, {"ab": 1}),
    ({"unevaluatedItems": False}, [1]),
    ({"multipleOf": 2}, 3),
    ({"exclusiveMinimum": 2}, 2),
    ({"exclusiveMaximum": 2}, 2),
    ({"minimum": 3}, 2),
    ({"minProperties": 1}, {}),
    ({"maxProperties": 0}, {"a": 1}),
    ({"maxLength": 0}, "a"),
    ({"prefixItems": [{"type": "string"}], "items": False}, [1, 2]),
    ({"if": True, "then": {"required": ["a"]}}, {}),
    ({"allOf": [{"type": "string"}]}, 1),
    ({"patternProperties": {"^a": False}}, {"a": 1}),
    ({"type": "string"}, 2**200),
    ({"type": "string"}, float("nan")),
]


@pytest.mark.parametrize(("schema", "value"), KEYWORDS, ids=lambda value: str(value)[:40])
def test_every_keyword_has_a_message_and_a_hint(schema: Any, value: Any) -> None:
    violations = Validator(schema).violations(value)

    assert violations
    assert all(violation.rule and violation.message and violation.hint for violation in violations)


def test_all_violations_come_at_once() -> None:
    schema = {
        "type": "object",
        "required": ["a", "b"],
        "additionalProperties": False,
        "properties": {"a": {}, "b": {}, "c": {"type": "string"}},
    }

    found = {(violation.pointer, violation.rule) for violation in Validator(schema).violations({"c": 1, "d": 2})}

    assert found == {("", "required"), ("/c", "type"), ("", "additionalProperties")}
    assert len(Validator(schema).violations({"c": 1, "d": 2})) == 4


def test_a_message_never_repeats_a_large_value_whole() -> None:
    (violation,) = Validator({"type": "integer"}).violations("x" * 100_000)

    assert len(violation.message) < 500
    assert violation.message.endswith('is not of type "integer"')


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        (True, None),
        ({}, None),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema#"}, None),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#"}}}, None),
        (None, SchemaFault((), "a schema is a mapping, not null")),
        ([], SchemaFault((), "a schema is a mapping, not array")),
        (5, SchemaFault((), "a schema is a mapping, not integer")),
        ("object", SchemaFault((), "a schema is a mapping, not string")),
        ({"$schema": 5}, SchemaFault(("$schema",), "5 is not JSON Schema 2020-12")),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#"},
            SchemaFault(("$schema",), "http://json-schema.org/draft-07/schema# is not JSON Schema 2020-12"),
        ),
        (
            {"properties": {"a": {"minimum": "3"}}},
            SchemaFault(("properties", "a", "minimum"), '"3" is not of type "number"'),
        ),
        ({"properties": []}, SchemaFault(("properties",), '[] is not of type "object"')),
        ({"required": ["a", "a"]}, SchemaFault(("required",), '["a","a"] has non-unique elements')),
        ({"pattern": "("}, SchemaFault(("pattern",), '"(" is not a "regex"')),
        ({"patternProperties": {"(": True}}, SchemaFault(("patternProperties", "("), '"(" is not a "regex"')),
        ({"$ref": "#/nope"}, SchemaFault((), "Pointer '/nope' does not exist")),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_schema_that_is_not_2020_12_has_a_fault_with_its_place(schema: Any, fault: SchemaFault | None) -> None:
    assert find_schema_fault(schema) == fault


@pytest.mark.parametrize("pattern", ["a{1000000}", "((a{1000}){1000}){1000}"])
def test_a_pattern_that_would_fill_the_memory_is_a_fault(pattern: str) -> None:
    assert find_schema_fault({"pattern": pattern}) == SchemaFault(("pattern",), f'"{pattern}" is not a "regex"')


def test_a_schema_nested_without_end_is_a_fault() -> None:
    schema: dict[str, Any] = {}
    for _ in range(5_000):
        schema = {"properties": {"a": schema}}

    assert find_schema_fault(schema) == SchemaFault((), "Recursion limit reached")


def test_a_reference_to_the_network_is_a_fault_and_nothing_connects() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.setblocking(False)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"
        schemas: list[dict[str, Any]] = [
            {"$ref": address},
            {"$dynamicRef": address},
            {"properties": {"a": {"$ref": f"{address}#/$defs/a"}}},
            {"$id": address, "$ref": "other.json"},
        ]
        for schema in schemas:
            fault = find_schema_fault(schema)
            assert fault is not None
            assert "is not present in a registry" in fault.message
            with pytest.raises(DefinitionError, match="not a valid JSON Schema"):
                Validator(schema)
        assert find_schema_fault({"$schema": address}) == SchemaFault(
            ("$schema",), f"{address} is not JSON Schema 2020-12"
        )
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_reference_to_a_file_is_a_fault_even_if_the_file_is_a_schema(tmp_path: Any) -> None:
    file = tmp_path / "schema.json"
    file.write_text("true")

    fault = find_schema_fault({"$ref": file.as_uri()})

    assert fault is not None
    assert "is not present in a registry" in fault.message


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 50_000 + "!"),
        ("^(a|aa)+$", "a" * 50_000 + "!"),
        (r"^(a+)+\1$", "a" * 5_000 + "!"),
        ("^(?=(a+)+$)b", "a" * 5_000 + "!"),
        (r"(x+x+)+y(?<=z)", "x" * 5_000),
    ],
)
def test_a_pattern_that_backtracks_without_end_ends_and_admits_nothing(pattern: str, text: str) -> None:
    assert Validator({"pattern": pattern}).is_valid(text) is False


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"anyOf": [{"$ref": "#"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"$dynamicRef": "#x", "$dynamicAnchor": "x"},
    ],
    ids=str,
)
def test_a_schema_that_refers_to_itself_ends(schema: Any) -> None:
    assert Validator(schema).violations(1) == []


def test_a_format_is_an_annotation_as_the_standard_has_it() -> None:
    validator = Validator({"properties": {"a": {"format": "colour"}, "b": {"format": "email"}}})

    assert validator.is_valid({"a": "?", "b": "?"})


@pytest.mark.parametrize(
    ("path", "pointer"), [((), ""), (("a", 0), "/a/0"), (("a/b", "~", ""), "/a~1b/~0/"), (("~1",), "/~01")]
)
def test_a_path_is_written_as_a_json_pointer(path: tuple[str | int, ...], pointer: str) -> None:
    assert to_pointer(path) == pointer


@pytest.mark.parametrize(
    ("word", "known", "found"),
    [("nmae", ["name", "age"], "name"), ("NAME", ["Name"], "Name"), ("zzz", ["name"], None), ("", [], None)],
)
def test_the_word_that_was_meant_is_found(word: str, known: list[str], found: str | None) -> None:
    assert nearest(word, known) == found


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_any_json_value_is_a_schema_or_has_a_fault(value: Any) -> None:
    fault = find_schema_fault(value)

    if fault is None:
        Validator(value)
    else:
        assert fault.message


@given(json_values, st.sampled_from([schema for schema, _ in KEYWORDS]))
def test_a_value_has_violations_exactly_when_it_is_not_valid(value: Any, schema: Any) -> None:
    validator = Validator(schema)

    assert (validator.violations(value) == []) is validator.is_valid(value)

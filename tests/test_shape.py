"""Values against their schemas: inputs before a run, outputs after it."""

from __future__ import annotations

from typing import Any

import pytest

import glee
from glee.definitions.tool import FunctionExec, Origin, Outputs, Tool
from glee.errors import DefinitionError, InvalidInput
from glee.shape import Shapes
from glee.testing import Project


def a_tool(inputs: dict[str, Any], outputs: Any = None) -> Tool:
    return Tool(
        name="greet",
        description="greet",
        kind="function",
        inputs=inputs,
        outputs=Outputs(schema=outputs),
        exec=FunctionExec(function=print, target="print"),
        origin=Origin(source="program", location="here"),
    )


NESTED = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "default": "."},
        "tags": {"type": "array", "default": []},
        "page": {"type": "object", "properties": {"size": {"type": "integer", "default": 10}}},
        "filter": {"type": "object", "default": {}, "properties": {"deep": {"type": "boolean", "default": True}}},
    },
}


def test_defaults_are_filled_in_and_what_was_given_is_kept() -> None:
    shapes, tool = Shapes(), a_tool(NESTED)

    assert shapes.check_inputs(tool, {}) == {"path": ".", "tags": [], "filter": {"deep": True}}
    assert shapes.check_inputs(tool, {"path": "x", "page": {}, "filter": {"deep": False}, "more": 1}) == {
        "path": "x",
        "tags": [],
        "page": {"size": 10},
        "filter": {"deep": False},
        "more": 1,
    }


def test_filling_in_defaults_leaves_the_caller_s_own_objects_alone() -> None:
    shapes, tool = Shapes(), a_tool(NESTED)
    given: dict[str, Any] = {"page": {}}

    filled = shapes.check_inputs(tool, given)
    filled["tags"].append("mine")
    filled["filter"]["deep"] = "mine"

    assert given == {"page": {}}
    assert shapes.check_inputs(tool, {}) == {"path": ".", "tags": [], "filter": {"deep": True}}


def test_every_violation_is_returned_with_pointer_rule_and_hint() -> None:
    schema = {
        "type": "object",
        "additionalProperties": False,
        "required": ["query"],
        "properties": {
            "query": {"type": "string"},
            "count": {"type": "integer", "minimum": 1},
            "items": {"type": "array", "items": {"type": "object", "properties": {"a/b~c": {"type": "string"}}}},
        },
    }

    with pytest.raises(InvalidInput) as raised:
        Shapes().check_inputs(a_tool(schema), {"count": 0, "items": [{}, {"a/b~c": 1}], "qury": "x"})

    violations = raised.value.details["violations"]
    assert sorted((violation["pointer"], violation["rule"], violation["hint"]) for violation in violations) == [
        ("", "additionalProperties", "remove `qury` or write `query`; known: query, count, items"),
        ("", "required", "add `query`"),
        ("/count", "minimum", "keep `count` within minimum 1"),
        ("/items/1/a~1b~0c", "type", "give `a/b~c` as string, not integer"),
    ]
    assert str(raised.value).startswith("the input does not fit greet: ")
    assert str(raised.value).endswith(" (and 3 more)")


@pytest.mark.parametrize("arguments", [{1: 2}, {None: 1}, {"a": {2: 3}}])
def test_arguments_whose_names_are_not_text_do_not_fit(project: Project, arguments: Any) -> None:
    @glee.tool
    def take(a: dict[str, int] = {}) -> int:  # noqa: B006
        """Take."""
        return 1

    with project.open(tools=[take]) as engine:
        result = engine.call_sync(glee.Call(tool="take", arguments=arguments))

    assert result.error and result.error.code == "invalid_input"


@pytest.mark.parametrize("arguments", [None, [], "text", 7])
def test_arguments_that_are_no_object_do_not_fit(arguments: Any) -> None:
    with pytest.raises(InvalidInput, match='is not of type "object"'):
        Shapes().check_inputs(a_tool({"type": "object"}), arguments)


def test_an_output_without_a_schema_is_as_it_is() -> None:
    assert Shapes().check_output(a_tool({}), {"anything": 1}) == ()


def test_an_output_that_fits_gives_no_warning() -> None:
    assert Shapes().check_output(a_tool({}, {"type": "integer"}), 7) == ()


def test_an_output_that_does_not_fit_gives_one_warning_that_shows_the_first_few() -> None:
    tool = a_tool({}, {"type": "array", "items": {"type": "integer"}})

    assert Shapes().check_output(tool, "text") == (
        'the output does not fit outputs.schema: /: "text" is not of type "array"',
    )
    assert Shapes().check_output(tool, ["a", 1, "b", "c", "d", "e"]) == (
        'the output does not fit outputs.schema: /0: "a" is not of type "integer"; /2: "b" is not of type "integer"; '
        '/3: "c" is not of type "integer" (and 2 more)',
    )


def test_a_schema_that_admits_nothing_is_a_schema() -> None:
    (warning,) = Shapes().check_output(a_tool({}, False), 1)

    assert warning.startswith("the output does not fit outputs.schema: /: ")


def test_a_misfit_is_a_warning_and_the_output_is_returned(project: Project) -> None:
    outputs = {"format": "json", "schema": {"type": "array"}}
    project.add_command("show", "echo '{\"a\": 1}'", outputs=outputs)

    with project.open() as engine:
        result = engine.call_sync("show")

    assert (result.ok, result.output, result.error) == (True, {"a": 1}, None)
    assert result.warnings == ('the output does not fit outputs.schema: /: {"a":1} is not of type "array"',)


GIVES_UP = {"type": "string", "pattern": "^(?!b)(a|a)*(?=c)$"}
"""A pattern that stops at the limit of backtracking where a text is made of many `a`."""


def test_an_input_at_which_a_pattern_gives_up_does_not_fit() -> None:
    with pytest.raises(InvalidInput) as raised:
        Shapes().check_inputs(a_tool({"properties": {"word": GIVES_UP}}), {"word": "a" * 60})

    assert raised.value.details == {
        "violations": [
            {
                "pointer": "/word",
                "rule": "pattern",
                "message": "Error executing regex: Max limit for backtracking count exceeded",
                "hint": "change `word` so that it satisfies `pattern`",
            }
        ]
    }


def test_an_output_at_which_a_pattern_gives_up_is_returned_with_a_warning(project: Project) -> None:
    project.add_command("show", f"printf {'a' * 60}", outputs={"format": "text", "schema": GIVES_UP})

    with project.open() as engine:
        result = engine.call_sync("show")

    assert (result.output, result.warnings) == (
        "a" * 60,
        (
            "the output does not fit outputs.schema: /: "
            "Error executing regex: Max limit for backtracking count exceeded",
        ),
    )


def test_a_schema_is_compiled_once_for_each_tool_and_again_when_it_is_forgotten() -> None:
    schema: dict[str, Any] = {"type": "object"}
    shapes, tool = Shapes(), a_tool(schema)
    shapes.check_inputs(tool, {})

    schema["type"] = "nonsense"
    assert shapes.check_inputs(tool, {}) == {}

    shapes.forget()
    with pytest.raises(DefinitionError, match="not a valid JSON Schema"):
        shapes.check_inputs(tool, {})


def test_two_tools_with_one_name_do_not_share_their_schema() -> None:
    shapes = Shapes()
    strict, loose = a_tool({"required": ["a"]}), a_tool({})

    assert shapes.check_inputs(loose, {}) == {}
    with pytest.raises(InvalidInput):
        shapes.check_inputs(strict, {})

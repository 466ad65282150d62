"""A function's signature and docstring as schemas and descriptions."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from glee.definitions.context import Context
from glee.definitions.json_text import to_json_value
from glee.definitions.tool import Format, Outputs, Schema
from glee.errors import DefinitionError
from glee.schemas.validator import Validator

_PLAIN = (str, int, float, bool, type(None), Any, list, dict)
_SECTIONS = ("Args:", "Arguments:", "Parameters\n", ":param ", "Params:", "Returns:", ":return", "Returns\n")


class Inputs(Struct, frozen=True):
    """What a function takes: its schema, and how JSON values become its arguments."""

    schema: Schema
    converters: dict[str, Any]
    integers: tuple[str, ...]
    context_parameter: str | None


def read_hints(function: Callable[..., Any], target: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise DefinitionError(f"{target}: an annotation cannot be read: {error}; import the type it names") from error


def read_inputs(
    function: Callable[..., Any], hints: Mapping[str, Any], texts: Mapping[str, str], target: str
) -> Inputs:
    properties: dict[str, Any] = {}
    required: list[str] = []
    converters: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    integers: list[str] = []
    context_parameter = None
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints.get(name, Any)
        if hint is Context or Context in typing.get_args(hint):
            context_parameter = name
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise DefinitionError(f"{target}: the parameter {name} has no name of its own; tools take named inputs")
        where = f"{target}: the parameter {name}"
        schema, defs = _schema_of(hint, where)
        if any(definitions.get(title, part) != part for title, part in defs.items()):
            raise DefinitionError(f"{where} has a type of the same name as another parameter's; rename one of them")
        definitions.update(defs)
        schema = {**schema, **_describe(hint, texts.get(name))}
        if parameter.default is parameter.empty:
            required.append(name)
        else:
            schema |= _default(parameter.default, {**schema, "$defs": defs}, where)
        properties[name] = schema
        if not _is_plain(hint):
            converters[name] = hint
        elif _mentions(hint, int) and not _mentions(hint, float):
            integers.append(name)
    inputs: Schema = {"type": "object", "additionalProperties": False, "properties": properties}
    if required:
        inputs["required"] = required
    if definitions:
        inputs["$defs"] = definitions
    return Inputs(inputs, converters, tuple(integers), context_parameter)


def _schema_of(hint: Any, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    if hint is Any:
        return {}, {}
    try:
        (schema,), definitions = msgspec.json.schema_components([hint], ref_template="#/$defs/{name}")
    except TypeError as error:
        raise DefinitionError(
            f"{where} has a type no JSON Schema can be made of, {inspect.formatannotation(hint)}; "
            "use plain types, Literal, enums, dataclasses or TypedDicts"
        ) from error
    return schema, definitions


def _describe(hint: Any, text: str | None) -> dict[str, str]:
    for extra in getattr(hint, "__metadata__", ()):
        if isinstance(extra, str):
            text = extra
    return {"description": text} if text else {}


def _is_plain(hint: Any) -> bool:
    """True for types whose JSON value is already what the function expects."""
    origin = typing.get_origin(hint)
    if origin is None:
        return hint in _PLAIN
    arguments = typing.get_args(hint)
    if origin is typing.Annotated:
        return _is_plain(arguments[0])
    if origin is Literal:
        return all(isinstance(item, str | int | bool | None) for item in arguments)
    if origin is dict and arguments[0] is not str:
        return False
    if origin in (list, dict, typing.Union) or str(origin) == "<class 'types.UnionType'>":
        return all(_is_plain(argument) for argument in arguments)
    return False


def _mentions(hint: Any, kind: type) -> bool:
    return hint is kind or any(_mentions(argument, kind) for argument in typing.get_args(hint))


def _default(value: Any, schema: dict[str, Any], where: str) -> dict[str, Any]:
    """The `default` of a schema; nothing where only the function itself can fill in its own (a sentinel, None)."""
    try:
        msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError):
        return {}
    default = to_json_value(value)
    if Validator(schema).is_valid(default):
        return {"default": default}
    if default is None:
        return {}
    raise DefinitionError(f"{where} has the default {value!r}, which does not fit its type; change one of the two")


def read_outputs(hint: Any) -> Outputs:
    if hint is str:
        return Outputs(format="text")
    form: Format = "json"
    if hint in (Any, None, type(None)):
        return Outputs(format=form)
    try:
        schema, definitions = _schema_of(hint, "the return value")
    except DefinitionError:
        return Outputs(format=form)
    return Outputs(format=form, schema={**schema, "$defs": definitions} if definitions else schema)


def read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    text = inspect.getdoc(function) or ""
    if not any(section in text for section in _SECTIONS):
        return text.strip(), {}
    import docstring_parser

    parsed = docstring_parser.parse(text)
    whole = "\n\n".join(filter(None, (parsed.short_description, parsed.long_description)))
    return whole.strip(), {p.arg_name: p.description for p in parsed.params if p.description}

"""Arguments as people type them: `key=value` read by the schema, JSON, a file, or standard input."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from glee.definitions.json_text import decode_json
from glee.definitions.tool import Tool
from glee.doors.cli.screen import is_terminal, one_line, shorten

_SHOWN = 60


def read_arguments(pairs: Sequence[str], params: str | None, tool: Tool | None) -> dict[str, Any]:
    """All of a call's arguments; a pair wins over the same key in `--params`."""
    arguments = _read_params(params) if params is not None else {}
    typed: set[str] = set()
    for pair in pairs:
        key, value = _read_pair(pair, tool)
        if key in typed:
            raise click.UsageError(f"{_show(key)} is given twice; a list is written {key}:='[1, 2]'")
        typed.add(key)
        arguments[key] = value
    return arguments


def _read_params(params: str) -> dict[str, Any]:
    if params == "-":
        text, where = sys.stdin.buffer.read(), "standard input"
    elif params.startswith("@"):
        path = Path(params[1:]).expanduser()
        try:
            text, where = path.read_bytes(), str(path)
        except OSError as error:
            raise click.UsageError(f"--params {params}: {error.strerror}") from error
    else:
        text, where = params.encode("utf-8", "surrogateescape"), "--params"
    try:
        value = decode_json(text)
    except ValueError as error:
        hint = f"; to read a file, write --params @{params}" if where == "--params" and _is_file(params) else ""
        raise click.UsageError(f"{where} is not JSON: {error}{hint}") from error
    if not isinstance(value, dict):
        raise click.UsageError(f'{where} must be a JSON object, as in \'{{"key": "value"}}\'')
    return value


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except (OSError, ValueError):
        return False


def _read_pair(pair: str, tool: Tool | None) -> tuple[str, Any]:
    key, equals, text = pair.partition("=")
    if not equals or key in ("", ":"):
        raise click.UsageError(f"{_show(pair)} is not key=value; quote a value with spaces: key='two words'")
    if not _is_text(pair):
        raise click.UsageError(f"{_show(pair)} is not UTF-8 text; --params @FILE takes JSON with escapes")
    if key.endswith(":"):
        return key[:-1], _from_json(key[:-1], text)
    properties = _properties(tool)
    others = tool.inputs.get("additionalProperties") if tool else None
    return key, convert(text, types_of(properties.get(key, others), tool))


def _from_json(key: str, text: str) -> Any:
    try:
        return decode_json(text)
    except ValueError as error:
        raise click.UsageError(f"{key}:= takes JSON, and {_show(text)} is none: {error}") from error


def _is_text(word: str) -> bool:
    """Bytes of an argument that are not UTF-8 reach Python as lone surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in word)


def _show(word: str) -> str:
    return repr(shorten(word, _SHOWN))


def convert(text: str, types: set[str]) -> Any:
    """The text as the JSON that the schema admits, and as text where it is none, or nothing else is admitted."""
    if types - {"string"}:
        if "boolean" in types and "string" not in types:
            text = text.lower() if text.lower() in ("true", "false") else text
        try:
            value = decode_json(text)
        except ValueError:
            return text
        if _type_of(value) in types or ("number" in types and _type_of(value) == "integer"):
            return value
    return text


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    return {float: "number", str: "string", list: "array", dict: "object"}.get(type(value), "null")


def types_of(schema: Any, tool: Tool | None, depth: int = 0) -> set[str]:
    """The JSON types a schema admits, as far as it says so."""
    if not isinstance(schema, dict) or depth > 10:
        return set()
    found: set[str] = set()
    declared = schema.get("type")
    if declared:
        found |= {declared} if isinstance(declared, str) else set(declared)
    for value in [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())]:
        found.add(_type_of(value))
    for key in ("anyOf", "oneOf", "allOf"):
        for sub in schema.get(key, ()):
            found |= types_of(sub, tool, depth + 1)
    reference = schema.get("$ref", "")
    if tool and reference.startswith("#/$defs/"):
        found |= types_of((tool.inputs.get("$defs") or {}).get(reference[8:]), tool, depth + 1)
    return found


def ask_missing(arguments: dict[str, Any], tool: Tool) -> dict[str, Any]:
    """Asks for required inputs that were not given, where a person can answer."""
    if not is_terminal():
        return arguments
    properties = _properties(tool)
    for name in tool.inputs.get("required") or []:
        if name in arguments:
            continue
        schema = properties.get(name)
        text = schema.get("description", "") if isinstance(schema, dict) else ""
        answer = click.prompt(one_line(f"{name}{f' ({text})' if text else ''}"), err=True)
        arguments = {**arguments, name: convert(answer, types_of(schema, tool))}
    return arguments


def _properties(tool: Tool | None) -> dict[str, Any]:
    return (tool.inputs.get("properties") or {}) if tool else {}

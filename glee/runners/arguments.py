"""Command arguments from placeholders: one item each, and a value never becomes an option."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from glee.definitions.placeholder import ABSENT, Name, Template, parse_template, to_text
from glee.definitions.tool import Tool
from glee.errors import InvalidInput

_OPTION = re.compile(r"--[A-Za-z][\w-]*|-[A-Za-z]")
"""A literal that can take the next argument as its value; not `--all=x`, `-la` or `-1`."""


def with_secrets(tool: Tool, arguments: Mapping[str, Any], secrets: Mapping[str, str]) -> dict[str, Any]:
    """What placeholders stand for. The name of a secret is never the caller's to fill, even where it has no value."""
    own = tool.permissions.secrets
    return {**{name: value for name, value in arguments.items() if name not in own}, **secrets}


def fill_arguments(items: Sequence[Any], values: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """The arguments of one call. An item whose input was not given is left out; a list becomes several."""
    filled: list[str] = []
    after_dashes = False
    option = False
    for item in items:
        text = item if isinstance(item, str) else to_text(item)
        template = parse_template(text)
        if not template.names:
            literal = str(template.parts[0])
            filled.append(literal)
            after_dashes = after_dashes or (literal == "--" and not option)
            option = _OPTION.fullmatch(literal) is not None
            continue
        for argument in _values_of(template, values):
            if not (after_dashes or option):
                _check_dash(template, argument, values, schema)
            _check_nul(template, argument)
            filled.append(argument)
            option = False
        option = False
    return filled


def _values_of(template: Template, values: Mapping[str, Any]) -> list[str]:
    name = template.only_name
    if name is not None:
        value = values.get(name)
        if isinstance(value, list):
            return [to_text(item) for item in value]
        return [] if value is None else [to_text(value)]
    text = template.fill(values)
    return [] if text is ABSENT else [str(text)]


def _check_dash(template: Template, argument: str, values: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Only an argument that begins with a placeholder can turn into an option."""
    if not argument.startswith("-"):
        return
    first = _first_shown(template, values)
    if isinstance(first, str):
        return
    declared = (schema.get("properties") or {}).get(first.name)
    if isinstance(declared, Mapping) and _has_pattern(declared, values.get(first.name)):
        return
    raise InvalidInput(
        f"the input {first.name} begins with a dash ({argument[:40]!r}) and would be taken for an option; "
        "give a value without the leading dash, such as ./-name for a file",
        details={
            "violations": [
                {
                    "pointer": f"/{first.name}",
                    "rule": "dash",
                    "message": "begins with a dash",
                    "hint": "give a value that does not begin with a dash",
                }
            ]
        },
    )


def _first_shown(template: Template, values: Mapping[str, Any]) -> str | Name:
    """The part that the argument really begins with: an empty value before it does not count."""
    for part in template.parts:
        if isinstance(part, str) or to_text(values.get(part.name) or ""):
            return part
    return template.parts[0]


def _has_pattern(schema: Mapping[str, Any], value: Any) -> bool:
    """A pattern of the input's own has already admitted the value; for a list, one of its items' own."""
    if isinstance(value, list):
        items = schema.get("items")
        return isinstance(items, Mapping) and "pattern" in items
    return isinstance(value, str) and "pattern" in schema


def _check_nul(template: Template, argument: str) -> None:
    if "\0" in argument:
        raise InvalidInput(f"the input {template.names[0]} holds a NUL character, which no argument can")

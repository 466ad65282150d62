"""Defaults of a schema put into a value that lacks them, without touching the caller's own objects."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

Fill = Callable[[Any], Any]


def compile_defaults(schema: Any, _depth: int = 0) -> Fill | None:
    """A function that returns the value with defaults applied; None if the schema has none."""
    if not isinstance(schema, Mapping) or _depth > 20:
        return None
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return None
    defaults = {
        name: sub["default"] for name, sub in properties.items() if isinstance(sub, Mapping) and "default" in sub
    }
    nested = {name: fill for name, sub in properties.items() if (fill := compile_defaults(sub, _depth + 1)) is not None}
    if not defaults and not nested:
        return None
    return _make_fill(defaults, nested)


def _make_fill(defaults: dict[str, Any], nested: dict[str, Fill]) -> Fill:
    plain = all(isinstance(value, str | int | float | bool | None) for value in defaults.values())

    def fill(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        filled = {**(defaults if plain else copy.deepcopy(defaults)), **value}
        for name, sub in nested.items():
            if name in filled:
                filled[name] = sub(filled[name])
        return filled

    return fill

"""Defaults of a schema put into a value that lacks them, without touching the caller's own objects."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

Fill = Callable[[Any], Any]


def compile_defaults(schema: Any) -> Fill | None:
    """A function that returns the value with defaults applied; None if the schema has none.

    They are found where they hold for certain: under `properties`, `items`, `allOf` and a local `$ref`.
    """
    return _Compiler(schema).compile(schema) if _has_default(schema) else None


class _Compiler:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._known: dict[str, Fill | None] = {}

    def compile(self, schema: Any) -> Fill | None:
        if not isinstance(schema, Mapping):
            return None
        fills = [self._of_reference(schema.get("$ref")), self._of_properties(schema)]
        fills.append(self._of_items(schema.get("items")))
        every = schema.get("allOf")
        fills += [self.compile(part) for part in every] if isinstance(every, list) else []
        found = [fill for fill in fills if fill is not None]
        return None if not found else found[0] if len(found) == 1 else _one_after_the_other(found)

    def _of_reference(self, reference: Any) -> Fill | None:
        """A schema may refer to itself, so what it leads to is looked up only when a value is there."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None

        def fill(value: Any) -> Any:
            if reference not in self._known:
                self._known[reference] = None  # for one that leads straight back to itself
                self._known[reference] = self.compile(_find(self._root, reference))
            found = self._known[reference]
            return found(value) if found and isinstance(value, dict | list) else value

        return fill

    def _of_properties(self, schema: Mapping[str, Any]) -> Fill | None:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return None
        defaults = {
            name: sub["default"] for name, sub in properties.items() if isinstance(sub, Mapping) and "default" in sub
        }
        nested = {name: fill for name, sub in properties.items() if (fill := self.compile(sub)) is not None}
        return _make_fill(defaults, nested) if defaults or nested else None

    def _of_items(self, items: Any) -> Fill | None:
        fill = self.compile(items)
        if fill is None:
            return None

        def fill_items(value: Any) -> Any:
            return [fill(item) for item in value] if isinstance(value, list) else value

        return fill_items


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


def _one_after_the_other(fills: list[Fill]) -> Fill:
    def fill(value: Any) -> Any:
        for one in fills:
            value = one(value)
        return value

    return fill


def _find(root: Any, reference: str) -> Any:
    """What a local reference leads to; None if it leads nowhere."""
    from urllib.parse import unquote

    found = root
    for part in unquote(reference[1:]).split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.isascii() and part.isdigit() and int(part) < len(found):
            found = found[int(part)]
        else:
            return None
    return found


def _has_default(schema: Any) -> bool:
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            if "default" in part:
                return True
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    return False

"""Defaults of a schema put into a value that lacks them, without touching the caller's own objects."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

Fill = Callable[[Any], Any]
_Step = Callable[[Any, frozenset[str]], Any]
_NONE: Final = object()
_REFERENCES: Final = 20
"""References that are followed from one property."""


def compile_defaults(schema: Any) -> Fill | None:
    """A function that returns the value with defaults applied; None if the schema has none.

    They are found where they hold for certain: under `properties`, `items`, `allOf` and a local `$ref`.
    """
    step = _Compiler(schema).compile(schema) if _has_default(schema) else None
    return None if step is None else lambda value: step(value, frozenset())


class _Compiler:
    """Each step takes a value and the references that led to it, for one may lead back to itself."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._known: dict[str, _Step | None] = {}

    def compile(self, schema: Any) -> _Step | None:
        if not isinstance(schema, Mapping):
            return None
        steps = [self._of_reference(schema.get("$ref")), self._of_properties(schema)]
        steps.append(self._of_items(schema.get("items")))
        every = schema.get("allOf")
        steps += [self.compile(part) for part in every] if isinstance(every, list) else []
        found = [step for step in steps if step is not None]
        return None if not found else found[0] if len(found) == 1 else _one_after_the_other(found)

    def _of_reference(self, reference: Any) -> _Step | None:
        """What it leads to is looked up only when a value is there."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None

        def follow(value: Any, seen: frozenset[str]) -> Any:
            if reference in seen or not isinstance(value, dict | list):
                return value
            if reference not in self._known:
                self._known[reference] = self.compile(_find(self._root, reference))
            found = self._known[reference]
            return value if found is None else found(value, seen | {reference})

        return follow

    def _of_properties(self, schema: Mapping[str, Any]) -> _Step | None:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return None
        found = {name: self._find_default(sub) for name, sub in properties.items()}
        defaults = {name: default for name, default in found.items() if default is not _NONE}
        nested = {name: step for name, sub in properties.items() if (step := self.compile(sub)) is not None}
        return _fill_object(defaults, nested) if defaults or nested else None

    def _find_default(self, schema: Any) -> Any:
        """Its own, or that of what it refers to."""
        for _ in range(_REFERENCES):
            if not isinstance(schema, Mapping):
                break
            if "default" in schema:
                return schema["default"]
            reference = schema.get("$ref")
            schema = _find(self._root, reference) if isinstance(reference, str) and reference[:1] == "#" else None
        return _NONE

    def _of_items(self, items: Any) -> _Step | None:
        step = self.compile(items)
        if step is None:
            return None

        def fill(value: Any, _: frozenset[str]) -> Any:
            return [step(item, frozenset()) for item in value] if isinstance(value, list) else value

        return fill


def _fill_object(defaults: dict[str, Any], nested: dict[str, _Step]) -> _Step:
    plain = all(isinstance(value, str | int | float | bool | None) for value in defaults.values())

    def fill(value: Any, _: frozenset[str]) -> Any:
        if not isinstance(value, dict):
            return value
        filled = {**(defaults if plain else copy.deepcopy(defaults)), **value}
        for name, step in nested.items():
            if name in filled:
                filled[name] = step(filled[name], frozenset())
        return filled

    return fill


def _one_after_the_other(steps: list[_Step]) -> _Step:
    def fill(value: Any, seen: frozenset[str]) -> Any:
        for step in steps:
            value = step(value, seen)
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
        elif isinstance(found, list) and re.fullmatch("[0-9]{1,9}", part) and int(part) < len(found):
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

"""What an example expects: JSON in which `"..."` is any string and a trailing `...` any rest, or text."""

from __future__ import annotations

import difflib
import json
import re
from typing import Any, Final

ANY_REST: Final = "\x7fglee:rest"
"""Sorts behind the names of fields, so that it is shown last."""
_ANY_STRING: Final = "..."
_STRING_OR_REST = re.compile(r'"(?:[^"\\]|\\.)*+"?|\.\.\.(?=\s*([\]}]))', re.DOTALL)
_OF_THE_WHOLE: Final = {"anyOf", "oneOf", "not", "const", "enum", "uniqueItems", "contains"}
"""Rules that judge a list or mapping by everything in it."""


def parse_expected(text: str) -> Any:
    """The JSON value that a text stands for, ANY_REST in place of a trailing `...`; ValueError if it is none."""

    def replace(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        rest = json.dumps(ANY_REST)
        return rest if match[1] == "]" else f"{rest}: true"

    try:
        return json.loads(_STRING_OR_REST.sub(replace, text))
    except RecursionError:
        raise ValueError("nested too deep") from None


def matches(expected: Any, actual: Any) -> bool:
    """True if the value is what was expected."""
    if expected == _ANY_STRING and isinstance(actual, str):
        return True
    if isinstance(expected, dict):
        if not isinstance(actual, dict):
            return False
        wanted = {key: value for key, value in expected.items() if key != ANY_REST}
        open_ended = ANY_REST in expected
        return (open_ended or wanted.keys() == actual.keys()) and all(
            key in actual and matches(value, actual[key]) for key, value in wanted.items()
        )
    if isinstance(expected, list):
        return isinstance(actual, list) and _match_list(expected, actual)
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    return bool(expected == actual)


def _match_list(expected: list[Any], actual: list[Any]) -> bool:
    open_ended = bool(expected) and expected[-1] == ANY_REST
    wanted = expected[:-1] if open_ended else expected
    if len(actual) < len(wanted) or (not open_ended and len(actual) != len(wanted)):
        return False
    return all(matches(want, got) for want, got in zip(wanted, actual, strict=False))


def without_rest(expected: Any) -> Any:
    """The value as far as it is spelled out, for checking it against a schema."""
    if isinstance(expected, dict):
        return {key: without_rest(value) for key, value in expected.items() if key != ANY_REST}
    if isinstance(expected, list):
        return [without_rest(item) for item in expected if item != ANY_REST]
    return expected


def is_open(expected: Any, path: tuple[str | int, ...], rule: str) -> bool:
    """True where the expectation leaves open what a schema's rule objects to at a path."""
    for part in path:
        try:
            expected = expected[part]
        except (KeyError, IndexError, TypeError):
            return True
    if expected == _ANY_STRING:
        return rule != "type"
    return _holds_open(expected) if rule in _OF_THE_WHOLE else _has_rest(expected)


def _has_rest(expected: Any) -> bool:
    return isinstance(expected, dict | list) and ANY_REST in expected


def _holds_open(expected: Any) -> bool:
    if isinstance(expected, dict | list):
        items = expected.values() if isinstance(expected, dict) else expected
        return _has_rest(expected) or any(map(_holds_open, items))
    return bool(expected == _ANY_STRING)


def show(value: Any) -> str:
    """As a person would write it, for a diff."""
    text = json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    return text.replace(f'"{ANY_REST}": true', "...").replace(f'"{ANY_REST}"', "...")


def diff(expected: str, actual: str) -> str:
    lines = difflib.unified_diff(expected.splitlines(), actual.splitlines(), "expected", "actual", lineterm="", n=3)
    return "\n".join(lines)

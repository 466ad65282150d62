"""Copies of a call's values: nobody who was shown one can change what runs, is recorded or is returned."""

from __future__ import annotations

import copy
from typing import Any, Final

from msgspec import structs

from glee.definitions.call import Call
from glee.definitions.json_text import decode_json, encode_json
from glee.errors import InvalidInput

IMMUTABLE: Final = frozenset((str, int, float, bool, type(None)))


def own(arguments: dict[str, Any]) -> dict[str, Any]:
    """A copy, so that nobody can change what was checked, approved and recorded before it runs."""
    if _is_flat(arguments):
        return dict(arguments)
    try:
        return copy.deepcopy(arguments)
    except RecursionError:
        raise InvalidInput("the arguments hold themselves, or are nested too deep") from None
    except Exception as error:
        raise InvalidInput(f"the arguments are not JSON: {type(error).__name__}; give JSON values") from error


def _is_flat(value: dict[str, Any]) -> bool:
    return IMMUTABLE.issuperset(map(type, value.values()))


def copy_value(value: Any) -> Any:
    """For those who only watch: what they do to it changes nothing."""
    if type(value) in IMMUTABLE:
        return value
    if type(value) is dict and _is_flat(value):
        return dict(value)
    try:
        return copy.deepcopy(value)
    except RecursionError:
        return decode_json(encode_json(value))


def copy_call(call: Call) -> Call:
    return structs.replace(call, arguments=copy_value(call.arguments), context=copy_value(call.context))

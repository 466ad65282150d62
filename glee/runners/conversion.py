"""JSON arguments as a function wants them: whole numbers, dates, enums, dataclasses."""

from __future__ import annotations

from typing import Any

import msgspec

from glee.definitions.tool import FunctionExec
from glee.errors import InvalidInput

_MAY_HOLD_FLOATS = (float, list, dict)


def convert_arguments(execution: FunctionExec, arguments: dict[str, Any]) -> dict[str, Any]:
    for name in execution.integers:
        if type(arguments.get(name)) in _MAY_HOLD_FLOATS:
            arguments = {**arguments, name: _to_integers(arguments[name])}
    if execution.converters:
        arguments = {**arguments}
        for name, kind in execution.converters.items():
            if name in arguments:
                arguments[name] = convert_argument(name, arguments[name], kind)
    return arguments


def convert_argument(name: str, value: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind, str_keys=True)
    except msgspec.ValidationError as error:
        raise invalid_argument(name, str(error)) from error


def invalid_argument(name: str, reason: str) -> InvalidInput:
    violation = {"pointer": f"/{name}", "rule": "type", "message": reason, "hint": f"change `{name}`"}
    return InvalidInput(f"{name}: {reason}", details={"violations": [violation]})


def _to_integers(value: Any) -> Any:
    if type(value) is float:
        return int(value)
    if type(value) is list:
        return [_to_integers(item) for item in value]
    return {key: _to_integers(item) for key, item in value.items()} if type(value) is dict else value

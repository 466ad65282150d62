"""Values against their schemas: inputs before a run, outputs after it. Compiled once for each tool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from glee.definitions.tool import Tool
from glee.errors import InvalidInput
from glee.schemas.defaults import Fill, compile_defaults
from glee.schemas.validator import Validator

_SHOWN = 3
_MOST = 1000
"""Violations worth telling: whoever breaks more has not read the schema."""


Show = Callable[[Any], Any]


def _as_it_is(value: Any) -> Any:
    return value


class _Compiled(Struct, frozen=True):
    inputs: Validator
    fill: Fill | None
    outputs: Validator | None


class Shapes:
    def __init__(self) -> None:
        self._compiled: dict[Tool, _Compiled] = {}

    def check_inputs(self, tool: Tool, arguments: dict[str, Any], show: Show = _as_it_is) -> dict[str, Any]:
        """The arguments with defaults applied; every violation at once if they do not fit.

        What is said of them is said of what `show` leaves: without secrets.
        """
        compiled = self._compiled.get(tool) or self._compile(tool)
        filled: dict[str, Any] = compiled.fill(arguments) if compiled.fill else arguments
        try:
            if compiled.inputs.is_valid(filled):
                return filled
            raise _invalid(tool, compiled.inputs, show(filled))
        except ValueError as error:
            raise InvalidInput(
                f"the input of {tool.name} is not JSON: {error}; give JSON values under names that are text"
            ) from error

    def check_output(self, tool: Tool, output: Any, show: Show = _as_it_is) -> tuple[str, ...]:
        """What is wrong with an output, as warnings; they too speak of what `show` leaves."""
        compiled = self._compiled.get(tool) or self._compile(tool)
        try:
            if compiled.outputs is None or compiled.outputs.is_valid(output):
                return ()
        except ValueError as error:
            return (f"the output cannot be checked against outputs.schema: {error}",)
        violations = compiled.outputs.violations(show(output), _MOST)
        listed = [f"{violation.pointer or '/'}: {violation.message}" for violation in violations[:_SHOWN]]
        more = f" (and {len(violations) - _SHOWN} more)" if len(violations) > _SHOWN else ""
        return (f"the output does not fit outputs.schema: {'; '.join(listed)}{more}",)

    def forget(self) -> None:
        self._compiled.clear()

    def _compile(self, tool: Tool) -> _Compiled:
        schema = tool.outputs.schema
        compiled = _Compiled(
            inputs=Validator(tool.inputs),
            fill=compile_defaults(tool.inputs),
            outputs=None if schema is None else Validator(schema),
        )
        self._compiled[tool] = compiled
        return compiled


def _invalid(tool: Tool, validator: Validator, arguments: Any) -> InvalidInput:
    violations = validator.violations(arguments, _MOST)
    if not violations:
        return InvalidInput(f"the input does not fit {tool.name}; see its schema with `glee show {tool.name}`")
    first = violations[0]
    many = "at least " if len(violations) == _MOST else ""
    more = f" (and {many}{len(violations) - 1} more)" if len(violations) > 1 else ""
    where = f"{first.pointer}: " if first.pointer else ""
    return InvalidInput(
        f"the input does not fit {tool.name}: {where}{first.message}; {first.hint}{more}",
        details={"violations": msgspec.to_builtins(violations)},
    )

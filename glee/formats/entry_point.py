"""What an entry point of a package leads to: loading it runs the package's code, telling of it gives plain JSON."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import msgspec

from glee.definitions.tool import Tool
from glee.formats.functions import FunctionTool


def load_tools(target: str) -> list[FunctionTool[..., Any]]:
    """Its tools: one made by `@glee.tool`, an iterable of such, or what a function without parameters returns."""
    found = _resolve(target)
    if callable(found) and not isinstance(found, FunctionTool):
        found = found()
    if not isinstance(found, FunctionTool | Iterable):
        raise TypeError(f"{found!r} was not made by @glee.tool")
    tools = [found] if isinstance(found, FunctionTool) else list(found)
    for tool in tools:
        if not isinstance(tool, FunctionTool):
            raise TypeError(f"{tool!r} was not made by @glee.tool")
    return tools


def _resolve(target: str) -> Any:
    module, _, attributes = target.partition(":")
    found: Any = import_module(module)
    for attribute in filter(None, attributes.split(".")):
        found = getattr(found, attribute)
    return found


def to_manifest(tool: Tool) -> dict[str, Any]:
    """A definition in the words of a manifest, without what belongs to the function itself."""
    told: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "version": tool.version,
        "group": tool.group,
        "dangerous": tool.dangerous,
        "idempotent": tool.idempotent,
        "inputs": {"schema": tool.inputs},
        "outputs": _given(msgspec.to_builtins(tool.outputs)),
        "permissions": msgspec.to_builtins(tool.permissions),
        "approval": msgspec.to_builtins(tool.approval) if tool.approval.required else None,
        "examples": msgspec.to_builtins(tool.examples),
        "timeout_ms": tool.exec.timeout_ms,
    }
    secrets = told["permissions"]["secrets"]
    secrets.update({name: _given(need) for name, need in secrets.items()})
    return _given(told)


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}

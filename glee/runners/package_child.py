"""Runs in the jail of a package's tool, in the interpreter that runs Glee; nothing else imports the package.

`describe` tells which tools an entry point offers. Every other name, `module:attribute#tool`, is the tool of that
name as a function, converting arguments and results as for a function of Glee's own process.
"""

from __future__ import annotations

import functools
import os
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from glee.definitions.call import Caller
from glee.definitions.context import Context
from glee.definitions.json_text import to_json_value
from glee.definitions.tool import FunctionExec, Tool
from glee.formats.entry_point import load_tools, to_manifest
from glee.runners.conversion import convert_arguments


def describe(target: str) -> list[dict[str, Any]]:
    return [to_manifest(tool.definition) for tool in load_tools(target)]


def __getattr__(name: str) -> Any:
    if "#" not in name:
        raise AttributeError(name)
    try:
        return _find(name)
    except AttributeError as error:  # of the package: not of this module, as it would seem
        raise ImportError(f"{name.partition('#')[0]} cannot be loaded: {error}") from error


@functools.cache
def _find(name: str) -> Callable[..., Any]:
    target, _, wanted = name.partition("#")
    for tool in load_tools(target):
        if tool.definition.name == wanted:
            return functools.partial(_call, tool.definition)
    raise ImportError(f"{target} no longer offers a tool {wanted}; run `glee list` to see what it offers")


def _call(tool: Tool, inputs: dict[str, Any], call_id: str, caller: dict[str, Any]) -> Any:
    execution = tool.exec
    assert isinstance(execution, FunctionExec)
    arguments = convert_arguments(execution, inputs)
    if execution.context_parameter is not None:
        context = _context(tool, call_id, msgspec.convert(caller, Caller))
        arguments = {**arguments, execution.context_parameter: context}
    value = execution.function(**arguments)
    if hasattr(type(value), "__await__"):
        import asyncio

        async def wait() -> Any:
            return await value

        value = asyncio.run(wait())
    return to_json_value(value)


def _context(tool: Tool, call_id: str, caller: Caller) -> Context:
    secrets = {name: os.environ[name] for name in tool.permissions.secrets if name in os.environ}
    return Context(
        call_id=call_id,
        caller=caller,
        workdir=Path.cwd(),
        environment=types.MappingProxyType(secrets),
        sandbox="a jail: what the tool's permissions name, and nothing else",
        progress=lambda done, total, message: None,
        cancelled=threading.Event(),
    )

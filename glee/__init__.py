"""Glee, the tools engine for AI agents. The public names, each loaded when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from glee.version import VERSION

__version__ = VERSION

if TYPE_CHECKING:
    from glee.compose import open_engine as open
    from glee.definitions.call import Call, Caller
    from glee.definitions.context import Context
    from glee.definitions.result import Artifact, Failure, Result
    from glee.definitions.tool import Tool
    from glee.engine import Engine
    from glee.errors import GleeError
    from glee.formats.functions import FunctionTool, tool, toolset

_HOMES = {
    "Artifact": ("glee.definitions.result", "Artifact"),
    "Call": ("glee.definitions.call", "Call"),
    "Caller": ("glee.definitions.call", "Caller"),
    "Context": ("glee.definitions.context", "Context"),
    "Engine": ("glee.engine", "Engine"),
    "Failure": ("glee.definitions.result", "Failure"),
    "FunctionTool": ("glee.formats.functions", "FunctionTool"),
    "GleeError": ("glee.errors", "GleeError"),
    "Result": ("glee.definitions.result", "Result"),
    "Tool": ("glee.definitions.tool", "Tool"),
    "open": ("glee.compose", "open_engine"),
    "tool": ("glee.formats.functions", "tool"),
    "toolset": ("glee.formats.functions", "toolset"),
}

__all__ = [
    "Artifact",
    "Call",
    "Caller",
    "Context",
    "Engine",
    "Failure",
    "FunctionTool",
    "GleeError",
    "Result",
    "Tool",
    "__version__",
    "open",
    "tool",
    "toolset",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"glee has no {name!r}")
    module, attribute = _HOMES[name]
    value = globals()[name] = getattr(import_module(module), attribute)
    return value


def __dir__() -> list[str]:
    return __all__

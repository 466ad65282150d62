"""Tools that installed packages provide through the entry-point group `glee.tools`.

An entry point leads to a tool made by `@glee.tool`, to a list of such tools, or to a function
without parameters that returns either.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct, structs

from glee.catalog.source import Found, Progress, Summary, summarise
from glee.definitions.problem import Problem
from glee.definitions.tool import Origin, Tool

if TYPE_CHECKING:
    from glee.formats.functions import FunctionTool

GROUP: Final = "glee.tools"

_Stamp = list[tuple[str, int]]


class EntryPoint(Struct, frozen=True, array_like=True):
    name: str
    value: str
    package: str


class PackageSource:
    """Loads a package's code only when some package on the path offers tools at all."""

    def __init__(self, cache_file: Path | None = None, points: Callable[[], list[EntryPoint]] | None = None) -> None:
        self._cache_file = cache_file
        self._points = points or self._find_points
        self._loaded: list[tuple[str, Found]] | None = None

    def find(self, name: str) -> Found | None:
        return next((found for known, found in self._load() if known == name), None)

    def is_current(self, tool: Tool) -> bool:
        return True

    def summaries(self, progress: Progress | None = None) -> Iterator[Summary]:
        for name, found in self._load():
            if found.tool is not None:
                yield summarise(found.tool)
            else:
                problem = found.problems[0]
                yield Summary(name=name, origin=f"package {problem.file}", broken=problem.message)

    def _load(self) -> list[tuple[str, Found]]:
        """In the order of names; of two with the same name the first package's comes first."""
        if self._loaded is None:
            found = [pair for point in self._points() for pair in _load_point(point)]
            self._loaded = sorted(found, key=lambda pair: pair[0])
        return self._loaded

    def _find_points(self) -> list[EntryPoint]:
        """Finding out that nothing is installed costs more than a whole listing, so that answer is kept.

        Only that: what code is loaded is never read from a cache.
        """
        stamp = [(entry, _mtime(entry)) for entry in sys.path]
        if self._read_cache() == stamp:
            return []
        from importlib.metadata import entry_points

        points = sorted(
            (EntryPoint(p.name, p.value, p.dist.name if p.dist else p.value) for p in entry_points(group=GROUP)),
            key=lambda point: (point.package, point.name),
        )
        if not points:
            self._write_cache(stamp)
        return points

    def _read_cache(self) -> _Stamp | None:
        try:
            return msgspec.msgpack.decode(self._cache_file.read_bytes(), type=_Stamp) if self._cache_file else None
        except (OSError, msgspec.MsgspecError, ValueError):
            return None

    def _write_cache(self, stamp: _Stamp) -> None:
        if self._cache_file is None:
            return
        draft = self._cache_file.with_suffix(f".{os.getpid()}.draft")
        try:
            self._cache_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft.write_bytes(msgspec.msgpack.encode(stamp))
            draft.replace(self._cache_file)
        except (OSError, UnicodeEncodeError):
            with contextlib.suppress(OSError):
                draft.unlink()


def _mtime(entry: str) -> int:
    try:
        return os.stat(entry or ".").st_mtime_ns
    except OSError:
        return 0


def _load_point(point: EntryPoint) -> Iterator[tuple[str, Found]]:
    """One broken package never hides the others, so whatever its code raises becomes a problem."""
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what a package prints is no part of anybody's output
            tools = [_from_package(tool, point) for tool in _tools_of(_resolve(point.value))]
    except (Exception, SystemExit) as error:
        problem = Problem(
            file=point.package,
            line=1,
            column=1,
            field=point.name,
            rule="package",
            message=f"the entry point {point.value} cannot be loaded: {type(error).__name__}: {error}",
            hint="mend or uninstall the package",
        )
        yield point.name, Found(None, (problem,))
        return
    for tool in tools:
        yield tool.name, Found(tool)


def _resolve(value: str) -> Any:
    from importlib import import_module

    module, _, attributes = value.partition(":")
    found: Any = import_module(module.strip())
    for attribute in filter(None, attributes.strip().split(".")):
        found = getattr(found, attribute)
    return found


def _tools_of(found: Any) -> Iterable[FunctionTool[..., Any]]:
    from glee.formats.functions import FunctionTool

    if isinstance(found, FunctionTool):
        return [found]
    if callable(found):
        found = found()
    if not isinstance(found, FunctionTool | Iterable):
        raise TypeError(f"{found!r} was not made by @glee.tool")
    tools = [found] if isinstance(found, FunctionTool) else list(found)
    for tool in tools:
        if not isinstance(tool, FunctionTool):
            raise TypeError(f"{tool!r} was not made by @glee.tool")
    return tools


def _from_package(tool: FunctionTool[..., Any], point: EntryPoint) -> Tool:
    return structs.replace(tool.definition, origin=Origin(source="package", location=point.package))

"""Where tools come from: anything that can find one by name and list all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from msgspec import Struct

from glee.definitions.problem import Problem
from glee.definitions.tool import Tool

Progress = Callable[[int, int], None]
"""Called with how many definitions are read, and how many there are."""


class Summary(Struct, frozen=True, kw_only=True):
    """What a listing shows, cheap enough to keep for ten thousand tools."""

    name: str
    description: str = ""
    kind: str = ""
    group: str | None = None
    approval: bool = False
    dangerous: bool = False
    origin: str = ""
    trusted: bool = False
    """True if it runs in Glee's own process because a config says so."""
    broken: str | None = None
    """Why the definition cannot be used; None if it can."""


class Found(Struct, frozen=True):
    """A tool, or why the definition of that name is broken."""

    tool: Tool | None
    problems: tuple[Problem, ...] = ()


class Source(Protocol):
    def find(self, name: str) -> Found | None:
        """The definition of a name, if this source has one. Reads no other."""
        ...

    def is_current(self, tool: Tool) -> bool:
        """False if this source gave the tool and its definition has changed since."""
        ...

    def summaries(self, progress: Progress | None = None) -> Iterable[Summary]:
        """All definitions, broken ones included."""
        ...


def summarise(tool: Tool) -> Summary:
    return Summary(
        name=tool.name,
        description=tool.description,
        kind=tool.kind,
        group=tool.group,
        approval=tool.approval.required,
        dangerous=tool.dangerous,
        origin=str(tool.origin),
        trusted=tool.origin.trusted,
    )

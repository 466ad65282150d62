"""The registry: tools by name, by group, and by the names that model providers accept."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from glee.definitions.tool import Tool
from glee.errors import DefinitionError, NotFound

_API_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_API = re.compile(r"[^A-Za-z0-9_-]")


class Registry:
    """Keeps tools in the order of their names, whatever order they came in."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._api_names: dict[str, str] | None = None
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool) -> None:
        """A second tool of the same name is an error that names both origins."""
        other = self._tools.get(tool.name)
        if other is not None:
            raise DefinitionError(
                f"two tools are called {tool.name}: one from {other.origin}, one from {tool.origin}; rename one"
            )
        self._tools[tool.name] = tool
        self._api_names = None

    def unregister(self, name: str) -> None:
        self.get(name)
        del self._tools[name]
        self._api_names = None

    def find(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def get(self, name: str) -> Tool:
        tool = self._tools.get(name)
        if tool is None:
            raise NotFound(f"there is no tool {name}")
        return tool

    def get_by_api_name(self, api_name: str) -> Tool:
        name = self.api_names().get(api_name)
        if name is None:
            raise NotFound(f"there is no tool with the API name {api_name}")
        return self._tools[name]

    def has(self, name: str) -> bool:
        return name in self._tools

    def list(self) -> tuple[Tool, ...]:
        return tuple(self._tools[name] for name in sorted(self._tools))

    def by_group(self, group: str) -> tuple[Tool, ...]:
        return tuple(tool for tool in self.list() if tool.group == group)

    def api_names(self) -> dict[str, str]:
        """API names to names: the same table whatever the order of registration."""
        if self._api_names is None:
            self._api_names = api_table(self._tools)
        return self._api_names


def api_table(names: Iterable[str]) -> dict[str, str]:
    """Unambiguous names of `[A-Za-z0-9_-]{1,64}` for any set of names.

    A name that is acceptable as it is stays so. Where two would become the same, each that had to be
    changed gets a short hash of its own name.
    """
    names = sorted(set(names))
    table = {name: name for name in names if _API_NAME.fullmatch(name)}
    wanted: dict[str, list[str]] = {}
    for name in names:
        if name not in table:
            wanted.setdefault(_NOT_API.sub("_", name), []).append(name)
    for candidate, claimants in wanted.items():
        alone = len(claimants) == 1 and 0 < len(candidate) <= 64 and candidate not in table
        for name in claimants:
            table[candidate if alone else _with_hash(candidate, name, table)] = name
    return table


def _with_hash(candidate: str, name: str, taken: dict[str, str]) -> str:
    digest = hashlib.sha256(name.encode()).hexdigest()
    for length in (8, 16, 32):
        hashed = f"{candidate[: 63 - length]}_{digest[:length]}"
        if hashed not in taken:
            return hashed
    raise DefinitionError(f"no API name is left for {name}; rename the tool")

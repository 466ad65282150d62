"""The catalog: sources in a fixed order behind one registry. A tool is looked up without reading the others."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from msgspec import structs

from glee.catalog.registry import Registry, api_table
from glee.catalog.source import Found, Progress, Source, Summary, summarise
from glee.definitions.tool import Tool


class Catalog:
    """Registered tools first, then each source in turn; the first to have a name has it."""

    def __init__(self, sources: Sequence[Source] = (), registry: Registry | None = None) -> None:
        self.registry = registry or Registry()
        self._sources = tuple(sources)
        self._broken: dict[str, Found] = {}
        self._gone: set[str] = set()
        self._own: set[str] = set()
        """Names that the program registered itself; no source speaks for them."""
        self._summaries: tuple[Summary, ...] | None = None
        self._lock = threading.Lock()
        """Held while a definition is read, so that two threads do not register the same one."""

    def register(self, tool: Tool) -> None:
        """Adds a tool of the program's own; a name that any source already has is an error."""
        self.find(tool.name)
        self.registry.register(tool)
        self._own.add(tool.name)
        self._summaries = None

    def unregister(self, name: str) -> None:
        """Takes a tool away; one that a source has does not come back until `reload`."""
        self.find(name)
        with self._lock:
            self.registry.unregister(name)
            if name not in self._own:
                self._gone.add(name)
            self._own.discard(name)
            self._summaries = None

    def find(self, name: str) -> Tool | None:
        """The tool of a name, as it is defined now; None if there is none or its definition is broken."""
        tool = self.registry.find(name)
        if tool is not None and self._is_current(tool):
            return tool
        with self._lock:
            tool = self.registry.find(name)
            if tool is not None and not self._is_current(tool):
                self.registry.unregister(name)
                tool = None
            return tool or self._look(name)

    def _is_current(self, tool: Tool) -> bool:
        return tool.name in self._own or all(source.is_current(tool) for source in self._sources)

    def find_broken(self, name: str) -> Found | None:
        """The problems of a definition that cannot be used."""
        return self._broken.get(name)

    def find_by_api_name(self, api_name: str) -> Tool | None:
        name = api_table(summary.name for summary in self.summaries()).get(api_name)
        return self.find(name) if name else None

    def summaries(self, progress: Progress | None = None) -> tuple[Summary, ...]:
        """Everything there is, in the order of names, broken definitions and their reasons included."""
        if self._summaries is None:
            listed = {tool.name: summarise(tool) for tool in self.registry.list()}
            for source in self._sources:
                for summary in source.summaries(progress):
                    if summary.name not in self._gone:
                        self._list(listed, summary)
            self._summaries = tuple(listed[name] for name in sorted(listed))
        return self._summaries

    def nearest(self, name: str, known: Sequence[str], count: int = 3) -> list[str]:
        """The names most like one that is unknown."""
        import difflib

        return difflib.get_close_matches(name, known, n=count, cutoff=0.5)

    def reload(self) -> None:
        """Forgets what was read; what a program registered itself stays."""
        with self._lock:
            for tool in self.registry.list():
                if tool.name not in self._own:
                    self.registry.unregister(tool.name)
            self._broken.clear()
            self._gone.clear()
            self._summaries = None

    def _list(self, listed: dict[str, Summary], summary: Summary) -> None:
        first = listed.get(summary.name)
        if first is None:
            listed[summary.name] = summary
        elif first.origin != summary.origin:
            reason = f"two tools are called {summary.name}: {first.origin} is used, not {summary.origin}; rename one"
            listed[f"{summary.name} {summary.origin}"] = structs.replace(summary, broken=reason)

    def _look(self, name: str) -> Tool | None:
        for source in self._sources if name not in self._gone else ():
            found = source.find(name)
            if found is None:
                continue
            if found.tool is None:
                self._broken[name] = found
            else:
                self._broken.pop(name, None)
                self.registry.register(found.tool)
            return found.tool
        self._broken.pop(name, None)
        return None

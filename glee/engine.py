"""Engine: what a library user holds. One way to call, awaited or not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from glee.catalog.source import Progress, Summary
from glee.definitions.call import Call, Caller
from glee.definitions.decision import Deny
from glee.definitions.event import Listener
from glee.definitions.result import Artifact, Result
from glee.definitions.tool import Tool
from glee.errors import DefinitionError, GleeError
from glee.formats.functions import FunctionTool
from glee.parts import Parts
from glee.pipeline import Pipeline
from glee.runners.waiting import NEEDS_LOOP, go_on, running_loop


class Engine:
    """Finds tools and calls them. `glee.open()` makes one for a project."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._pipeline = Pipeline(parts)
        self._loops = threading.local()
        self._runners: list[Any] = []

    async def call(self, call: Call | str, arguments: Mapping[str, Any] | None = None) -> Result:
        """One call: a `Call`, or a tool's name and its arguments."""
        if not isinstance(call, Call):
            if not isinstance(call, str) or not isinstance(arguments, Mapping | None):
                raise GleeError("give a Call, or a tool's name and its arguments as a mapping")
            call = Call(tool=call, arguments=dict(arguments or {}))
        return await self._pipeline.call(call)

    def call_sync(self, call: Call | str, arguments: Mapping[str, Any] | None = None) -> Result:
        """The same without await. It runs in place; an event loop is used only by what needs one."""
        if running_loop() is not None:
            raise GleeError("call_sync would block the running event loop; use `await engine.call(...)` here")
        coroutine = self.call(call, arguments)
        try:
            wish = coroutine.send(None)
        except StopIteration as done:
            result: Result = done.value
            return result
        if wish is not NEEDS_LOOP:
            coroutine.close()
            raise GleeError(f"a step waits for {wish!r} without an event loop")
        return self._finish_on_loop(coroutine)

    def _finish_on_loop(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Each thread keeps one loop, so that connections can be reused."""
        import asyncio

        runner = getattr(self._loops, "runner", None)
        if runner is None:
            runner = self._loops.runner = asyncio.Runner()
            self._runners.append(runner)

        async def finish() -> Result:
            result: Result = await go_on(coroutine, NEEDS_LOOP)
            return result

        result: Result = runner.run(finish())
        return result

    def register(self, *tools: FunctionTool[..., Any] | Tool) -> None:
        """Adds tools of this program. A name that is taken is an error."""
        for tool in tools:
            definition = tool.definition if isinstance(tool, FunctionTool) else tool
            if not isinstance(definition, Tool):
                raise DefinitionError(f"{definition!r} is not a tool; put @glee.tool above the function")
            self._parts.catalog.register(definition)

    def unregister(self, name: str) -> None:
        self._parts.catalog.unregister(name)

    def find(self, name: str, caller: Caller | None = None) -> Tool | None:
        """A tool this caller may know of, by its name or its API name."""
        catalog = self._parts.catalog
        tool = catalog.find(name) or catalog.find_by_api_name(name)
        return tool if tool and self._is_visible(tool, caller) else None

    def list(self, caller: Caller | None = None, progress: Progress | None = None) -> tuple[Summary, ...]:
        """What this caller may know of, in the order of names, broken definitions included."""
        summaries = self._parts.catalog.summaries(progress)
        return tuple(summary for summary in summaries if self._is_visible(summary, caller))

    def _is_visible(self, subject: Tool | Summary, caller: Caller | None) -> bool:
        return not isinstance(self._parts.policy.visible(subject, caller or Caller()), Deny)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Tells a function of every event of every call; returns how to stop."""
        return self._parts.events.subscribe(listener)

    def read_artifact(self, handle: str | Artifact) -> bytes:
        """The whole of an output that was too large to return."""
        return self._parts.artifacts.read(handle if isinstance(handle, str) else handle.handle)

    def reload(self) -> None:
        """Reads definitions anew when they are next wanted."""
        self._parts.catalog.reload()
        self._parts.shapes.forget()

    async def aclose(self) -> None:
        """Closes kept connections and files."""
        for part in (*self._parts.runners.values(), self._parts.runners, self._parts.audit):
            close = getattr(part, "close", None)
            if close is not None:
                closing = close()
                if closing is not None:
                    await closing

    def close(self) -> None:
        """The same for programs without an event loop, with the loops that threads were given."""
        if any(runner.get_loop().is_running() for runner in self._runners):
            raise GleeError("a call is still running in another thread; wait for it before closing the engine")
        runners, self._runners, self._loops = self._runners, [], threading.local()
        for runner in runners:
            runner.run(self.aclose())
            runner.close()
        for part in (self._parts.runners, self._parts.audit):
            close = getattr(part, "close", None)
            if close is not None:
                close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Engine:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

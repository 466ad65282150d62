"""pydantic-ai: the tool manager's `handle_call`, which an agent's run goes through for each tool call."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RunUsage

from bench.contestants import ARGUMENTS, Subject, choose


def open_subject(way: str) -> Subject:
    toolset: Any = FunctionToolset()
    toolset.add_function(choose(way), name="add")
    context: Any = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    loop = asyncio.new_event_loop()
    manager = loop.run_until_complete(ToolManager(toolset).for_run_step(context))

    def call() -> Any:
        return manager.handle_call(ToolCallPart("add", ARGUMENTS))

    if way == "sync":
        return Subject(call=lambda: loop.run_until_complete(call()))
    return Subject(call=call)

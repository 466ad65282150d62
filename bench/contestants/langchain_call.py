"""langchain-core: `invoke` and `ainvoke` of a structured tool, which validate and run callbacks."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import StructuredTool

from bench.contestants import ARGUMENTS, Subject, choose


def open_subject(way: str) -> Subject:
    place = "coroutine" if way == "async" else "func"
    tool: Any = StructuredTool.from_function(name="add", description="Add two numbers.", **{place: choose(way)})
    invoke = tool.invoke if way == "sync" else tool.ainvoke
    return Subject(call=lambda: invoke(ARGUMENTS))

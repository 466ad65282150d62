"""mcp 1.x: its FastMCP server's `call_tool`, without a transport. A loop is kept for the call without await."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.server.fastmcp import FastMCP

from bench.contestants import ARGUMENTS, Subject, choose


def open_subject(way: str) -> Subject:
    server: Any = FastMCP("bench", log_level="WARNING")
    server.add_tool(choose(way), name="add")

    def call() -> Any:
        return server.call_tool("add", ARGUMENTS)

    if way == "sync":
        loop = asyncio.new_event_loop()
        return Subject(call=lambda: loop.run_until_complete(call()), read=_read)
    return Subject(call=call, read=_read)


def _read(answer: Any) -> Any:
    return answer[1]["result"]

"""fastmcp: a server's `call_tool`, without a transport. It has no call without await, so a loop is kept for that."""

from __future__ import annotations

import asyncio
from typing import Any

from fastmcp import FastMCP

from bench.contestants import ARGUMENTS, Subject, choose


def open_subject(way: str) -> Subject:
    server: Any = FastMCP("bench")
    server.tool(choose(way), name="add")

    def call() -> Any:
        return server.call_tool("add", ARGUMENTS)

    if way == "sync":
        loop = asyncio.new_event_loop()
        return Subject(call=lambda: loop.run_until_complete(call()), read=_read)
    return Subject(call=call, read=_read)


def _read(answer: Any) -> Any:
    return answer.structured_content["result"]

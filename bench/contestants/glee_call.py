"""Glee: the whole pipeline in a project of its own, the audit line written for real and one listener subscribed."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import glee
from bench.contestants import ARGUMENTS, Subject, choose
from glee.audit.log import NoRecord
from glee.testing import Project


def open_subject(way: str, tools: str = "0", root: str = "", cache: str = "") -> Subject:
    """`sync-unrecorded` leaves the record out; so many `tools` stand beside the one called, and all those at `root`."""
    folder = tempfile.TemporaryDirectory(prefix="glee-bench-")
    project = Project(Path(folder.name))
    if root:
        project.root = Path(root)
        project.environ["XDG_CACHE_HOME"] = cache
    recorded = way != "sync-unrecorded"
    engine = project.open(audit=None if recorded else NoRecord())
    engine.register(glee.tool(name="add")(choose(way)), *_others(int(tools)))
    engine.list()
    heard: list[str] = []
    engine.subscribe(lambda event: heard.__setitem__(slice(None), [event.tool]))

    def read(result: glee.Result) -> Any:
        if not heard or recorded != bool(project.audit_lines):
            sys.exit("the call went by without its event, or its record is not as this way wants it")
        return result.output

    def close() -> None:
        engine.close()
        folder.cleanup()

    call = engine.call_sync if way.startswith("sync") else engine.call
    return Subject(call=lambda: call("add", ARGUMENTS), read=read, close=close)


def _others(count: int) -> list[glee.FunctionTool[..., Any]]:
    return [glee.tool(name=f"other.add_{number}")(choose("sync")) for number in range(count)]

"""Child processes: a bare `subprocess.run`, and the same program as a tool."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from bench.contestants import Subject

_BARE: Final = {"true": ["/bin/true"], "python": [sys.executable, "-c", "pass"]}
_WARM_UP: Final = {"true": 10, "python": 2}


def open_subject(way: str, program: str) -> Subject:
    """`sync-bare` starts the program itself; `sync` and `awaited` call it as a tool."""
    return _bare(program) if way == "sync-bare" else _tool(way, program)


def _bare(program: str) -> Subject:
    return Subject(
        call=lambda: subprocess.run(_BARE[program], capture_output=True),
        read=lambda done: done.returncode,
        answer=0,
        warm_up=_WARM_UP[program],
    )


def _tool(way: str, program: str) -> Subject:
    import glee
    from glee.testing import Project, manifest

    folder = tempfile.TemporaryDirectory(prefix="glee-bench-")
    project = Project(Path(folder.name))
    project.configure_person("sandbox: {mode: 'off'}")
    project.add_tool("true", manifest("true", "command", {"entrypoint": "/bin/true"}))
    project.add_python("python", "def run():\n    return None\n")
    engine = project.open()

    def close() -> None:
        engine.close()
        folder.cleanup()

    def read(result: glee.Result) -> Any:
        return result.ok

    call = engine.call_sync if way == "sync" else engine.call
    return Subject(
        call=lambda: call(program),
        read=read,
        answer=True,
        warm_up=_WARM_UP[program],
        close=close,
    )

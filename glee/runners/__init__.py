"""How it is done: one runner for each kind of tool, all with the same face."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from glee.definitions.call import Caller
from glee.definitions.context import ProgressSink
from glee.definitions.isolation import Isolation
from glee.definitions.tool import Tool
from glee.secrets.environment import Secrets
from glee.secrets.redaction import Redactor


class Run(Struct, frozen=True, kw_only=True):
    """One run of one tool: everything a runner needs and nothing it may not know."""

    tool: Tool
    arguments: dict[str, Any]
    secrets: Secrets
    redactor: Redactor
    """What takes their values out of a text that is going to be cut."""
    root: Path
    call_id: str
    caller: Caller
    timeout: float
    """Seconds."""
    strict_timeout: bool
    """True if the tool, the caller or a config set the time, so that it must be kept even for a plain function."""
    output_bytes: int
    progress: ProgressSink
    held: Callable[[Isolation], None]
    """Told how the run is held, before anything of it runs; in Glee's own process nothing does."""


class Outcome(Struct, frozen=True, kw_only=True):
    """What a run gave, before it is shaped."""

    output: Any
    exit_code: int | None = None
    warnings: tuple[str, ...] = ()
    said: str = ""
    """What it wrote beside its output."""
    raw: bytes | None = None
    """The bytes as they came, where the output could not show them faithfully."""


class Runner(Protocol):
    """A runner may also have `check(tool, arguments)`, which raises InvalidInput for what it could not run.

    It is asked before anybody decides or is asked, so that a call that cannot be made bothers no one.
    """

    async def run(self, run: Run) -> Outcome:
        """Runs it, and leaves nothing behind however it ends. Raises a CallError if there is no output."""
        ...

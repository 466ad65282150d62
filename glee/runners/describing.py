"""What installed packages say of their tools, asked in jails that may touch nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from glee.definitions.call import Caller
from glee.definitions.tool import Tool
from glee.errors import CallError, SandboxUnavailable
from glee.runners import Run
from glee.runners.python import PythonRunner
from glee.runners.waiting import running_loop
from glee.secrets.environment import NO_SECRETS
from glee.secrets.redaction import NOTHING

TIMEOUT: Final = 30.0
"""Seconds for an import."""
MOST_BYTES: Final = 1_048_576
"""Of all that one says, what it prints included."""
_AT_ONCE: Final = 4
_NEUTRAL: Final = Path("/usr")
"""A folder that is there for everybody, so that what is said does not depend on where it was asked."""


def describe_all(runner: PythonRunner, probes: Sequence[Tool]) -> list[Any | CallError]:
    """For each probe what it said, unchecked, or why it said nothing."""
    if running_loop() is None:
        return _run(runner, probes)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as thread:  # a catalog is asked in place, and this loop is taken
        return thread.submit(_run, runner, probes).result()


def _run(runner: PythonRunner, probes: Sequence[Tool]) -> list[Any | CallError]:
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as loop:  # leaves the thread's own loop as it is
        return loop.run(_ask_all(runner, probes))


async def _ask_all(runner: PythonRunner, probes: Sequence[Tool]) -> list[Any | CallError]:
    turn = asyncio.Semaphore(_AT_ONCE)
    return await asyncio.gather(*(_ask(runner, probe, turn) for probe in probes))


async def _ask(runner: PythonRunner, probe: Tool, turn: asyncio.Semaphore) -> Any | CallError:
    run = Run(
        tool=probe,
        arguments={},
        secrets=NO_SECRETS,
        redactor=NOTHING,
        root=_NEUTRAL,
        call_id="",
        caller=Caller(),
        timeout=TIMEOUT,
        strict_timeout=True,
        output_bytes=MOST_BYTES,
        progress=lambda done, total, message: None,
        held=lambda isolation: None,
    )
    async with turn:
        try:
            return (await runner.run(run)).output
        except CallError as error:
            return error
        except OSError as error:
            return SandboxUnavailable(f"the sandbox could not be set up: {error.strerror}")

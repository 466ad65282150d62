"""Functions of this process: in place when they are known to be quick, else in a thread.

A thread costs more than the whole rest of a call, and only a thread lets the caller be answered in time
when a function hangs. So a plain function first runs in threads; once several runs in a row were quick it
runs in place; one slow run in place sends it back to threads for good. Where the tool or the caller set a
time, or the tool says `blocking=True`, it is a thread always; `blocking=False` means in place always.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
import traceback
import types
from collections.abc import Awaitable, Callable
from typing import Any, Final

from glee.definitions.context import Context
from glee.definitions.isolation import Isolation
from glee.definitions.json_text import to_json_value
from glee.definitions.tool import FunctionExec, Tool
from glee.errors import CallError, TimedOut, ToolException
from glee.runners import Outcome, Run
from glee.runners.conversion import convert_argument, convert_arguments
from glee.runners.threads import Work, Workers
from glee.runners.waiting import go_on, on_event_loop, running_loop

QUICK: Final = 0.001
"""Seconds within which a run counts as quick."""
SLOW: Final = 0.05
"""Seconds after which a run in place was a mistake."""
PROOFS: Final = 3
"""Quick runs in a row before a function runs in place."""

_NEVER: Final = threading.Event()
_NATIVE = (str, int, bool, type(None))
_TRUSTED: Final = Isolation(level="trusted")
_OFF: Final = Isolation(level="off")


class FunctionRunner:
    def __init__(self) -> None:
        self._workers = Workers()
        self._quick_runs: dict[Tool, int] = {}

    def check(self, tool: Tool, arguments: dict[str, Any]) -> None:
        assert isinstance(tool.exec, FunctionExec)
        for name, kind in tool.exec.converters.items():
            if name in arguments:
                convert_argument(name, arguments[name], kind)

    async def run(self, run: Run) -> Outcome:
        execution: FunctionExec = run.tool.exec  # type: ignore[assignment]
        if run.tool.origin.source == "package":
            run.held(_TRUSTED if run.tool.origin.trusted else _OFF)
        cancelled = _NEVER if execution.context_parameter is None else threading.Event()
        arguments = _arguments(run, execution, cancelled)
        try:
            if execution.asynchronous:
                value = await self._on_loop(run, execution, functools.partial(execution.function, **arguments))
            elif self._may_run_in_place(run, execution):
                value = self._in_place(run, execution, arguments)
            else:
                value = (await self._in_thread(run, execution, arguments)).result()
            if hasattr(type(value), "__await__"):  # a plain function around an asynchronous one
                value = await self._on_loop(run, execution, lambda: value)
            return Outcome(output=value if type(value) in _NATIVE else _to_output(value))
        except (CallError, GeneratorExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            if _is_cancelled(error):
                raise
            raise _describe(execution, error) from error
        finally:
            if cancelled is not _NEVER:
                cancelled.set()

    def _may_run_in_place(self, run: Run, execution: FunctionExec) -> bool:
        if execution.blocking is not None:
            return not execution.blocking
        return not run.strict_timeout and self._quick_runs.get(run.tool, 0) >= PROOFS

    def _in_place(self, run: Run, execution: FunctionExec, arguments: dict[str, Any]) -> Any:
        started = time.perf_counter()
        value = execution.function(**arguments)
        if time.perf_counter() - started > SLOW and execution.blocking is None:
            self._quick_runs[run.tool] = -(10**9)
        return value

    async def _in_thread(self, run: Run, execution: FunctionExec, arguments: dict[str, Any]) -> Work:
        started = time.perf_counter()
        work = self._workers.start(functools.partial(execution.function, **arguments))
        if not await work.wait(run.timeout):
            raise _timed_out(run)
        quick = time.perf_counter() - started < QUICK
        known = self._quick_runs.get(run.tool, 0)
        self._quick_runs[run.tool] = known + 1 if quick else min(known, 0)
        return work

    async def _on_loop(self, run: Run, execution: FunctionExec, start: Callable[[], Any]) -> Any:
        await on_event_loop()
        running = start()
        if isinstance(running, types.CoroutineType):
            try:
                waiting = running.send(None)
            except StopIteration as done:  # most are done without waiting, and then no timer is needed
                return done.value
            running = go_on(running, waiting)
        return await self._in_time(run, running)

    async def _in_time(self, run: Run, running: Awaitable[Any]) -> Any:
        import asyncio

        task = asyncio.current_task()
        assert task is not None
        alarm = _Alarm(task)
        timer = asyncio.get_running_loop().call_later(run.timeout, alarm.ring)
        try:
            return await running
        except asyncio.CancelledError as error:
            if alarm.is_all():
                raise _timed_out(run) from error
            raise
        finally:
            timer.cancel()
            alarm.settle()


class _Alarm:
    """Cancels a task once its time is up, and knows its own cancellation from another's.

    `asyncio.timeout` does the same, and costs an eighth of a whole call.
    """

    __slots__ = ("_before", "_rang", "_task")

    def __init__(self, task: Any) -> None:
        self._task = task
        self._before = task.cancelling()
        self._rang = False

    def ring(self) -> None:
        self._rang = True
        self._task.cancel()

    def is_all(self) -> bool:
        """True if nobody else wants the task cancelled."""
        return self._rang and self._task.cancelling() == self._before + 1

    def settle(self) -> None:
        if self._rang:
            self._task.uncancel()


def _arguments(run: Run, execution: FunctionExec, cancelled: threading.Event) -> dict[str, Any]:
    arguments = run.arguments
    if execution.integers or execution.converters:
        arguments = convert_arguments(execution, arguments)
    if execution.context_parameter is not None:
        arguments = {**arguments, execution.context_parameter: _context(run, cancelled)}
    return arguments


def _context(run: Run, cancelled: threading.Event) -> Context:
    return Context(
        call_id=run.call_id,
        caller=run.caller,
        workdir=run.root,
        environment=types.MappingProxyType(run.secrets),
        sandbox="none: a function of this process, with all its rights",
        progress=run.progress,
        cancelled=cancelled,
    )


def _to_output(value: Any) -> Any:
    try:
        return to_json_value(value)
    except (TypeError, ValueError) as error:
        raise ToolException(f"the function returned a {type(value).__name__}, which is not JSON: {error}") from error


def _timed_out(run: Run) -> TimedOut:
    error = TimedOut(
        f"{run.tool.name} ran longer than {run.timeout:g} s; give it less to do, or raise timeout_ms",
        details={"timeout_ms": round(run.timeout * 1000)},
    )
    if not run.tool.exec.asynchronous:  # type: ignore[union-attr]
        error.warnings = ("the function cannot be stopped: its thread was left behind and may still be running",)
    return error


def _is_cancelled(error: BaseException) -> bool:
    """True if it is the call that is cancelled, and not something that the function itself had started."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or not isinstance(error, asyncio.CancelledError):
        return False
    if running_loop() is None:
        return False
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _describe(execution: FunctionExec, error: BaseException) -> ToolException:
    name = type(error).__name__
    try:
        message = str(error)
    except Exception:
        message = "an error that cannot be shown"
    return ToolException(
        f"{getattr(execution.function, '__name__', execution.target)} raised {name}: {message}",
        detail="".join(traceback.format_exception(error)),
        details={"type": name, "message": message},
    )

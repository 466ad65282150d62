"""Functions of this process: in place, in a thread or on the loop, and answered in time."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import enum
import functools
import logging
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from process_watch import PATIENCE, wait_for
from tool_parts import bare, failure, success

import glee
from glee.definitions.event import Progressed
from glee.errors import Unavailable
from glee.runners.function import PROOFS, SLOW
from glee.testing import Project, Watcher

LEFT_BEHIND = "the function cannot be stopped: its thread was left behind and may still be running"
TRIES = 2000
"""Calls within which a quick function has surely proved quick, however slow the machine."""


@dataclasses.dataclass
class Point:
    x: int
    y: int = 5


def test_a_plain_function_is_called(project: Project) -> None:
    @glee.tool
    def add(a: int, b: int = 2) -> int:
        return a + b

    with project.open(tools=[add]) as engine:
        assert bare(engine.call_sync("add", {"a": 1})) == success("add", 3)
        assert bare(asyncio.run(engine.call("add", {"a": 1, "b": 1}))) == success("add", 2)


def test_an_async_function_is_called_either_way(project: Project) -> None:
    @glee.tool
    async def later(word: str) -> str:
        await asyncio.sleep(0)
        return word * 2

    with project.open(tools=[later]) as engine:
        assert bare(engine.call_sync("later", {"word": "a"})) == success("later", "aa")
        assert bare(asyncio.run(engine.call("later", {"word": "b"}))) == success("later", "bb")


def test_rich_values_come_back_as_json(project: Project) -> None:
    class Colour(enum.Enum):
        RED = "red"

    @glee.tool
    def give() -> Any:
        return {"point": Point(1), "colour": Colour.RED, "set": {1}, "path": Path("a"), 2: [None, True]}

    with project.open(tools=[give]) as engine:
        assert bare(engine.call_sync("give")) == success(
            "give", {"point": {"x": 1, "y": 5}, "colour": "red", "set": [1], "path": "a", "2": [None, True]}
        )


def test_arguments_are_converted_to_their_annotations(project: Project) -> None:
    @glee.tool
    def total(points: list[Point]) -> int:
        return sum(point.x + point.y for point in points)

    with project.open(tools=[total]) as engine:
        assert bare(engine.call_sync("total", {"points": [{"x": 1}, {"x": 2, "y": 0}]})) == success("total", 8)


def test_a_value_that_holds_itself_is_an_exception(project: Project) -> None:
    @glee.tool
    def loop() -> Any:
        value: list[Any] = []
        value.append(value)
        return value

    with project.open(tools=[loop]) as engine:
        result = engine.call_sync("loop")

    assert result.error is not None
    assert result.error.code == "exception"


def test_an_exception_comes_back_with_type_and_message_and_its_traceback_goes_to_the_log(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    @glee.tool
    def fail() -> None:
        raise LookupError("no such thing")

    with project.open(tools=[fail]) as engine, caplog.at_level(logging.ERROR, logger="glee"):
        result = engine.call_sync("fail")

    assert bare(result) == failure(
        "fail",
        "exception",
        "fail raised LookupError: no such thing",
        {"type": "LookupError", "message": "no such thing"},
    )
    assert [(record.name, record.levelname) for record in caplog.records] == [("glee", "ERROR")]
    assert "Traceback" in caplog.text and "Traceback" not in repr(result)


@pytest.mark.parametrize("blocking", [True, False])
def test_a_function_that_wants_to_end_the_program_only_ends_its_call(project: Project, blocking: bool) -> None:
    @glee.tool(blocking=blocking)
    def leave() -> None:
        sys.exit("enough")

    @glee.tool
    async def leave_later() -> None:
        sys.exit(3)

    with project.open(tools=[leave, leave_later]) as engine:
        results = [bare(engine.call_sync(name)) for name in ("leave", "leave_later")]

    assert results == [
        failure("leave", "exception", "leave raised SystemExit: enough", {"type": "SystemExit", "message": "enough"}),
        failure("leave_later", "exception", "leave_later raised SystemExit: 3", {"type": "SystemExit", "message": "3"}),
    ]


def test_a_timeout_error_of_the_functions_own_is_an_exception(project: Project) -> None:
    @glee.tool
    async def own() -> None:
        raise TimeoutError("mine")

    with project.open(tools=[own]) as engine:
        assert bare(engine.call_sync("own")) == failure(
            "own", "exception", "own raised TimeoutError: mine", {"type": "TimeoutError", "message": "mine"}
        )


# Time


@pytest.mark.parametrize("awaited", [False, True])
def test_a_function_that_hangs_is_answered_in_time_and_its_thread_is_left_behind(
    project: Project, awaited: bool
) -> None:
    seen: list[bool] = []
    over = threading.Event()

    @glee.tool(timeout_ms=100)
    def hang(context: glee.Context) -> None:
        seen.append(context.cancelled)
        seen.append(context.wait_cancelled(PATIENCE))
        over.set()

    with project.open(tools=[hang]) as engine:
        began = time.monotonic()
        result = asyncio.run(engine.call("hang")) if awaited else engine.call_sync("hang")
        took = time.monotonic() - began

    assert bare(result) == failure(
        "hang",
        "timeout",
        "hang ran longer than 0.1 s; give it less to do, or raise timeout_ms",
        {"timeout_ms": 100},
        warnings=(LEFT_BEHIND,),
    )
    assert took < PATIENCE / 2
    assert over.wait(PATIENCE)
    assert seen == [False, True]


def test_an_async_function_that_hangs_is_ended_for_good(project: Project) -> None:
    ended: list[str] = []

    @glee.tool(timeout_ms=100)
    async def hang(context: glee.Context) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    with project.open(tools=[hang]) as engine:
        result = engine.call_sync("hang")

    assert bare(result) == failure(
        "hang", "timeout", "hang ran longer than 0.1 s; give it less to do, or raise timeout_ms", {"timeout_ms": 100}
    )
    assert ended == ["cleaned up"]


def test_the_callers_deadline_holds_for_a_function_that_has_proved_quick(project: Project) -> None:
    release = threading.Event()

    @glee.tool
    def mixed(wait: bool) -> None:
        if wait:
            release.wait(PATIENCE)

    with project.open(tools=[mixed]) as engine:
        for _ in range(TRIES):
            engine.call_sync("mixed", {"wait": False})
        result = engine.call_sync(glee.Call(tool="mixed", arguments={"wait": True}, deadline=time.time() + 0.1))
        release.set()

    assert result.error is not None
    assert (result.error.code, result.warnings) == ("timeout", (LEFT_BEHIND,))


def test_a_deadline_that_has_passed_runs_nothing(project: Project) -> None:
    ran: list[int] = []

    @glee.tool
    def note() -> None:
        ran.append(1)

    with project.open(tools=[note]) as engine:
        result = engine.call_sync(glee.Call(tool="note", deadline=time.time() - 1))

    assert bare(result) == failure("note", "timeout", "the call's deadline has passed; nothing was run")
    assert ran == []


def test_a_thread_left_behind_does_not_keep_others_from_running(project: Project) -> None:
    release = threading.Event()

    @glee.tool(timeout_ms=30)
    def hang() -> None:
        release.wait(PATIENCE)

    @glee.tool(blocking=True)
    def work() -> str:
        return "done"

    with project.open(tools=[hang, work]) as engine:
        codes = [engine.call_sync("hang").error.code for _ in range(5)]  # type: ignore[union-attr]
        assert (codes, engine.call_sync("work").output) == (["timeout"] * 5, "done")
        release.set()


# Context


def test_the_context_tells_the_function_of_its_call(project: Project) -> None:
    project.environ |= {"API_KEY": "value-of-the-key", "OTHER": "x"}

    @glee.tool(permissions={"secrets": {"API_KEY": {}}})
    def tell(word: str, context: glee.Context) -> Any:
        return {
            "word": word,
            "call_id": context.call_id,
            "session": context.session,
            "agent": context.caller.agent,
            "workdir": str(context.workdir),
            "environment": [(name, len(value)) for name, value in context.environment.items()],
            "sandbox": context.sandbox,
            "cancelled": context.cancelled,
            "repr": "value-of-the-key" in repr(context),
        }

    call = glee.Call(tool="tell", arguments={"word": "w"}, caller=glee.Caller(session="s1", agent="a1"))
    with project.open(tools=[tell]) as engine:
        result = engine.call_sync(call)

    assert tell.definition.inputs["properties"].keys() == {"word"}
    assert bare(result) == success(
        "tell",
        {
            "word": "w",
            "call_id": result.call_id,
            "session": "s1",
            "agent": "a1",
            "workdir": str(project.root),
            "environment": [["API_KEY", 16]],
            "sandbox": "none: a function of this process, with all its rights",
            "cancelled": False,
            "repr": False,
        },
    )


def test_the_environment_of_the_context_cannot_be_changed(project: Project) -> None:
    @glee.tool
    def change(context: glee.Context) -> None:
        context.environment["X"] = "y"  # type: ignore[index]

    with project.open(tools=[change]) as engine:
        result = engine.call_sync("change")

    assert result.error is not None
    assert result.error.details["type"] == "TypeError"


def test_progress_is_told_to_whoever_listens(project: Project) -> None:
    project.environ["API_KEY"] = "value-of-the-key"
    watcher = Watcher()

    @glee.tool(permissions={"secrets": {"API_KEY": {}}})
    def work(context: glee.Context) -> str:
        context.progress(1, 2, "half")
        context.progress(message=f"with {context.environment['API_KEY']}")
        return "done"

    with project.open(tools=[work]) as engine:
        engine.subscribe(watcher)
        engine.call_sync("work")

    assert watcher.names == ["Requested", "Decided", "Started", "Progressed", "Progressed", "Finished"]
    heard = [event for event in watcher.events if isinstance(event, Progressed)]
    assert [(event.done, event.total, event.message) for event in heard] == [
        (1, 2, "half"),
        (None, None, "with [secret]"),
    ]


def test_a_secret_given_as_a_number_of_progress_is_taken_out(project: Project) -> None:
    project.environ["PIN"] = "47114711"
    watcher = Watcher()

    @glee.tool(permissions={"secrets": {"PIN": {}}})
    def work(context: glee.Context) -> None:
        context.progress(int(context.environment["PIN"]), context.environment["PIN"])  # type: ignore[arg-type]
        context.progress(1, 2)

    with project.open(tools=[work]) as engine:
        engine.subscribe(watcher)
        engine.call_sync("work")

    heard = [event for event in watcher.events if isinstance(event, Progressed)]
    assert [(event.done, event.total) for event in heard] == [("[secret]", "[secret]"), (1, 2)]


def test_nothing_is_told_of_a_call_that_is_over(project: Project) -> None:
    left, spoke = threading.Event(), threading.Event()
    watcher = Watcher()

    @glee.tool(timeout_ms=50)
    def linger(context: glee.Context) -> None:
        left.wait(PATIENCE)
        context.progress(message="still here")
        spoke.set()

    with project.open(tools=[linger]) as engine:
        engine.subscribe(watcher)
        engine.call_sync("linger")
        left.set()
        assert spoke.wait(PATIENCE)

    assert watcher.names == ["Requested", "Decided", "Started", "Finished"]


# In place or in a thread


@glee.tool
def where() -> int:
    """The thread that runs this."""
    return threading.get_ident()


def test_a_function_begins_in_a_thread_and_a_quick_one_ends_up_in_place(project: Project) -> None:
    here = threading.get_ident()

    with project.open(tools=[where]) as engine:
        idents = [engine.call_sync("where").output for _ in range(TRIES)]

    assert here not in idents[:PROOFS]
    assert idents[-1] == here
    first = idents.index(here)
    assert set(idents[first:]) == {here}


def test_a_quick_function_ends_up_in_place_on_an_event_loop_too(project: Project) -> None:
    async def call_often() -> list[Any]:
        async with project.open(tools=[where]) as engine:
            return [(await engine.call("where")).output for _ in range(TRIES)]

    idents = asyncio.run(call_often())

    assert threading.get_ident() not in idents[:PROOFS]
    assert idents[-1] == threading.get_ident()


def test_a_function_that_turns_slow_goes_back_to_threads(project: Project) -> None:
    here = threading.get_ident()

    @glee.tool
    def sometimes(slow: bool = False) -> int:
        if slow:
            threading.Event().wait(SLOW * 1.5)
        return threading.get_ident()

    with project.open(tools=[sometimes]) as engine:
        assert wait_for(lambda: engine.call_sync("sometimes").output == here)
        assert engine.call_sync("sometimes", {"slow": True}).output == here
        idents = [engine.call_sync("sometimes").output for _ in range(PROOFS * 5)]

    assert here not in idents


def test_a_function_with_a_time_of_its_own_always_has_a_thread(project: Project) -> None:
    @glee.tool(timeout_ms=60_000)
    def timed() -> int:
        return threading.get_ident()

    with project.open(tools=[timed]) as engine:
        idents = {engine.call_sync("timed").output for _ in range(PROOFS * 10)}

    assert threading.get_ident() not in idents


@pytest.mark.parametrize("blocking", [True, False])
def test_blocking_says_where_a_function_runs(project: Project, blocking: bool) -> None:
    @glee.tool(blocking=blocking)
    def told() -> int:
        return threading.get_ident()

    with project.open(tools=[told]) as engine:
        idents = {engine.call_sync("told").output for _ in range(PROOFS * 10)}

    assert (threading.get_ident() in idents) is not blocking
    assert blocking or len(idents) == 1


def test_a_thread_sees_the_context_variables_of_the_caller(project: Project) -> None:
    variable = contextvars.ContextVar("variable", default="unset")

    @glee.tool(blocking=True)
    def read() -> str:
        return variable.get()

    with project.open(tools=[read]) as engine:
        variable.set("set by the caller")
        assert engine.call_sync("read").output == "set by the caller"


def test_a_function_that_waits_does_not_hold_up_the_event_loop(project: Project) -> None:
    together = threading.Barrier(5, timeout=PATIENCE)

    @glee.tool
    def meet() -> int:
        return together.wait()

    async def meet_all() -> list[Any]:
        async with project.open(tools=[meet]) as engine:
            return sorted(result.output for result in await asyncio.gather(*(engine.call("meet") for _ in range(5))))

    assert asyncio.run(meet_all()) == [0, 1, 2, 3, 4]


def test_threads_are_used_again(project: Project) -> None:
    @glee.tool(blocking=True)
    def told() -> int:
        return threading.get_ident()

    with project.open(tools=[told]) as engine:
        before = threading.active_count()
        for _ in range(50):
            engine.call_sync("told")
        assert threading.active_count() - before <= 5


# Whatever a function raises


class Stop(BaseException):
    """What a test runner or a greenlet raises past every `except Exception`."""


class Unshowable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("nothing to show")


def raises_one_of_glees_own_with_another_error() -> None:
    raise Unavailable(ValueError("x"))  # type: ignore[arg-type]


def raises_what_is_no_exception() -> None:
    raise Stop("enough")


def raises_what_cannot_be_shown() -> None:
    raise Unshowable


async def raises_later() -> None:
    raise Stop("enough")


async def awaits_what_it_cancelled() -> None:
    task = asyncio.ensure_future(asyncio.Event().wait())
    task.cancel()
    await task


RAISING = {
    raises_one_of_glees_own_with_another_error: ("unavailable", "x", {}),
    raises_what_is_no_exception: (
        "exception",
        "raises_what_is_no_exception raised Stop: enough",
        {"type": "Stop", "message": "enough"},
    ),
    raises_what_cannot_be_shown: (
        "exception",
        "raises_what_cannot_be_shown raised Unshowable: an error that cannot be shown",
        {"type": "Unshowable", "message": "an error that cannot be shown"},
    ),
    raises_later: ("exception", "raises_later raised Stop: enough", {"type": "Stop", "message": "enough"}),
    awaits_what_it_cancelled: (
        "exception",
        "awaits_what_it_cancelled raised CancelledError: ",
        {"type": "CancelledError", "message": ""},
    ),
}


@pytest.mark.parametrize("awaited", [True, False])
@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("function", RAISING, ids=lambda function: function.__name__)
def test_whatever_a_function_raises_becomes_a_result(
    project: Project, function: Callable[[], Any], blocking: bool, awaited: bool
) -> None:
    tool = glee.tool(name="fail", blocking=blocking)(function)

    with project.open(tools=[tool]) as engine:
        result = asyncio.run(engine.call("fail")) if awaited else engine.call_sync("fail")

    code, message, details = RAISING[function]
    assert bare(result) == failure("fail", code, message, details)
    assert f" TOOL_EXECUTED name=fail params={{}} status={code} " in project.audit_lines[-1]


# A plain function around an asynchronous one


async def double(number: int) -> int:
    """Twice as much."""
    await asyncio.sleep(0)
    return number * 2


@functools.wraps(double)
def watched(*args: Any, **kwargs: Any) -> Any:
    return double(*args, **kwargs)


@pytest.mark.parametrize("awaited", [True, False])
@pytest.mark.parametrize("blocking", [True, False])
def test_a_plain_function_around_an_asynchronous_one_is_awaited(
    project: Project, blocking: bool, awaited: bool
) -> None:
    tool = glee.tool(name="double", blocking=blocking)(watched)

    with project.open(tools=[tool]) as engine:
        call = {"number": 21}
        result = asyncio.run(engine.call("double", call)) if awaited else engine.call_sync("double", call)

    assert bare(result) == success("double", 42)


def test_an_asynchronous_function_within_a_plain_one_that_hangs_is_ended_in_time(project: Project) -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    @glee.tool(name="hang", timeout_ms=50)
    @functools.wraps(hang)
    def wrapped() -> Any:
        return hang()

    with project.open(tools=[wrapped]) as engine:
        result = engine.call_sync("hang")

    assert result.error is not None
    assert (result.error.code, result.error.details) == ("timeout", {"timeout_ms": 50})


# Cancelling


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_cancelled_caller_is_told_to_the_function(project: Project, asynchronous: bool) -> None:
    entered, ended = threading.Event(), threading.Event()
    seen: list[bool] = []

    def hang(context: glee.Context) -> None:
        entered.set()
        seen.append(context.wait_cancelled(PATIENCE))
        ended.set()

    async def hang_later(context: glee.Context) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append(True)
            ended.set()
            raise

    tool = glee.tool(name="hang")(hang_later if asynchronous else hang)

    async def call_and_cancel() -> None:
        async with project.open(tools=[tool]) as engine:
            task = asyncio.create_task(engine.call("hang"))
            while not entered.is_set():
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(call_and_cancel())

    assert ended.wait(PATIENCE)
    assert seen == [True]
    assert " status=cancelled " in project.audit_lines[-1]


def test_call_sync_inside_a_running_loop_is_a_clear_error(project: Project) -> None:
    async def misuse() -> None:
        async with project.open(tools=[where]) as engine:
            engine.call_sync("where")

    with pytest.raises(glee.GleeError) as caught:
        asyncio.run(misuse())

    assert str(caught.value) == ("call_sync would block the running event loop; use `await engine.call(...)` here")


@pytest.mark.parametrize("options", ["blocking=True", "blocking=False", "timeout_ms=60000", ""])
@pytest.mark.parametrize("kind", ["def", "async def"])
def test_ctrl_c_interrupts_a_program_that_waits_for_a_function(project: Project, options: str, kind: str) -> None:
    wait = "await asyncio.sleep(1000)" if kind == "async def" else "threading.Event().wait(1000)"
    program = project.write(
        "program.py",
        f"""
        import asyncio, os, threading
        import glee

        @glee.tool({options})
        {kind} hang():
            os.write(1, b"entered")
            {wait}

        with glee.open(tools=[hang]) as engine:
            try:
                engine.call_sync("hang")
            except KeyboardInterrupt:
                os.write(1, b" interrupted")
        """,
    )

    with subprocess.Popen(
        [sys.executable, str(program)],
        cwd=project.root,
        env=project.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.read(7) == b"entered"
            running.send_signal(signal.SIGINT)
            out, err = running.communicate(timeout=PATIENCE)
        finally:
            running.kill()

    assert (out, err, running.returncode) == (b" interrupted", b"", 0)
    assert " status=cancelled " in project.audit_lines[-1]


@pytest.mark.parametrize("value", [object(), (number for number in (1, 2))])
def test_what_is_not_json_is_an_error_and_not_its_name(project: Project, value: object) -> None:
    @glee.tool
    def give():  # type: ignore[no-untyped-def]
        """Give it."""
        return value

    with project.open(tools=[give]) as engine:
        error = engine.call_sync("give").error

    assert error is not None
    assert error.code == "exception"
    assert error.message.startswith(f"the function returned a {type(value).__name__}, which is not JSON")


def test_a_number_that_json_does_not_know_is_null(project: Project) -> None:
    @glee.tool
    def give():  # type: ignore[no-untyped-def]
        """Give it."""
        return float("nan")

    with project.open(tools=[give]) as engine:
        assert engine.call_sync("give").output is None


def test_a_function_that_raises_stop_iteration_is_said_to(project: Project) -> None:
    @glee.tool
    def stop() -> int:
        """Stop."""
        return next(iter(()))

    with project.open(tools=[stop]) as engine:
        errors = [engine.call_sync("stop").error for _ in range(5)]

    assert {error.message for error in errors if error} == {"stop raised StopIteration: "}

"""What a library user holds: one way to call, awaited or not."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from typing import Any

import pytest
from msgspec import structs

import glee
from glee.definitions.call import Call, Caller, Trace
from glee.definitions.result import Result
from glee.engine import Engine
from glee.errors import GleeError, NotFound
from glee.testing import WRITES, Project, Watcher


@glee.tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@glee.tool
async def add_later(a: int, b: int = 1) -> int:
    """Add two numbers, taking turns."""
    await asyncio.sleep(0)
    return a + b


@glee.tool
def fail(word: str) -> None:
    """Fail."""
    raise ValueError(word)


TOOLS = [add, add_later, fail]
CALLS = [
    ("add", {"a": 1}),
    ("add", {"a": "x"}),
    ("add_later", {"a": 1, "b": 5}),
    ("fail", {"word": "no"}),
    ("nothing", {}),
    ("greet", {}),
    ("cry", {}),
    ("double", {"n": 21}),
    ("poor", {}),
    ("send", {}),
    ("bad", {}),
]


def furnish(project: Project) -> None:
    project.add_command("greet", "echo hello")
    project.add_command("cry", "echo no >&2; exit 3")
    project.add_python("double", "def run(n):\n    return n * 2\n", inputs={"schema": {"type": "object"}})
    project.add_command("poor", "true", permissions={"secrets": {"TOKEN": {"type": "string"}}})
    project.add_command("send", "true", approval={"required": True, "reason": "Sends"})
    project.add_tool("bad", "name: bad\n")


def without_chance(result: Result) -> Result:
    return structs.replace(result, call_id="", duration_ms=0.0)


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_awaiting_a_call_and_not_awaiting_it_come_to_the_same(
    project: Project, tool: str, arguments: dict[str, Any]
) -> None:
    furnish(project)

    async def awaited() -> Result:
        async with project.open(tools=TOOLS) as engine:
            return await engine.call(tool, arguments)

    with project.open(tools=TOOLS) as engine:
        in_place = engine.call_sync(tool, arguments)

    assert without_chance(asyncio.run(awaited())) == without_chance(in_place)
    first, second = (project.audit_lines[:half] for half in (len(project.audit_lines) // 2, None))
    assert [line.split(" ")[1] for line in second[len(first) :]] == [line.split(" ")[1] for line in first]


def test_a_call_and_a_name_with_arguments_are_the_same(project: Project) -> None:
    with project.open(tools=TOOLS) as engine:
        by_name, by_call = engine.call_sync("add", {"a": 1}), engine.call_sync(Call(tool="add", arguments={"a": 1}))

    assert without_chance(by_name) == without_chance(by_call)


def test_the_caller_s_arguments_are_left_alone(project: Project) -> None:
    arguments = {"a": 1}

    with project.open(tools=TOOLS) as engine:
        engine.call_sync("add", arguments)

    assert arguments == {"a": 1}


FULL = Call(
    tool="greet",
    arguments={"name": "wörld", "deep": {"list": [1, 2.5, None, True]}},
    caller=Caller(agent="claude", provider="anthropic", skill="writing", session="s1", door="mcp"),
    context={"cwd": "/home/ann", "selection": "text"},
    idempotency_key="k1",
    deadline=99_999_999_999.0,
    autonomy="standard",
    trace=Trace(traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", tracestate="a=b"),
)

CHILD = textwrap.dedent("""
    import json, sys, glee

    root, environ = sys.argv[1], json.loads(sys.argv[2])
    call = glee.Call.from_json(sys.stdin.buffer.read())
    with glee.open(root, environ=environ) as engine:
        print(json.dumps({"call": call.to_json().decode(), "result": engine.call_sync(call).to_json().decode()}))
""")


def test_a_call_is_carried_to_another_process_and_executed_there(project: Project) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    project.add_command("greet", 'echo "hello $1"', command={"args": ["${name}"]}, inputs={"schema": schema})

    program = [sys.executable, "-c", CHILD, str(project.root), json.dumps(project.environ)]
    answer = json.loads(subprocess.run(program, input=FULL.to_json(), capture_output=True, check=True).stdout)

    result = Result.from_json(answer["result"])
    assert Call.from_json(answer["call"]) == FULL
    assert (result.ok, result.tool, result.output) == (True, "greet", "hello wörld\n")
    assert project.audit_lines[-1].endswith(
        f"door=mcp agent=claude provider=anthropic skill=writing session=s1 call={result.call_id}"
    )
    with project.open() as engine:
        again = engine.call_sync(Call.from_json(FULL.to_json()))
    assert (again.output, len(again.warnings)) == (result.output, 1)


def test_call_sync_within_an_event_loop_says_what_to_do(project: Project) -> None:
    async def scene() -> None:
        async with project.open(tools=TOOLS) as engine:
            with pytest.raises(GleeError) as raised:
                engine.call_sync("add", {"a": 1})
            assert str(raised.value) == (
                "call_sync would block the running event loop; use `await engine.call(...)` here"
            )
            assert (await engine.call("add", {"a": 1})).output == 2

    asyncio.run(scene())
    assert len(project.audit_lines) == 2


def test_call_sync_in_a_thread_beside_an_event_loop_is_fine(project: Project) -> None:
    async def scene() -> Any:
        async with project.open(tools=TOOLS) as engine:
            return (await asyncio.to_thread(engine.call_sync, "add_later", {"a": 1})).output

    assert asyncio.run(scene()) == 2


def test_an_asynchronous_tool_keeps_its_loop_between_calls_that_are_not_awaited(project: Project) -> None:
    loops: set[int] = set()

    @glee.tool
    async def look() -> None:
        """Which loop is this?"""
        loops.add(id(asyncio.get_running_loop()))

    with project.open(tools=[look]) as engine:
        for _ in range(3):
            engine.call_sync("look")

    assert len(loops) == 1


def test_an_engine_is_a_context_manager_both_ways(project: Project) -> None:
    opened = project.open(tools=TOOLS)
    with opened as within:
        assert within is opened
        within.call_sync("add_later", {"a": 1})

    async def scene() -> Engine:
        async with opened as within:
            await within.call("add", {"a": 1})
            return within

    assert asyncio.run(scene()) is opened


def test_an_engine_closes_its_log_and_opens_it_again_when_called(project: Project) -> None:
    engine = project.open(tools=TOOLS)
    for _ in range(2):
        engine.call_sync("add", {"a": 1})
        engine.close()
        engine.close()

    assert len(project.audit_lines) == 4


def test_an_engine_is_not_closed_under_a_call_that_another_thread_waits_for(project: Project) -> None:
    inside, leave = threading.Event(), threading.Event()
    results: list[Result] = []

    @glee.tool
    async def stay() -> str:
        """Stay until told to leave."""
        inside.set()
        await asyncio.to_thread(leave.wait)
        return "done"

    engine = project.open(tools=[stay])
    thread = threading.Thread(target=lambda: results.append(engine.call_sync("stay")))
    thread.start()
    inside.wait()
    try:
        with pytest.raises(GleeError) as raised:
            engine.close()
    finally:
        leave.set()
        thread.join()
    engine.close()

    assert str(raised.value) == "a call is still running in another thread; wait for it before closing the engine"
    assert [result.output for result in results] == ["done"]


def test_threads_call_at_once(project: Project) -> None:
    furnish(project)
    start = threading.Barrier(6)
    results: list[tuple[int, Result]] = []

    with project.open(tools=TOOLS) as engine:

        def call(worker: int) -> None:
            start.wait()
            for number in range(30):
                tool = "add_later" if number % 3 == 0 else "add"
                results.append((worker + number, engine.call_sync(tool, {"a": worker, "b": number})))
            results.append((-1, engine.call_sync("greet")))

        threads = [threading.Thread(target=call, args=(worker,)) for worker in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert [result.output for wanted, result in results if wanted != -1] == [
        wanted for wanted, _ in results if wanted != -1
    ]
    assert [result.output for wanted, result in results if wanted == -1] == ["hello\n"] * 6
    assert len({result.call_id for _, result in results}) == len(results) == 186
    recorded = Counter(line.rpartition(" call=")[2] for line in project.audit_lines)
    assert recorded == {result.call_id: 2 for _, result in results}


def test_many_awaited_calls_run_at_once(project: Project) -> None:
    """None of them ends before all have begun."""
    everybody = 50
    here: list[int] = []

    async def scene() -> list[Any]:
        all_here = asyncio.Event()

        @glee.tool
        async def meet(number: int) -> int:
            """Wait for the others."""
            here.append(number)
            if len(here) == everybody:
                all_here.set()
            await all_here.wait()
            return number

        async with project.open(tools=[meet]) as engine:
            calls = [engine.call("meet", {"number": number}) for number in range(everybody)]
            return [result.output for result in await asyncio.gather(*calls)]

    assert asyncio.run(scene()) == list(range(everybody))
    assert len(project.audit_lines) == 2 * everybody


def test_plain_functions_do_not_hold_up_an_event_loop(project: Project) -> None:
    """None of them ends before all have begun, so each must have a thread of its own."""
    barrier = threading.Barrier(10)

    @glee.tool(blocking=True)
    def meet() -> bool:
        """Wait for the others."""
        barrier.wait()
        return True

    async def scene() -> list[Any]:
        async with project.open(tools=[meet]) as engine:
            return [result.output for result in await asyncio.gather(*(engine.call("meet") for _ in range(10)))]

    assert asyncio.run(scene()) == [True] * 10


def test_commands_run_at_once_on_an_event_loop(project: Project) -> None:
    """Each waits for a word from the other, so neither could end alone."""
    project.add_command("ping", "echo ping > there; cat back", permissions=WRITES)
    project.add_command("pong", "cat there; echo pong > back", permissions=WRITES)
    project.add_command("prepare", "mkfifo there back", permissions=WRITES)

    async def scene() -> list[Any]:
        async with project.open() as engine:
            await engine.call("prepare")
            return [result.output for result in await asyncio.gather(engine.call("ping"), engine.call("pong"))]

    assert asyncio.run(scene()) == ["pong\n", "ping\n"]


# Finding and listing.


def test_reloading_picks_up_edits(project: Project) -> None:
    project.add_command("greet", "echo hello")
    schema = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}

    with project.open() as engine:
        before = engine.call_sync("greet"), [summary.name for summary in engine.list()]
        project.add_command("greet", 'echo "hello $1"', command={"args": ["${name}"]}, inputs={"schema": schema})
        project.add_command("more", "true")
        engine.reload()
        after = engine.call_sync("greet", {"name": "ann"}), [summary.name for summary in engine.list()]
        missing = engine.call_sync("greet")

    assert (before[0].output, before[1]) == ("hello\n", ["greet"])
    assert (after[0].output, after[1]) == ("hello ann\n", ["greet", "more"])
    assert missing.error and missing.error.code == "invalid_input"


def test_reloading_forgets_what_was_removed_and_keeps_the_program_s_own(project: Project) -> None:
    path = project.add_command("greet", "echo hello")

    with project.open(tools=TOOLS) as engine:
        engine.call_sync("greet")
        path.unlink()
        engine.reload()
        result = engine.call_sync("greet")

        assert result.error and result.error.code == "not_found"
        assert [summary.name for summary in engine.list()] == ["add", "add_later", "fail"]


def test_a_tool_added_or_mended_under_a_running_engine_is_found_when_it_is_called(project: Project) -> None:
    project.add_tool("bad", "name: bad\n")

    with project.open() as engine:
        assert not engine.call_sync("bad").ok
        assert not engine.call_sync("late").ok
        project.add_command("bad", "echo mended")
        project.add_command("late", "echo late")

        assert [engine.call_sync(name).output for name in ("bad", "late")] == ["mended\n", "late\n"]


def test_everything_is_listed_broken_definitions_included(project: Project) -> None:
    furnish(project)

    with project.open(tools=TOOLS) as engine:
        listed = {summary.name: summary.broken is None for summary in engine.list()}

    good = ["add", "add_later", "cry", "double", "fail", "greet", "poor", "send"]
    assert listed == {"bad": False, **dict.fromkeys(good, True)}
    assert list(listed) == sorted(listed)


def test_a_tool_is_found_by_its_name_and_its_api_name(project: Project) -> None:
    @glee.tool(name="web.search")
    def search() -> None:
        """Search."""

    with project.open(tools=[search]) as engine:
        assert engine.find("web.search") is engine.find("web_search") is search.definition
        assert engine.find("nothing") is None


def test_an_unregistered_tool_cannot_be_called(project: Project) -> None:
    with project.open(tools=TOOLS) as engine:
        engine.unregister("add")
        result = engine.call_sync("add", {"a": 1})

        assert result.error and result.error.code == "not_found"
        with pytest.raises(NotFound):
            engine.unregister("add")


def test_a_subscription_ends_when_it_is_told_to(project: Project) -> None:
    watcher = Watcher()

    with project.open(tools=TOOLS) as engine:
        stop = engine.subscribe(watcher)
        engine.call_sync("add", {"a": 1})
        stop()
        engine.call_sync("add", {"a": 1})

    assert watcher.names == ["Requested", "Decided", "Started", "Finished"]

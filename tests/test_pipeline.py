"""The one path: its order is a safety property, and a call that walks it always ends in a result."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

import glee
from glee import config
from glee.audit.log import Entry
from glee.compose import compose
from glee.definitions.call import Call
from glee.definitions.event import Event, Finished
from glee.definitions.result import Failure, Result
from glee.engine import Engine
from glee.errors import ConfigError
from glee.runners import Outcome, Run
from glee.runners.waiting import wait_readable
from glee.testing import WRITES, AnsweringPerson, Project, Watcher

INPUTS = {"schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}}
NEEDS_TOKEN = {**WRITES, "secrets": {"TOKEN": {"type": "string"}}}
NEEDS_YES = {"required": True, "reason": "Does something"}


class Noted:
    """A part of the engine that works as before and notes what is asked of it."""

    def __init__(self, name: str, part: Any, marks: list[str]) -> None:
        self._name, self._part, self._marks = name, part, marks

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(self._part, attribute)
        if not callable(value):
            return value

        def note(*args: Any, **kwargs: Any) -> Any:
            event = f" {args[0]}" if attribute == "write" else ""
            self._marks.append(f"{self._name}.{attribute}{event}")
            return value(*args, **kwargs)

        return note


def note_steps(engine: Engine) -> tuple[Engine, list[str]]:
    """The same engine with every part watched."""
    parts, marks = engine._parts, []  # type: ignore[var-annotated]
    watched = {
        name: Noted(name, getattr(parts, name), marks)
        for name in ("catalog", "policy", "shapes", "approver", "claims", "secrets", "audit", "artifacts")
    }
    runners = {"command": Noted("runner", parts.runners["command"], marks)}
    return Engine(structs.replace(parts, **watched, runners=runners)), marks


def code_of(result: Result) -> str | None:
    return result.error.code if result.error else None


def all_obstacles(project: Project) -> None:
    """A tool that everything can be wrong with."""
    project.add_command("act", "touch ran", inputs=INPUTS, permissions=NEEDS_TOKEN, approval=NEEDS_YES)


def test_a_call_walks_every_step_in_the_written_order(project: Project) -> None:
    all_obstacles(project)
    project.environ["TOKEN"] = "12345678"
    project.configure("limits: {output_chars: 200}")
    project.write("scripts/act.sh", "#!/bin/sh\nseq 1 1000\n", executable=True)

    with project.open(approver=AnsweringPerson()) as opened:
        engine, marks = note_steps(opened)
        assert engine.call_sync(Call(tool="act", arguments={"n": 1}, idempotency_key="k")).ok

    assert [mark for mark in marks if mark != "secrets.get_redactor"] == [
        "catalog.find",
        "policy.visible",
        "shapes.check_inputs",
        "runner.check",
        "policy.decide",
        "approver.ask",
        "claims.claim",
        "secrets.get",
        "audit.write TOOL_CALLED",
        "runner.run",
        "shapes.check_output",
        "artifacts.keep",
        "audit.write TOOL_EXECUTED",
        "claims.settle",
    ]


ALL = ["vocabulary", "denied", "invalid", "rejected", "claimed", "secret", "late"]
CODES = {
    "vocabulary": "not_found",
    "denied": "denied",
    "invalid": "invalid_input",
    "rejected": "rejected",
    "claimed": "invalid_input",
    "secret": "secret_missing",
    "late": "timeout",
}
_DECIDED = ["catalog.find", "policy.visible", "shapes.check_inputs", "runner.check", "policy.decide"]
REACHED = {
    "vocabulary": ["catalog.find"],
    "denied": ["catalog.find", "policy.visible"],
    "invalid": ["catalog.find", "policy.visible", "shapes.check_inputs"],
    "rejected": [*_DECIDED, "approver.ask"],
    "claimed": [*_DECIDED, "approver.ask", "claims.claim"],
    "secret": [*_DECIDED, "approver.ask", "claims.claim", "secrets.get"],
    "late": [*_DECIDED, "approver.ask", "claims.claim", "secrets.get"],
}


@pytest.mark.parametrize("first", ALL)
def test_of_several_things_wrong_the_earliest_step_answers_and_no_later_one_is_reached(
    project: Project, first: str
) -> None:
    wrong = ALL[ALL.index(first) :]
    all_obstacles(project)
    with project.open(approver=AnsweringPerson()) as engine:
        if "claimed" in wrong:  # the key was used before, with other arguments
            project.environ["TOKEN"] = "12345678"
            engine.call_sync(Call(tool="act", idempotency_key="k"))
            (project.root / "ran").unlink()
    project.environ["TOKEN"] = "" if "secret" in wrong else "12345678"
    project.configure("tools: {deny: [act]}" if "denied" in wrong else "")
    call = Call(
        tool="act",
        arguments={"n": "x"} if "invalid" in wrong else {"n": 1},
        vocabulary="other" if "vocabulary" in wrong else None,
        deadline=1.0,
        idempotency_key="k",
    )

    with project.open(approver=AnsweringPerson("no" if "rejected" in wrong else "yes")) as opened:
        engine, marks = note_steps(opened)
        result = engine.call_sync(call)

    steps = [mark for mark in marks if mark not in ("secrets.get_redactor", "claims.release")]
    assert code_of(result) == CODES[first]
    assert steps == [*REACHED[first], "audit.write TOOL_REFUSED"]
    assert ("claims.release" in marks) is (first in ("secret", "late"))
    assert not (project.root / "ran").exists()


def test_an_unknown_vocabulary_is_not_found(project: Project) -> None:
    project.add_command("greet", "touch ran", permissions=WRITES)

    with project.open() as engine:
        result = engine.call_sync(Call(tool="greet", vocabulary="claude-code"))

    assert result.error == Failure(
        code="not_found", message="there is no vocabulary claude-code; call the tool by its own name"
    )
    assert not (project.root / "ran").exists()


def test_an_unknown_tool_is_answered_with_the_nearest_ones(project: Project) -> None:
    for name in ("web_search", "repo_scan"):
        project.add_command(name, "true")

    with project.open() as engine:
        near, far = engine.call_sync("web_serch").error, engine.call_sync("zzz").error

    assert near == Failure(
        code="not_found",
        message="there is no tool web_serch; did you mean web_search?",
        details={"nearest": ["web_search"]},
    )
    assert far == Failure(
        code="not_found",
        message="there is no tool zzz; run `glee list` to see what there is",
        details={"nearest": []},
    )


def test_a_broken_tool_is_never_suggested_and_says_what_is_wrong_with_it(project: Project) -> None:
    project.add_tool("greet", "name: greet\n")

    with project.open() as engine:
        near, itself = engine.call_sync("gret").error, engine.call_sync("greet").error

    assert near and near.details == {"nearest": []}
    assert itself and itself.code == "not_found"
    assert itself.message.startswith("the tool greet has a broken definition: ")


def test_defaults_reach_the_tool(project: Project) -> None:
    schema = {"type": "object", "properties": {"word": {"type": "string", "default": "hello"}}}
    project.add_command("say", 'echo "$1"', command={"args": ["${word}"]}, inputs={"schema": schema})

    with project.open() as engine:
        assert engine.call_sync("say").output == "hello\n"


def test_defaults_within_lists_and_behind_references_reach_the_tool(project: Project) -> None:
    point = {"type": "object", "required": ["x"], "properties": {"x": {"type": "integer", "default": 3}}}
    points = {"type": "array", "items": {"$ref": "#/$defs/point"}}
    schema = {"type": "object", "properties": {"points": points}, "$defs": {"point": point}}
    examples = [{"params": {"points": [{}]}}]
    command = {"args": ["${points}"]}
    project.add_command("say", 'echo "$1"', command=command, inputs={"schema": schema}, examples=examples)

    with project.open() as engine:
        assert engine.call_sync("say", {"points": [{}]}).output == '{"x":3}\n'


def test_every_violation_is_returned_and_the_tool_is_not_run(project: Project) -> None:
    project.add_command("act", "touch ran", inputs=INPUTS, permissions=WRITES)

    with project.open() as engine:
        result = engine.call_sync("act", {"n": "x", "m": 1})

    assert result.error is not None
    violations = result.error.details["violations"]
    assert (result.error.code, sorted(violation["rule"] for violation in violations)) == (
        "invalid_input",
        ["additionalProperties", "type"],
    )
    assert not (project.root / "ran").exists()


def test_a_deadline_in_the_past_runs_nothing(project: Project) -> None:
    project.add_command("act", "touch ran", permissions=WRITES)

    with project.open() as engine:
        result = engine.call_sync(Call(tool="act", deadline=time.time() - 1))

    assert result.error == Failure(code="timeout", message="the call's deadline has passed; nothing was run")
    assert not (project.root / "ran").exists()
    assert [line.split(" ")[1] for line in project.audit_lines] == ["TOOL_REFUSED"]


def test_a_deadline_in_the_future_lets_the_call_run(project: Project) -> None:
    project.add_command("act", "touch ran", permissions=WRITES)

    with project.open() as engine:
        assert engine.call_sync(Call(tool="act", deadline=time.time() + 3600)).ok


def test_a_tool_gets_no_more_time_than_the_deadline_leaves(project: Project) -> None:
    given: list[tuple[float, bool]] = []

    class Clocked:
        async def run(self, run: Run) -> Outcome:
            given.append((run.timeout, run.strict_timeout))
            return Outcome(output=None)

    for name, block in (("short", {"timeout_ms": 5000}), ("usual", {})):
        project.add_command(name, "true", command=block)
    with project.open() as opened:
        engine = Engine(structs.replace(opened._parts, runners={"command": Clocked()}, now=lambda: 1000.0))
        for tool in ("short", "usual"):
            for deadline in (None, 1002.0, 1100.0):
                engine.call_sync(Call(tool=tool, deadline=deadline))

    assert given == [(5.0, True), (2.0, True), (5.0, True), (300.0, False), (2.0, True), (100.0, True)]


class Hours:
    """A record that takes an hour for each line, by its own clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lines: list[tuple[str, str | None]] = []

    def write(self, event: str, entry: Entry, status: str | None = None) -> None:
        self.now += 3600
        self.lines.append((event, status))


def test_a_deadline_that_passes_while_the_call_is_recorded_runs_nothing(project: Project) -> None:
    project.add_command("act", "touch ran", permissions=WRITES)
    record = Hours()

    with project.open(audit=record) as opened:
        engine = Engine(structs.replace(opened._parts, now=lambda: record.now))
        result = engine.call_sync(Call(tool="act", deadline=60.0))

    assert result.error == Failure(code="timeout", message="the call's deadline has passed; nothing was run")
    assert (record.lines[0], record.lines[-1][1]) == (("TOOL_CALLED", None), "timeout")
    assert not (project.root / "ran").exists()


# Always a result.


class Failing:
    """A runner that fails in a way nobody foresaw."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def run(self, run: Run) -> Outcome:
        raise self.error


def call_with_runner(project: Project, runner: Any) -> Result:
    project.add_command("act", "true")
    with project.open() as opened:
        return Engine(structs.replace(opened._parts, runners={"command": runner})).call_sync("act")


def test_an_unforeseen_error_tells_the_caller_its_kind_and_the_operator_all_of_it(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    result = call_with_runner(project, Failing(RuntimeError("the password is hunter2")))

    assert result.error == Failure(
        code="internal", message="Glee failed on this call: RuntimeError; the operator's log has the details"
    )
    assert "hunter2" not in repr(result)
    assert "RuntimeError: the password is hunter2" in caplog.text
    assert "status=internal" in project.audit_lines[-1]


def test_an_error_of_glee_s_own_that_is_no_call_s_is_internal_with_its_message(project: Project) -> None:
    result = call_with_runner(project, Failing(ConfigError("the file is broken; mend it", details={"line": 3})))

    assert result.error == Failure(code="internal", message="the file is broken; mend it", details={"line": 3})


def test_a_part_that_fails_before_the_run_ends_in_a_result_too(project: Project) -> None:
    project.add_command("act", "touch ran", permissions=WRITES)

    class Torn:
        def visible(self, subject: object, caller: object) -> Any:
            raise ZeroDivisionError

    with project.open() as opened:
        result = Engine(structs.replace(opened._parts, policy=Torn())).call_sync("act")

    assert (code_of(result), (project.root / "ran").exists()) == ("internal", False)


def test_an_output_that_cannot_be_kept_ends_in_a_result_too(project: Project) -> None:
    project.add_command("many", "seq 1 100000")
    state = config.load_settings(project.root, environ=project.environ).state
    state.parent.mkdir(parents=True)
    state.write_text("a file in the way")

    with project.open() as engine:
        result = engine.call_sync("many")

    assert (result.ok, result.artifacts) == (True, ())
    assert result.warnings == ("the whole output could not be kept: Not a directory",)
    assert result.output.endswith("characters hidden; the whole could not be kept]")
    assert " TOOL_EXECUTED name=many params={} status=success " in project.audit_lines[-1]


def test_an_operator_who_cannot_be_told_is_no_reason_to_lose_the_call(project: Project) -> None:
    runs: list[str] = []

    @glee.tool
    def fail() -> None:
        """Fail."""
        runs.append("ran")
        raise ValueError("no")

    def refuse(text: str) -> None:
        raise OSError("the operator's screen is broken")

    settings = config.load_settings(project.root, environ=project.environ)
    with compose(settings, environ=project.environ, tell_operator=refuse) as engine:
        engine.register(fail)
        first, second = (engine.call_sync(Call(tool="fail", idempotency_key="k")) for _ in range(2))

    failure = Failure(
        code="exception", message="fail raised ValueError: no", details={"type": "ValueError", "message": "no"}
    )
    assert (first.error, second.error, runs) == (failure, failure, ["ran"])
    assert [line.split(" ")[1] for line in project.audit_lines] == ["TOOL_CALLED", "TOOL_EXECUTED", "TOOL_REPLAYED"]


@pytest.mark.parametrize(
    "call",
    [
        Call(tool=""),
        Call(tool="../act"),
        Call(tool="x" * 10_000),
        Call(tool="a\0b"),
        Call(tool="\ud800"),
        Call(tool=None),  # type: ignore[arg-type]
        Call(tool=7),  # type: ignore[arg-type]
        Call(tool=[]),  # type: ignore[arg-type]
        Call(tool="act", arguments=None),  # type: ignore[arg-type]
        Call(tool="act", arguments=[1]),  # type: ignore[arg-type]
        Call(tool="act", arguments={1: 2}),  # type: ignore[dict-item]
        Call(tool="act", arguments={"n": object()}),
        Call(tool="act", arguments={"n": "\ud800"}),
        Call(tool="act", arguments={"n": float("nan")}),
    ],
)
def test_a_call_that_makes_no_sense_ends_in_a_result_and_a_line(project: Project, call: Call) -> None:
    project.add_command("act", "touch ran", inputs=INPUTS, permissions=WRITES)

    with project.open() as engine:
        result = engine.call_sync(call)

    assert (result.ok, result.error is None, len(project.audit_lines)) == (False, False, 1)
    assert not (project.root / "ran").exists()


def test_a_result_knows_its_call(project: Project) -> None:
    project.add_command("act", "exit 4")

    with project.open() as engine:
        results = [engine.call_sync(name) for name in ("act", "act", "nothing")]

    assert [(result.tool, result.exit_code) for result in results] == [("act", 4), ("act", 4), ("nothing", None)]
    assert len({result.call_id for result in results}) == 3
    assert all(result.duration_ms > 0 for result in results)


# Cancellation is recorded and passed on.


def finished_with(watcher: Watcher) -> list[str | None]:
    return [code_of(event.result) for event in watcher.events if isinstance(event, Finished)]


def cancel(project: Project, when: Callable[[Event], bool], call: Call, **options: Any) -> tuple[Watcher, bool]:
    """Calls, cancels as soon as an event is heard, and says what was heard and whether it was passed on."""
    watcher = Watcher()

    async def scene() -> bool:
        async with project.open(**options) as engine:
            reached = asyncio.Event()
            loop = asyncio.get_running_loop()

            def listen(event: Event) -> None:
                watcher(event)
                if when(event):
                    loop.call_soon_threadsafe(reached.set)

            engine.subscribe(listen)
            task = asyncio.create_task(engine.call(call))
            await reached.wait()
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                return True
            return False

    return watcher, asyncio.run(scene())


def test_a_cancelled_run_is_recorded_as_cancelled_and_the_cancellation_passed_on(project: Project) -> None:
    seen: list[bool] = []

    @glee.tool
    async def wait(context: glee.Context) -> None:
        """Wait for ever."""
        context.progress(message="waiting")
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(True)

    watcher, passed_on = cancel(
        project, lambda event: type(event).__name__ == "Progressed", Call(tool="wait"), tools=[wait]
    )

    assert (passed_on, seen, finished_with(watcher)) == (True, [True], ["cancelled"])
    assert [line.split(" ")[1] for line in project.audit_lines] == ["TOOL_CALLED", "TOOL_EXECUTED"]
    assert " status=cancelled " in project.audit_lines[-1]


def test_a_cancelled_command_is_ended(project: Project) -> None:
    """The pipe that it holds open is at its end as soon as it is gone."""
    project.add_command("wait", "exec 3> held; echo began >&3; read line < never; touch ran", permissions=WRITES)
    for name in ("held", "never"):
        os.mkfifo(project.root / name)
    held = os.open(project.root / "held", os.O_RDONLY | os.O_NONBLOCK)

    async def scene() -> None:
        async with project.open() as engine:
            task = asyncio.create_task(engine.call("wait"))
            await wait_readable({held}, 60)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(scene())
    assert [os.read(held, 100) for _ in range(2)] == [b"began\n", b""]
    os.close(held)
    assert " TOOL_EXECUTED name=wait params={} status=cancelled " in project.audit_lines[-1]
    assert not (project.root / "ran").exists()


def test_a_plain_function_learns_that_nobody_waits_any_more(project: Project) -> None:
    told: list[bool] = []
    over = threading.Event()

    @glee.tool(blocking=True)
    def wait(context: glee.Context) -> None:
        """Wait until cancelled."""
        context.progress(message="waiting")
        told.append(context.wait_cancelled(60))
        over.set()

    _, passed_on = cancel(project, lambda event: type(event).__name__ == "Progressed", Call(tool="wait"), tools=[wait])

    assert (passed_on, over.wait(60), told) == (True, True, [True])


def test_a_call_cancelled_while_a_person_is_asked_never_ran(project: Project) -> None:
    all_obstacles(project)
    project.environ["TOKEN"] = "12345678"

    class Silent:
        async def ask(self, question: object) -> Any:
            await asyncio.Event().wait()

    watcher, passed_on = cancel(
        project, lambda event: type(event).__name__ == "Requested", Call(tool="act"), approver=Silent()
    )

    assert (passed_on, finished_with(watcher)) == (True, ["cancelled"])
    (line,) = project.audit_lines
    assert " TOOL_REFUSED name=act params={} status=cancelled " in line
    assert not (project.root / "ran").exists()


def test_an_interrupt_is_recorded_and_passed_on(project: Project) -> None:
    """Ctrl-C while a tool runs."""

    @glee.tool(blocking=False)
    def interrupt() -> None:
        """As if somebody pressed Ctrl-C."""
        signal.raise_signal(signal.SIGINT)

    watcher = Watcher()
    with project.open(tools=[interrupt]) as engine:
        engine.subscribe(watcher)
        with pytest.raises(KeyboardInterrupt):
            engine.call_sync("interrupt")

    assert finished_with(watcher) == ["cancelled"]
    assert " status=cancelled " in project.audit_lines[-1]

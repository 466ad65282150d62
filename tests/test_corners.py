"""Corners of the corridor where a call could slip, stumble or say too much."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

import glee
from glee.definitions.call import Call, Caller
from glee.testing import WRITES, AnsweringPerson, Project, Watcher

TOKEN = {"secrets": {"TOKEN": {"type": "string"}}}


@glee.tool
def show(value: Any = None) -> Any:
    """Show it."""
    return value


@pytest.mark.parametrize("answer", ["perhaps", None, False, True, "YES", ""])
def test_an_answer_nobody_understands_lets_nothing_run(project: Project, answer: Any) -> None:
    project.add_command("send", "touch ran", permissions=WRITES, approval={"required": True, "reason": "Sends"})
    with project.open(approver=AnsweringPerson(answer)) as engine:
        result = engine.call_sync("send")
    assert (result.ok, (project.root / "ran").exists()) == (False, False)


@pytest.mark.parametrize("tool", ["show", "nothing"])
def test_arguments_that_hold_themselves_end_in_a_result(project: Project, tool: str) -> None:
    endless: dict[str, Any] = {}
    endless["value"] = endless
    with project.open(tools=[show]) as engine:
        result = engine.call_sync(tool, endless)
    assert not result.ok


@pytest.mark.parametrize("blocking", [True, False])
def test_a_function_that_leaves_the_program_is_an_exception_of_the_tool(project: Project, blocking: bool) -> None:
    @glee.tool(blocking=blocking)
    def leave() -> None:
        """Leave."""
        sys.exit(3)

    with project.open(tools=[leave]) as engine:
        result = engine.call_sync("leave")
    assert result.error and result.error.code == "exception"


def test_an_unregistered_tool_is_not_listed(project: Project) -> None:
    with project.open(tools=[show]) as engine:
        engine.list()
        engine.unregister("show")
        assert engine.list() == ()


def test_the_limit_counts_characters_of_json_too(project: Project) -> None:
    with project.open(tools=[show]) as engine:
        result = engine.call_sync("show", {"value": ["é" * 60_000]})
    assert result.artifacts == ()


def test_a_secret_in_what_surrounds_a_call_is_taken_out_too(project: Project) -> None:
    project.environ["TOKEN"] = "S3CR3T-VALUE"
    project.add_command("send", "true", permissions=TOKEN)
    watcher = Watcher()
    call = Call(
        tool="send",
        caller=Caller(session="S3CR3T-VALUE"),
        context={"clipboard": "S3CR3T-VALUE"},
        idempotency_key="S3CR3T-VALUE",
    )
    with project.open() as engine:
        engine.subscribe(watcher)
        engine.call_sync(call)
    assert [name for name, event in zip(watcher.names, watcher.events, strict=True) if "S3CR3T" in repr(event)] == []
    assert [line for line in project.audit_lines if "S3CR3T" in line] == []


def test_a_secret_that_changes_while_a_person_is_asked_is_taken_out(project: Project) -> None:
    class Slow:
        async def ask(self, question: object) -> Any:
            project.environ["TOKEN"] = "SECOND-VALUE"
            return "yes"

    project.environ["TOKEN"] = "FIRST-VALUE"
    project.add_command("send", 'echo "$TOKEN"', permissions=TOKEN, approval={"required": True, "reason": "Sends"})
    with project.open(approver=Slow()) as engine:
        assert engine.call_sync("send").output == "[secret]\n"


def test_an_approver_that_needs_an_event_loop_gets_one(project: Project) -> None:
    class Remote:
        async def ask(self, question: object) -> Any:
            await asyncio.sleep(0)
            return "yes"

    project.add_command("send", "true", approval={"required": True, "reason": "Sends"})
    with project.open(approver=Remote()) as engine:
        assert engine.call_sync("send").ok


def test_a_log_removed_within_the_second_loses_no_line(project: Project) -> None:
    log = project.root / ".glee" / "audit" / "tools.log"
    from glee.audit.log import AuditLog

    with project.open(tools=[show], audit=AuditLog(log, clock=lambda: 1.0)) as engine:
        engine.call_sync("show", {"value": "before"})
        log.unlink()
        engine.call_sync("show", {"value": "after"})
    assert ["after" in line for line in project.audit_lines] == [True, True]


def test_no_control_character_reaches_the_log(project: Project) -> None:
    with project.open(tools=[show]) as engine:
        engine.call_sync("show", {"value": "\x9b31m\x90\u202e\x7f"})
    text = "\n".join(project.audit_lines)
    assert [ascii(c) for c in "\x9b\x90\u202e\x7f" if c in text] == []


def test_a_name_too_large_for_a_line_is_cut(project: Project) -> None:
    with project.open() as engine:
        engine.call_sync("y" * 1_000_000)
    assert len(project.audit_lines[0]) < 40_000


def test_a_context_prints_no_secret(project: Project) -> None:
    shown: list[str] = []

    @glee.tool(permissions=TOKEN)
    def look(context: glee.Context) -> None:
        """Look."""
        shown.append(f"{context.environment!r} {context!r}")

    project.environ["TOKEN"] = "S3CR3T-VALUE"
    with project.open(tools=[look]) as engine:
        engine.call_sync("look")
    assert "S3CR3T" not in shown[0]


def test_a_replayed_result_is_not_recorded_as_a_refusal(project: Project) -> None:
    with project.open(tools=[show]) as engine:
        for _ in range(2):
            engine.call_sync(Call(tool="show", idempotency_key="k"))
    assert "TOOL_REFUSED" not in project.audit_lines[-1]


@pytest.mark.parametrize("value", ["agent", "session", "e", "door"])
def test_a_secret_that_reads_like_glees_own_words_harms_no_call(project: Project, value: str) -> None:
    project.add_command("look", "true", permissions=TOKEN)
    project.environ["TOKEN"] = value
    watcher = Watcher()
    with project.open() as engine:
        engine.subscribe(watcher)
        result = engine.call_sync(Call(tool="look", caller=Caller(agent="writer", session="s-1")))

    assert (result.ok, result.warnings, len(project.audit_lines)) == (True, (), 2)
    assert watcher.names == ["Requested", "Decided", "Started", "Finished"]


def test_a_person_sees_what_will_run_and_no_secret(project: Project) -> None:
    schema = {"type": "object", "properties": {"to": {"default": "everybody"}, "text": {}}}
    project.add_command(
        "send", "true", inputs={"schema": schema}, permissions=TOKEN, approval={"required": True, "reason": "Sends"}
    )
    project.environ["TOKEN"] = "S3CR3T-VALUE"
    person = AnsweringPerson()
    with project.open(approver=person) as engine:
        engine.call_sync("send", {"text": "it is S3CR3T-VALUE"})

    assert person.questions[0].call.arguments == {"to": "everybody", "text": "it is [secret]"}


def test_a_timeout_shows_what_was_written_until_then(project: Project) -> None:
    project.add_command("slow", "echo begun; echo $TOKEN >&2; sleep 60", permissions=TOKEN, command={"timeout_ms": 500})
    project.environ["TOKEN"] = "S3CR3T-VALUE"
    with project.open() as engine:
        result = engine.call_sync("slow")

    assert result.error and result.error.details == {"timeout_ms": 500, "stdout": "begun\n", "stderr": "[secret]\n"}


def test_a_time_that_the_config_sets_is_kept_by_a_function_that_had_proved_quick(project: Project) -> None:
    import threading

    release = threading.Event()

    @glee.tool
    def sometimes(wait: bool = False) -> str:
        """Wait, or not."""
        if wait:
            release.wait(60)
        return "done"

    project.configure("limits:\n  timeout_ms: 300\n")
    with project.open(tools=[sometimes]) as engine:
        for _ in range(5):
            assert engine.call_sync("sometimes").ok
        late = engine.call_sync("sometimes", {"wait": True})
    release.set()

    assert late.error and late.error.code == "timeout"
    assert "its thread was left behind" in late.warnings[0]

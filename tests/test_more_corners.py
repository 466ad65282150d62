"""Corners in which something was wrong once."""

from __future__ import annotations

import datetime
import fcntl
import gzip
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

import glee
from glee.audit.log import Entry
from glee.claims import FileClaims
from glee.definitions.call import Call
from glee.definitions.event import Event, Finished, Requested
from glee.definitions.result import Result
from glee.egress.decoding import decode_body
from glee.engine import Engine
from glee.runners.http import follow
from glee.schemas.defaults import compile_defaults
from glee.secrets.redaction import MARK, Redactor
from glee.testing import AnsweringPerson, Project

LOOP = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}


@glee.tool
def show(value: Any = None) -> Any:
    """Show it."""
    return value


@pytest.mark.parametrize("schema", [LOOP, {"$ref": "#"}, {"allOf": [{"$ref": "#"}]}], ids=str)
def test_a_reference_that_leads_back_to_itself_ends(schema: dict[str, Any]) -> None:
    fill = compile_defaults({**schema, "properties": {"n": {"default": 1}}})

    assert fill is not None
    assert fill({}) == {"n": 1}


def test_a_manifest_whose_schema_refers_to_itself_hides_no_other(project: Project) -> None:
    properties = {"n": {"default": 1}, "y": {"$ref": "#/$defs/a"}}
    schema = {"type": "object", "properties": properties, "$defs": LOOP["$defs"]}
    project.add_command("good", "true")
    project.add_command("loop", "true", inputs={"schema": schema}, examples=[{"params": {"y": {}}}])

    with project.open() as engine:
        assert [summary.name for summary in engine.list()] == ["good", "loop"]


def test_a_body_of_very_many_parts_is_unpacked_in_bounded_time() -> None:
    """If the rest were copied for each part, these would take minutes, in which no event loop turns."""
    assert decode_body(gzip.compress(b"") * 800_000, "gzip", 32 * 1024 * 1024) == b""


def test_a_secret_of_many_backslashes_is_looked_for_in_bounded_time() -> None:
    """A pattern that tried every way to divide them would take days."""
    assert Redactor(["\\" * 40 + "x"]).text("\\" * 80) == "\\" * 80


def test_the_default_of_what_a_property_refers_to_is_applied() -> None:
    fill = compile_defaults({"properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"default": 1}}})

    assert fill is not None
    assert fill({}) == {"n": 1}


def test_an_output_with_half_a_character_is_settled(tmp_path: Path) -> None:
    claims, call = FileClaims(tmp_path / "claims"), Call(tool="x", idempotency_key="k")
    result = Result(ok=True, tool="x", call_id="1", output="\ud800")
    claims.claim(call, "1")
    claims.settle(call, result)

    assert claims.claim(call, "2") == result


def test_a_value_that_a_function_cannot_take_bothers_nobody_and_leaves_the_key_free(project: Project) -> None:
    @glee.tool(approval="It matters")
    def on(day: datetime.date) -> str:
        """On a day."""
        return day.isoformat()

    person = AnsweringPerson()
    with project.open(tools=[on], approver=person) as engine:
        engine.call_sync(Call(tool="on", arguments={"day": "nonsense"}, idempotency_key="k"))
        asked = len(person.questions)
        corrected = engine.call_sync(Call(tool="on", arguments={"day": "2025-01-09"}, idempotency_key="k"))

    assert (asked, corrected.output) == (0, "2025-01-09")


class Hours:
    """A record that takes an hour for each line, by its own clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lines: list[str] = []

    def write(self, event: str, entry: Entry, status: str | None = None) -> None:
        self.now += 3600
        self.lines.append(event)


def test_a_deadline_that_passes_while_the_call_is_recorded_leaves_the_key_free(project: Project) -> None:
    """The caller is told that nothing was run, so the key should be free and the record should not say EXECUTED."""
    record = Hours()
    with project.open(tools=[show], audit=record) as opened:
        engine = Engine(structs.replace(opened._parts, now=lambda: record.now))
        engine.call_sync(Call(tool="show", deadline=60.0, idempotency_key="k"))
        lines = list(record.lines)
        again = engine.call_sync(Call(tool="show", idempotency_key="k"))

    assert (again.ok, lines) == (True, ["TOOL_CALLED", "TOOL_REFUSED"])


def test_a_listener_changes_nothing_of_an_error(project: Project) -> None:
    def change(event: Event) -> None:
        if isinstance(event, Finished) and event.result.error:
            event.result.error.details["nearest"] = "changed"

    with project.open() as engine:
        engine.subscribe(change)
        result = engine.call_sync("nothing")

    assert result.error and result.error.details == {"nearest": []}


def test_a_listener_changes_nothing_of_the_callers_own(project: Project) -> None:
    def change(event: Event) -> None:
        if isinstance(event, Requested):
            event.call.arguments["value"].append("changed")

    given = {"value": ["as it was"]}
    with project.open(tools=[show]) as engine:
        engine.subscribe(change)
        engine.call_sync("show", given)

    assert given == {"value": ["as it was"]}


def test_an_approver_changes_nothing_of_the_tool(project: Project) -> None:
    class Meddler(AnsweringPerson):
        async def ask(self, question: Any) -> Any:
            question.tool.permissions.secrets.clear()
            return await super().ask(question)

    project.environ["TOKEN"] = "S3CR3T-VALUE"
    permissions = {"secrets": {"TOKEN": {"type": "string"}}}
    project.add_command(
        "send", 'echo "$TOKEN"', permissions=permissions, approval={"required": True, "reason": "Sends"}
    )

    with project.open(approver=Meddler()) as engine:
        assert engine.call_sync("send").output == f"{MARK}\n"


def test_a_log_that_another_process_holds_holds_up_many_calls_no_longer_than_one(project: Project) -> None:
    """Each waits twice in turn while it keeps the others of its process from the log."""
    with project.open(tools=[show]) as engine:
        engine.call_sync("show")
        with open(project.root / ".glee" / "audit" / "tools.log") as holder:
            fcntl.flock(holder, fcntl.LOCK_EX)
            threads = [threading.Thread(target=engine.call_sync, args=("show",)) for _ in range(12)]
            began = time.monotonic()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("value", "text"),
    [("aaaa\r\nbbbb", "aaaa\nbbbb"), ("aaaa\nbbbb", "aaaa\\r\\nbbbb"), ("aaaa\nbbbb", "aaaa%0D%0Abbbb")],
)
def test_a_secret_of_several_lines_is_found_with_other_line_ends_in_other_clothing(value: str, text: str) -> None:
    assert Redactor([value]).text(text) == MARK


def test_a_path_with_a_number_of_thousands_of_digits_leads_nowhere() -> None:
    assert repr(follow([1], "9" * 5000)) == "ABSENT"

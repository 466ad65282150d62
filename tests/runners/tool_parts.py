"""Short ways to write a tool's inputs, and to compare results whole."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import structs

from glee.definitions.call import Call
from glee.definitions.result import Artifact, Failure, Result
from glee.testing import AnsweringPerson, Project, Watcher, manifest


def takes(**properties: Any) -> dict[str, Any]:
    """`inputs` with these properties; a word stands for a type, and none of them is required."""
    schemas = {name: {"type": kind} if isinstance(kind, str) else kind for name, kind in properties.items()}
    return {"schema": {"type": "object", "additionalProperties": False, "properties": schemas}}


def needs(*names: str) -> dict[str, Any]:
    """`permissions` with these secrets."""
    return {"secrets": {name: {"type": "string", "required": True} for name in names}}


def add_http(project: Project, name: str, url: str, *, http: dict[str, Any] | None = None, **fields: Any) -> None:
    """An HTTP tool; `http` holds the rest of its block."""
    fields["permissions"] = {"network": True, **fields.get("permissions", {})}
    project.add_tool(name, manifest(name, "http", {"url": url, **(http or {})}, **fields))


def bare(result: Result) -> Result:
    """A result without what differs from call to call."""
    return structs.replace(result, call_id="", duration_ms=0.0)


def success(
    tool: str,
    output: Any,
    *,
    warnings: tuple[str, ...] = (),
    artifacts: tuple[Artifact, ...] = (),
    exit_code: int | None = None,
) -> Result:
    return Result(
        ok=True, tool=tool, call_id="", output=output, warnings=warnings, artifacts=artifacts, exit_code=exit_code
    )


def failure(
    tool: str,
    code: str,
    message: str,
    details: dict[str, Any] | None = None,
    *,
    warnings: tuple[str, ...] = (),
    exit_code: int | None = None,
) -> Result:
    error = Failure(code=code, message=message, details=details or {})
    return Result(ok=False, tool=tool, call_id="", error=error, warnings=warnings, exit_code=exit_code)


class Heard(NamedTuple):
    """What came of a call, and whom it bothered."""

    code: str | None
    questions: int
    events: list[str]
    lines: list[str]


def call_with_key(project: Project, tool: str, arguments: dict[str, Any]) -> Heard:
    """One call under the same key as every other, with a person who says yes."""
    person, watcher, before = AnsweringPerson(), Watcher(), len(project.audit_lines)
    with project.open(approver=person) as engine:
        engine.subscribe(watcher)
        result = engine.call_sync(Call(tool=tool, arguments=arguments, idempotency_key="k"))
    lines = [line.split(" ")[1] for line in project.audit_lines[before:]]
    return Heard(result.error.code if result.error else None, len(person.questions), watcher.names, lines)


NOBODY_BOTHERED = Heard("invalid_input", 0, ["Requested", "Finished"], ["TOOL_REFUSED"])
RAN = Heard(None, 1, ["Requested", "Decided", "Started", "Finished"], ["TOOL_CALLED", "TOOL_EXECUTED"])

"""The corridor from end to end, in a few calls."""

from __future__ import annotations

import glee
from glee.testing import Project


def test_a_command_tool_is_called_and_recorded(project: Project) -> None:
    project.add_command("greet", 'echo "hello $1"', command={"args": ["${name}"]},
                        inputs={"schema": {"type": "object", "properties": {"name": {"type": "string"}}}})  # fmt: skip

    with project.open() as engine:
        result = engine.call_sync("greet", {"name": "world"})

    assert (result.ok, result.output, result.exit_code) == (True, "hello world\n", 0)
    assert [line.split(" ")[1] for line in project.audit_lines] == ["TOOL_CALLED", "TOOL_EXECUTED"]


def test_a_python_tool_is_called(project: Project) -> None:
    project.add_python("double", "def run(n):\n    return n * 2\n",
                       inputs={"schema": {"type": "object", "properties": {"n": {"type": "integer"}}}})  # fmt: skip

    with project.open() as engine:
        assert engine.call_sync("double", {"n": 21}).output == 42


def test_a_function_is_called(project: Project) -> None:
    @glee.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    with project.open(tools=[add]) as engine:
        assert engine.call_sync("add", {"a": 1, "b": 2}).output == 3

from __future__ import annotations

from typing import Any

import click
from msgspec import Struct

from glee.approval import Always, Approver
from glee.compose import compose
from glee.definitions.call import Call, Caller
from glee.definitions.result import Result
from glee.definitions.tool import Example, Tool
from glee.doors.cli.failures import fail
from glee.doors.cli.person import TerminalApprover
from glee.doors.cli.project import complete_tool, json_option, load_project, print_json, root_option
from glee.doors.cli.waiting import Spinner
from glee.engine import Engine
from glee.errors import NotFound
from glee.formats import expectation


class Verdict(Struct, frozen=True, kw_only=True):
    tool: str
    example: str
    ok: bool
    message: str = ""
    diff: str = ""
    duration_ms: float = 0.0


@click.command("test", epilog="Example: glee test find_text")
@click.argument("names", nargs=-1, shell_complete=complete_tool)
@click.option("--yes", is_flag=True, help="Answer yes to the approvals that examples need.")
@root_option
@json_option
def command(names: tuple[str, ...], yes: bool, root: str | None, as_json: bool) -> None:
    """Run the examples in the definitions as tests.

    Expected JSON is compared as JSON, where "..." stands for any string and a trailing ... for any rest;
    text is compared trimmed. An example without expected_output passes if the call succeeds.
    """
    approver: Approver = Always() if yes else TerminalApprover()
    with compose(load_project(root), approver=approver) as engine:
        engine.subscribe(Spinner())
        verdicts = []
        for tool in _choose(engine, names):
            for index, example in enumerate(tool.examples, 1):
                verdict = judge(engine, tool, example, index)
                verdicts.append(verdict)
                if not as_json:
                    _print(verdict)
    passed = sum(verdict.ok for verdict in verdicts)
    if as_json:
        print_json(verdicts)
    else:
        click.echo(f"{passed} passed, {len(verdicts) - passed} failed")
    if passed < len(verdicts):
        raise click.exceptions.Exit(1)


def _choose(engine: Engine, names: tuple[str, ...]) -> list[Tool]:
    listed = [summary.name for summary in engine.list()]
    broken = [summary for summary in engine.list() if summary.broken and (not names or summary.name in names)]
    for summary in broken:
        fail(f"{summary.name} is broken: {summary.broken}")
    if broken:
        raise click.exceptions.Exit(2)
    for name in names:
        if name not in listed:
            raise NotFound(f"there is no tool {name}")
    return [tool for name in (names or listed) if (tool := engine.find(name))]


def judge(engine: Engine, tool: Tool, example: Example, index: int) -> Verdict:
    """Calls the tool as the example says and compares."""
    title = example.description or f"example {index}"
    result = engine.call_sync(Call(tool=tool.name, arguments=example.params, caller=Caller(door="cli")))
    ok, message, difference = compare(tool, example, result)
    return Verdict(
        tool=tool.name, example=title, ok=ok, message=message, diff=difference, duration_ms=result.duration_ms
    )


def compare(tool: Tool, example: Example, result: Result) -> tuple[bool, str, str]:
    if result.error:
        return False, f"{result.error.code}: {result.error.message}", ""
    expected: Any = example.expected_output
    if expected is None:
        return True, "", ""
    if tool.outputs.format == "text" and isinstance(expected, str):
        actual = result.output if isinstance(result.output, str) else expectation.show(result.output)
        if expected.strip() == actual.strip():
            return True, "", ""
        return False, "the output differs", expectation.diff(expected.strip(), actual.strip())
    if isinstance(expected, str):
        try:
            expected = expectation.parse_expected(expected)
        except ValueError as error:
            return False, f"the expected output is not JSON: {error}", ""
    if expectation.matches(expected, result.output):
        return True, "", ""
    return (
        False,
        "the output differs",
        expectation.diff(expectation.show(expected), expectation.show(result.output)),
    )


def _print(verdict: Verdict) -> None:
    mark = click.style("pass", fg="green") if verdict.ok else click.style("FAIL", fg="red", bold=True)
    click.echo(f"{mark} {verdict.tool}: {verdict.example} ({verdict.duration_ms:.0f} ms)")
    for line in [verdict.message, *verdict.diff.splitlines()] if not verdict.ok else []:
        colour = {"+": "green", "-": "red"}.get(line[:1])
        click.echo("     " + click.style(line, fg=colour))

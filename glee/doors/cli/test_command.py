"""`glee test`: examples as tests."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import click
from msgspec import UNSET, Struct

from glee.approval import Always, Approver
from glee.compose import compose
from glee.definitions.call import Call, Caller
from glee.definitions.result import Result
from glee.definitions.tool import Example, Tool
from glee.doors.cli.failures import fail
from glee.doors.cli.interruption import end_as_by_ctrl_c
from glee.doors.cli.person import TerminalApprover
from glee.doors.cli.project import complete_tool, get_tool, json_option, load_project, root_option
from glee.doors.cli.screen import one_line, print_json, printable, tell_operator
from glee.doors.cli.waiting import Spinner
from glee.engine import Engine
from glee.formats import expectation


class Verdict(Struct, frozen=True, kw_only=True):
    tool: str
    example: str
    ok: bool
    message: str = ""
    diff: str = ""
    warnings: tuple[str, ...] = ()
    duration_ms: float = 0.0


@click.command("test", epilog="Example: glee test find_text")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_tool)
@click.option("--yes", is_flag=True, help="Answer yes to the approvals that examples need.")
@root_option
@json_option
def command(names: tuple[str, ...], yes: bool, root: str | None, as_json: bool) -> None:
    """Run the examples in the definitions as tests.

    Expected JSON is compared as JSON, where "..." stands for any string and a trailing ... for any rest;
    text is compared trimmed. An example without expected_output passes if the call succeeds. The exit
    status is 1 if an example failed, 2 if a definition is broken.
    """
    end_as_by_ctrl_c()
    settings = load_project(root)
    approver: Approver = Always() if yes else TerminalApprover()
    with compose(settings, approver=approver, tell_operator=tell_operator) as engine:
        engine.subscribe(Spinner())
        tools = [get_tool(settings, name) for name in dict.fromkeys(names)] if names else _all(engine)
        broken = [] if names else _broken(engine)
        verdicts = []
        for tool in tools:
            for index, example in enumerate(tool.examples, 1):
                verdict = judge(engine, tool, example, index)
                verdicts.append(verdict)
                if not as_json:
                    _print(verdict)
    failed = sum(not verdict.ok for verdict in verdicts)
    if as_json:
        print_json([*verdicts, *broken])
    else:
        for verdict in broken:
            fail(f"{verdict.tool}: {verdict.message}")
        count = f", {len(broken)} broken" if broken else ""
        click.echo(f"{len(verdicts) - failed} passed, {failed} failed{count}")
    if broken or failed:
        raise click.exceptions.Exit(2 if broken else 1)


def _all(engine: Engine) -> list[Tool]:
    return [tool for summary in engine.list() if not summary.broken and (tool := engine.find(summary.name))]


def _broken(engine: Engine) -> list[Verdict]:
    return [
        Verdict(tool=summary.name, example="", ok=False, message=f"the definition is broken: {summary.broken}")
        for summary in engine.list()
        if summary.broken
    ]


def judge(engine: Engine, tool: Tool, example: Example, index: int) -> Verdict:
    """Calls the tool as the example says and compares."""
    title = example.description or f"example {index}"
    with contextlib.redirect_stdout(sys.stderr):  # what a function of this process prints is not its output
        result = engine.call_sync(Call(tool=tool.name, arguments=example.params, caller=Caller(door="cli")))
    ok, message, difference = compare(tool, example, result)
    return Verdict(
        tool=tool.name,
        example=title,
        ok=ok,
        message=message,
        diff=difference,
        warnings=result.warnings,
        duration_ms=result.duration_ms,
    )


def compare(tool: Tool, example: Example, result: Result) -> tuple[bool, str, str]:
    if result.error:
        return False, f"{result.error.code}: {result.error.message}", ""
    expected: Any = example.expected_output
    if expected is UNSET:
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
    click.echo(f"{mark} {verdict.tool}: {one_line(verdict.example)} ({verdict.duration_ms:.0f} ms)")
    for line in [verdict.message, *verdict.diff.splitlines()] if not verdict.ok else []:
        colour = {"+": "green", "-": "red"}.get(line[:1])
        click.echo("     " + click.style(printable(line), fg=colour))
    for warning in verdict.warnings:
        click.echo("     " + click.style("warning", fg="yellow") + f": {one_line(warning)}")

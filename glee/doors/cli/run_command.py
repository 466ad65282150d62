"""`glee run`: one call."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from typing import Any

import click

from glee.approval import Always, Approver
from glee.compose import compose
from glee.definitions.call import Call, Caller
from glee.definitions.event import Event, Finished
from glee.definitions.result import Result
from glee.doors.cli.failures import EXIT_STATUS, fail, warn
from glee.doors.cli.interruption import end_as_by_ctrl_c
from glee.doors.cli.parameters import ask_missing, read_arguments
from glee.doors.cli.person import TerminalApprover
from glee.doors.cli.project import caller_options, complete_tool, json_option, load_project, root_option
from glee.doors.cli.screen import print_json, print_output, tell_operator
from glee.doors.cli.waiting import Spinner
from glee.engine import Engine


def _positive(ctx: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise click.BadParameter(f"{value:g} is not a number of seconds; give one above 0, such as 2.5")
    return value


def _not_empty(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise click.BadParameter("it is empty, and every such call would count as the same one")
    return value


@click.command("run", epilog="Example: glee run find_text text=TODO path=src")
@click.argument("name", shell_complete=complete_tool)
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--params", metavar="JSON|@FILE|-", help="Arguments as JSON, from a file, or from standard input.")
@click.option("--yes", is_flag=True, help="Answer yes to this call's approval, once.")
@click.option("--timeout", metavar="SECONDS", type=float, callback=_positive, help="Wait no longer.")
@click.option("--idempotency-key", metavar="KEY", callback=_not_empty, help="Run at most once for this key.")
@click.option("--vocabulary", metavar="NAME", help="The vocabulary in which tool and arguments are named.")
@caller_options
@root_option
@json_option
def command(
    name: str,
    pairs: tuple[str, ...],
    params: str | None,
    yes: bool,
    timeout: float | None,
    idempotency_key: str | None,
    vocabulary: str | None,
    agent: str | None,
    provider: str | None,
    skill: str | None,
    session: str | None,
    root: str | None,
    as_json: bool,
) -> None:
    """Call a tool once.

    KEY=VALUE is read by the tool's schema; KEY:=JSON is read as JSON. The exit status is 0 if the call
    succeeded, 2 for bad input, 3 if it was refused, 124 if time ran out, 130 if it was cancelled, else 1.
    """
    end_as_by_ctrl_c()
    approver: Approver = Always() if yes else TerminalApprover()
    with compose(load_project(root), approver=approver, tell_operator=tell_operator) as engine:
        caller = Caller(agent=agent, provider=provider, skill=skill, session=session, door="cli")
        tool = engine.find(name, caller)
        arguments = read_arguments(pairs, params, tool)
        call = Call(
            tool=tool.name if tool else name,
            arguments=ask_missing(arguments, tool) if tool else arguments,
            caller=caller,
            vocabulary=vocabulary,
            idempotency_key=idempotency_key,
            deadline=time.time() + timeout if timeout else None,
        )
        result, said = _call(engine, call)
    if as_json:
        print_json(result)
    elif not result.error:
        _print_output(result.output)
    if said and not result.error:
        print_output(said, err=True)
    if not as_json:
        _print_beside(result)
    if result.error:
        raise click.exceptions.Exit(EXIT_STATUS[result.error.code])


def _call(engine: Engine, call: Call) -> tuple[Result, str]:
    """The result and what the tool said beside it. A call that was interrupted has a result too."""
    ends: list[Finished] = []

    def keep(event: Event) -> None:
        if isinstance(event, Finished):
            ends.append(event)

    engine.subscribe(Spinner())
    engine.subscribe(keep)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what a function of this process prints is not its output
            engine.call_sync(call)
    except KeyboardInterrupt:
        if not ends:
            raise
    return ends[-1].result, ends[-1].said


def _print_output(output: Any) -> None:
    """First of all: whatever becomes of the other stream, this is what was asked for."""
    if isinstance(output, str):
        print_output(output)
    else:
        print_json(output)
    sys.stdout.flush()


def _print_beside(result: Result) -> None:
    for warning in result.warnings:
        warn(warning)
    if result.error:
        fail(result.error.message)
        _print_details(result.error.message, result.error.details)


def _print_details(message: str, details: dict[str, Any]) -> None:
    for violation in (details.get("violations") or [])[1:]:
        where = f"{violation['pointer']}: " if violation["pointer"] else ""
        print_output(f"  {where}{violation['message']}; {violation['hint']}", err=True)
    for key in ("stdout", "stderr", "body"):
        text = (details.get(key) or "").strip("\n")
        if text and not message.endswith(text):
            print_output(text, err=True)

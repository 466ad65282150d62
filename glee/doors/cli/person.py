"""A person at the terminal, asked before a call that needs their yes. Nothing is remembered."""

from __future__ import annotations

import json
import select
import sys
import time

import click

from glee.approval import Answer, Question
from glee.doors.cli.screen import is_terminal, one_line, printable, shorten
from glee.errors import TimedOut


class TerminalApprover:
    """Asks in place: with an event loop in between, Ctrl-C would not reach the question."""

    answers_in_place = True

    async def ask(self, question: Question) -> Answer:
        if not is_terminal():
            return "nobody"
        arguments = json.dumps(question.call.arguments, ensure_ascii=False, indent=2)
        click.echo(f"{click.style(printable(question.tool.name), bold=True)} asks for your approval.", err=True)
        click.echo(f"  reason:    {shorten(one_line(question.reason), 500)}", err=True)
        if question.tool.origin.trusted:
            click.echo("  held by:   nothing, since your config trusts its package", err=True)
        click.echo(f"  arguments: {printable(arguments)}", err=True)
        return _read_answer(one_line(question.tool.name), question.call.deadline)


def _read_answer(name: str, deadline: float | None) -> Answer:
    """Until the person has typed a line, or the call's time is up."""
    while True:
        click.echo(f"Allow this one call of {name}? [y/N]: ", nl=False, err=True)
        left = None if deadline is None else max(0.0, deadline - time.time())
        if not select.select([sys.stdin], [], [], left)[0]:
            click.echo(err=True)
            raise TimedOut("nobody answered before the time was up; nothing was run")
        line = sys.stdin.readline()
        word = line.strip().lower()
        if not line:  # Ctrl-D
            click.echo(err=True)
        if word in ("y", "yes"):
            return "yes"
        if word in ("", "n", "no"):
            return "no"
        click.echo("please answer y or n", err=True)

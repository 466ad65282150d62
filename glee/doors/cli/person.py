"""A person at the terminal, asked before a call that needs their yes. Nothing is remembered."""

from __future__ import annotations

import json

import click

from glee.approval import Answer, Question
from glee.doors.cli.screen import is_terminal, printable


class TerminalApprover:
    async def ask(self, question: Question) -> Answer:
        if not is_terminal():
            return "nobody"
        arguments = json.dumps(question.call.arguments, ensure_ascii=False, indent=2)
        click.echo(f"{click.style(printable(question.tool.name), bold=True)} asks for your approval.", err=True)
        click.echo(f"  reason:    {printable(question.reason)}", err=True)
        click.echo(f"  arguments: {printable(arguments)}", err=True)
        try:
            return "yes" if click.confirm("Allow this one call?", default=False, err=True) else "no"
        except click.Abort as abort:
            if isinstance(abort.__context__, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            click.echo(err=True)
            return "no"

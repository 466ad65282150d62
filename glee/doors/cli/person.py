"""A person at the terminal, asked before a call that needs their yes. Nothing is remembered."""

from __future__ import annotations

import json
import sys

import click

from glee.approval import Answer, Question


class TerminalApprover:
    async def ask(self, question: Question) -> Answer:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return "nobody"
        arguments = json.dumps(question.call.arguments, ensure_ascii=False, indent=2)
        click.echo(f"{click.style(question.tool.name, bold=True)} asks for your approval.", err=True)
        click.echo(f"  reason:    {printable(question.reason)}", err=True)
        click.echo(f"  arguments: {printable(arguments)}", err=True)
        return "yes" if click.confirm("Allow this one call?", default=False, err=True) else "no"


def printable(text: str) -> str:
    """Without what could move the cursor, recolour the screen or turn the reading direction."""
    return "".join(
        c if c == "\n" or (c.isprintable() and c not in "\u202e\u202d\u2066\u2067\u2068") else "\ufffd" for c in text
    )

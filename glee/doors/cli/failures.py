"""Errors in the terminal's words: one table from codes to exit statuses."""

from __future__ import annotations

import click

from glee.doors.cli.screen import colour, printable
from glee.errors import ConfigError, DefinitionError, GleeError, ProjectNotFound

EXIT_STATUS = {
    "not_found": 2,
    "invalid_input": 2,
    "denied": 3,
    "approval_required": 3,
    "rejected": 3,
    "timeout": 124,
    "cancelled": 130,
    "secret_missing": 1,
    "sandbox_unavailable": 1,
    "blocked": 1,
    "exit_code": 1,
    "exception": 1,
    "http_status": 1,
    "network": 1,
    "too_large": 1,
    "unavailable": 1,
    "internal": 1,
}


def report(error: Exception) -> int:
    """Prints one error and returns the exit status."""
    if isinstance(error, GleeError):
        fail(error.message)
        known = isinstance(error, ConfigError | DefinitionError | ProjectNotFound)
        return 2 if known else EXIT_STATUS[error.code]
    if isinstance(error, OSError):
        fail(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "))
        return 1
    import traceback

    click.echo("".join(traceback.format_exception(error)), err=True)
    fail(f"Glee itself failed: {type(error).__name__}: {error}; please report it with the lines above")
    return 1


def report_usage(error: click.ClickException) -> int:
    """What was typed wrong, and where to read how it is typed."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return 2
    message = " ".join(error.format_message().split())
    fail(message[:1].lower() + message[1:])
    if isinstance(error, click.UsageError) and error.ctx is not None:
        click.echo(f"{error.ctx.get_usage()}\n`{error.ctx.command_path} --help` says more", err=True)
    return 2


def fail(message: str) -> None:
    click.echo(f"{click.style('error', fg='red', bold=True)}: {printable(message)}", err=True, color=colour())


def warn(message: str) -> None:
    click.echo(f"{click.style('warning', fg='yellow')}: {printable(message)}", err=True, color=colour())

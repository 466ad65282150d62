"""Errors in the terminal's words: one table from codes to exit statuses."""

from __future__ import annotations

import click

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


def fail(message: str) -> None:
    click.echo(f"{click.style('error', fg='red', bold=True)}: {message}", err=True)


def warn(message: str) -> None:
    click.echo(f"{click.style('warning', fg='yellow')}: {message}", err=True)

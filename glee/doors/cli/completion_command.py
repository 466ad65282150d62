"""`glee completion`: the script for a shell."""

from __future__ import annotations

import click


@click.command("completion", epilog='Example: eval "$(glee completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that completes commands and tool names in a shell."""
    from click.shell_completion import get_completion_class

    from glee.doors.cli import cli

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "glee", "_GLEE_COMPLETE").source())

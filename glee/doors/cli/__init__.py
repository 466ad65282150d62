"""The terminal. Commands are loaded when they are used, so that help costs nothing."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from glee.doors.cli.screen import colour, prepare_streams, settle_streams
from glee.version import VERSION

COMMANDS = {
    "init": "Lay a .glee/ folder with one working sample tool of each kind.",
    "new": "Make a new tool that lints and runs at once.",
    "list": "List the tools a caller may use.",
    "show": "Show one tool in full.",
    "run": "Call a tool once.",
    "lint": "Check every definition; say what is wrong and how to mend it.",
    "test": "Run the examples in the definitions as tests.",
    "learn": "Find the least permissions that a tool needs.",
    "doctor": "Show what this machine can enforce: escapes are tried.",
    "artifact": "Print an output that was too large to return.",
    "completion": "Print the script for tab completion in a shell.",
}


class LazyGroup(click.Group):
    """Knows its commands by name and one line of help; the rest is imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"glee.doors.cli.{cmd_name}_command").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name not in COMMANDS and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f"did you mean {near[0]}?" if near else "`glee --help` lists them"
            ctx.fail(f"there is no command {name!r}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: glee init demo && cd demo && glee list",
)
@click.version_option(VERSION, prog_name="glee")
def cli() -> None:
    """Glee: one definition of a tool, for every agent, with least privilege for every call."""


def main() -> None:
    """Turns every error into a sentence and an exit status."""
    prepare_streams()
    try:
        status = _run()
    except BrokenPipeError:  # whoever read what we write has gone, and needs no more words
        status = 1
    sys.exit(status if settle_streams() else status or 1)


def _run() -> int:
    try:
        status = cli.main(prog_name="glee", standalone_mode=False, color=colour())
    except (click.Abort, KeyboardInterrupt):
        from glee.doors.cli.failures import fail

        fail("cancelled")
        return 130
    except click.ClickException as error:
        from glee.doors.cli.failures import report_usage

        return report_usage(error)
    except Exception as error:
        from glee.doors.cli.failures import report

        return report(error)
    return status if isinstance(status, int) else 0

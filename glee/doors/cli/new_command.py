"""`glee new`: a tool to change."""

from __future__ import annotations

import click

from glee.doors.cli.project import json_option, load_project, near, root_option
from glee.doors.cli.screen import print_json
from glee.formats.scaffold import ScaffoldKind, write_tool


@click.command("new", epilog="Example: glee new weather --kind http")
@click.argument("name")
@click.option("--kind", required=True, type=click.Choice(["http", "command", "python"]), help="How the tool is run.")
@root_option
@json_option
def command(name: str, kind: ScaffoldKind, root: str | None, as_json: bool) -> None:
    """Make a new tool that lints and runs at once, for you to change."""
    manifest = write_tool(load_project(root).folder / "tools", name, kind)
    made = [near(file) for file in sorted(manifest.parent.iterdir())]
    if as_json:
        print_json({"made": made})
        return
    for file in made:
        click.echo(f"made {file}")
    click.echo(f"next: edit it, then glee lint {name} && glee test {name}")

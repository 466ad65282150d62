from __future__ import annotations

import shlex
from pathlib import Path

import click

from glee.config import PROJECT_FOLDER
from glee.errors import DefinitionError
from glee.formats.scaffold import CONFIG, ScaffoldKind, write_tool

SAMPLES: dict[str, ScaffoldKind] = {"find_text": "command", "count_words": "python", "github_repo": "http"}


@click.command("init", epilog="Example: glee init demo && cd demo && glee run count_words text='to be or not'")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(file_okay=False))
def command(folder: str) -> None:
    """Lay a .glee/ folder with config.yml and one working sample tool of each kind."""
    root = Path(folder)
    home = root / PROJECT_FOLDER
    if home.exists():
        raise DefinitionError(f"{home} already exists; `glee new NAME --kind KIND` adds a tool to it")
    home.mkdir(parents=True)
    (home / "config.yml").write_text(CONFIG)
    (home / ".gitignore").write_text("audit/\n")
    for name, kind in SAMPLES.items():
        write_tool(home / "tools", name, kind)
    click.echo(f"made {home} with {', '.join(SAMPLES)}")
    there = "" if root.resolve() == Path.cwd() else f"cd {shlex.quote(str(root))} && "
    click.echo(f"next: {there}glee run count_words text='to be or not to be'")

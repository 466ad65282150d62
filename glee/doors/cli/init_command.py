"""`glee init`: a project, laid whole."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import click

from glee.config import PROJECT_FOLDER
from glee.doors.cli.project import json_option, near
from glee.doors.cli.screen import print_json
from glee.errors import DefinitionError
from glee.formats.scaffold import CONFIG, ScaffoldKind, make_draft, write_tool

SAMPLES: dict[str, ScaffoldKind] = {"find_text": "command", "count_words": "python", "github_repo": "http"}


@click.command("init", epilog="Example: glee init demo && cd demo && glee run count_words text='to be or not'")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(file_okay=False))
@json_option
def command(folder: str, as_json: bool) -> None:
    """Lay a .glee/ folder with config.yml and one working sample tool of each kind."""
    root = Path(folder)
    home = root / PROJECT_FOLDER
    if home.exists():
        raise DefinitionError(f"{home} already exists; `glee new NAME --kind KIND` adds a tool to it")
    root.mkdir(parents=True, exist_ok=True)
    _lay(home)
    if as_json:
        print_json({"made": [near(path) for path in sorted(home.rglob("*")) if path.is_file()]})
        return
    click.echo(f"made {home} with {', '.join(SAMPLES)}")
    there = "" if root.resolve() == Path.cwd() else f"cd {shlex.quote(str(root))} && "
    click.echo(f"next: {there}glee run count_words text='to be or not to be'")


def _lay(home: Path) -> None:
    """Whole or not at all."""
    draft = make_draft(home.parent, home.name)
    try:
        (draft / "config.yml").write_text(CONFIG)
        (draft / ".gitignore").write_text("audit/\n")
        for name, kind in SAMPLES.items():
            write_tool(draft / "tools", name, kind)
        draft.rename(home)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        raise

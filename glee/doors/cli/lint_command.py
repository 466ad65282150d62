from __future__ import annotations

from pathlib import Path

import click

from glee.catalog.manifests import MANIFEST, ManifestSource
from glee.config import Settings
from glee.definitions.problem import Problem
from glee.doors.cli.project import complete_tool, json_option, load_project, print_json, root_option
from glee.doors.cli.waiting import Bar
from glee.errors import NotFound


@click.command("lint", epilog="Example: glee lint --root path/to/project")
@click.argument("names", nargs=-1, shell_complete=complete_tool)
@root_option
@json_option
def command(names: tuple[str, ...], root: str | None, as_json: bool) -> None:
    """Check every definition: file, line, column, what is wrong, how to mend it.

    The exit status is 2 if anything is wrong.
    """
    settings = load_project(root)
    chosen = _choose(settings, names)
    problems = _lint(settings, chosen)
    if as_json:
        print_json(problems)
    else:
        _print(problems, len(chosen))
    if problems:
        raise click.exceptions.Exit(2)


def _choose(settings: Settings, names: tuple[str, ...]) -> list[str]:
    there = ManifestSource(settings.folder / "tools").names()
    missing = [name for name in names if name not in there]
    if missing:
        raise NotFound(f"there is no {settings.folder / 'tools' / missing[0] / MANIFEST}")
    return list(names) or there


def _lint(settings: Settings, names: list[str]) -> list[Problem]:
    from glee.formats.manifest import lint_manifest

    problems: list[Problem] = []
    bar = Bar("checking manifests")
    for done, name in enumerate(names, 1):
        path = settings.folder / "tools" / name / MANIFEST
        problems += lint_manifest(path, root=settings.root, search_path=settings.search_path, shown=_shown(path))
        bar(done, len(names))
    bar.close()
    return problems


def _shown(path: Path) -> str:
    """From where the person stands, if that is shorter."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _print(problems: list[Problem], count: int) -> None:
    for problem in problems:
        where = click.style(f"{problem.file}:{problem.line}:{problem.column}", bold=True)
        field = f" {problem.field}:" if problem.field else ""
        click.echo(f"{where}:{field} {problem.message}")
        click.echo(f"    {click.style('mend:', fg='green')} {problem.hint}")
    tools = f"{count} tool{'' if count == 1 else 's'}"
    found = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}" if problems else "no problems"
    click.echo(f"{tools}, {found}")

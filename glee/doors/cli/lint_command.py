"""`glee lint`: every problem of every manifest."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec import structs

from glee.catalog.manifests import MANIFEST, ManifestSource
from glee.config import Settings
from glee.definitions.problem import Problem
from glee.doors.cli.progress import Bar
from glee.doors.cli.project import complete_tool, json_option, load_project, near, root_option, unknown_tool
from glee.doors.cli.screen import print_json, printable


@click.command("lint", epilog="Example: glee lint --root path/to/project")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_tool)
@root_option
@json_option
def command(names: tuple[str, ...], root: str | None, as_json: bool) -> None:
    """Check every definition: file, line, column, what is wrong, how to mend it.

    Advice is told and is no problem. The exit status is 2 if anything is wrong.
    """
    settings = load_project(root)
    chosen = _choose(settings, names)
    problems = _lint(settings, chosen)
    if not names:
        strays = ManifestSource(settings.folder / "tools").strays()
        problems += [structs.replace(stray, file=near(Path(stray.file))) for stray in strays]
    if as_json:
        print_json(problems)
    else:
        _print(problems, len(chosen))
    if any(not problem.advice for problem in problems):
        raise click.exceptions.Exit(2)


def _choose(settings: Settings, names: tuple[str, ...]) -> list[str]:
    there = ManifestSource(settings.folder / "tools").names()
    for name in names:
        if name not in there:
            raise unknown_tool(name, there)
    return list(dict.fromkeys(names)) or there


def _lint(settings: Settings, names: list[str]) -> list[Problem]:
    from glee.formats.manifest import lint_manifest

    problems: list[Problem] = []
    bar = Bar("checking manifests")
    for done, name in enumerate(names, 1):
        path = settings.folder / "tools" / name / MANIFEST
        problems += lint_manifest(path, root=settings.root, search_path=settings.search_path, shown=near(path))
        bar(done, len(names))
    bar.close()
    return problems


def _print(problems: list[Problem], count: int) -> None:
    for problem in problems:
        where = click.style(printable(f"{problem.file}:{problem.line}:{problem.column}"), bold=True)
        field = f" {problem.field}:" if problem.field else ""
        click.echo(f"{where}:{printable(f'{field} {problem.message}')}")
        word = click.style("advice:", fg="yellow") if problem.advice else click.style("mend:", fg="green")
        click.echo(f"    {word} {printable(problem.hint)}")
    problems = [problem for problem in problems if not problem.advice]
    tools = f"{count} tool{'' if count == 1 else 's'}"
    found = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}" if problems else "no problems"
    click.echo(f"{tools}, {found}")

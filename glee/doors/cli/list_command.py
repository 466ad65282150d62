"""`glee list`: what a caller may use."""

from __future__ import annotations

import sys

import click

from glee.catalog.source import Summary
from glee.compose import compose_catalog, compose_policy
from glee.definitions.call import Caller
from glee.definitions.decision import Deny
from glee.doors.cli.progress import Bar
from glee.doors.cli.project import caller_options, json_option, load_project, root_option
from glee.doors.cli.screen import one_line, print_json, shorten, width


@click.command("list", epilog="Example: glee list --group web --json")
@click.option("--group", metavar="GROUP", help="Only tools of this group.")
@caller_options
@root_option
@json_option
def command(
    group: str | None,
    agent: str | None,
    provider: str | None,
    skill: str | None,
    session: str | None,
    root: str | None,
    as_json: bool,
) -> None:
    """List the tools a caller may use, in the order of their names.

    A broken definition is listed too, with its reason.
    """
    settings = load_project(root)
    group = "web" if group == "net" else group
    caller = Caller(agent=agent, provider=provider, skill=skill, session=session, door="cli")
    policy = compose_policy(settings)
    bar = Bar("reading manifests")
    found = compose_catalog(settings).summaries(bar)
    bar.close()
    shown = [
        summary
        for summary in found
        if (group is None or summary.group == group) and not isinstance(policy.visible(summary, caller), Deny)
    ]
    if as_json:
        print_json(shown)
    elif shown:
        _print(shown)
    elif group:
        click.echo(f"no tools of the group {group}; `glee list` shows them all")
    else:
        click.echo("no tools; `glee new NAME --kind command` makes one")


def _print(summaries: list[Summary]) -> None:
    names = min(max(len(summary.name) for summary in summaries), 40)
    room = max(width() - names - 12, 30) if sys.stdout.isatty() else 10_000
    lines = []
    for summary in summaries:
        name = one_line(summary.name)
        if summary.broken is None:
            mark = "[trusted] " if summary.trusted else ""
            about = shorten(mark + one_line(summary.description), room)
            lines.append(f"{name:{names}}  {summary.kind:8}  {about}")
        else:
            lines.append(click.style(f"{name:{names}}  {'broken':8}  {one_line(summary.broken)}", fg="red"))
    click.echo("\n".join(lines))

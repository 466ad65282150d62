from __future__ import annotations

import sys

import click

from glee.artifacts.store import ArtifactStore
from glee.doors.cli.project import load_project, root_option


@click.command("artifact", epilog="Example: glee artifact artifact:019a5e0c2d31f00dbeef00d5.txt > whole.txt")
@click.argument("handle")
@root_option
def command(handle: str, root: str | None) -> None:
    """Print an output that was too large to return, by the handle its result names."""
    sys.stdout.buffer.write(ArtifactStore(load_project(root).state / "artifacts").read(handle))
    sys.stdout.flush()

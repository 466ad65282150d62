"""`glee artifact`: the whole of what was cut."""

from __future__ import annotations

import base64
import sys

import click
import msgspec

from glee.artifacts.store import ArtifactStore
from glee.doors.cli.project import json_option, load_project, root_option
from glee.doors.cli.screen import print_json


@click.command("artifact", epilog="Example: glee artifact artifact:019a5e0c2d31f00dbeef00d5.txt > whole.txt")
@click.argument("handle")
@root_option
@json_option
def command(handle: str, root: str | None, as_json: bool) -> None:
    """Print an output that was too large to return, by the handle its result names.

    With --json: its handle, media type and size, and its content as `text`, or as `base64` if it is no text.
    """
    store = ArtifactStore(load_project(root).state / "artifacts")
    data = store.read(handle)
    if as_json:
        described = msgspec.to_builtins(store.describe(handle, data))
        print_json({**described, **_content(data)})
        return
    sys.stdout.buffer.write(data)
    sys.stdout.flush()


def _content(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}

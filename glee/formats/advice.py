"""What a definition could do better, though it can be used as it is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from glee.definitions.tool import Tool
from glee.formats.finding import Finding


def advise(tool: Tool, root: Path) -> Iterator[Finding]:
    if tool.kind in ("command", "python") and tool.permissions.network is True:
        yield Finding(
            ("permissions", "network"),
            "hosts",
            "network: true lets the tool reach everything, this machine's own services too",
            "name what it needs: network: {hosts: [api.example.com]}; `glee learn` finds it",
            advice=True,
        )
    for index, path in enumerate(tool.permissions.fs.read):
        if tool.kind in ("command", "python") and not os.path.lexists(root / path):
            yield Finding(
                ("permissions", "fs", "read", index),
                "path",
                f"there is no {path}, so nothing is granted",
                "make it, or correct it: a pattern or ~ is not understood, a folder grants all that is in it",
                advice=True,
            )
    if "/" in (*tool.permissions.fs.read, *tool.permissions.fs.write):
        yield Finding(
            ("permissions", "fs"),
            "root",
            "the whole machine is granted",
            "name the folders it needs; `glee learn` finds them",
            advice=True,
        )

"""What a definition could do better, though it can be used as it is."""

from __future__ import annotations

from collections.abc import Iterator

from glee.definitions.tool import Tool
from glee.formats.finding import Finding


def advise(tool: Tool) -> Iterator[Finding]:
    if tool.kind in ("command", "python") and tool.permissions.network is True:
        yield Finding(
            ("permissions", "network"),
            "hosts",
            "network: true lets the tool reach everything, this machine's own services too",
            "name what it needs: network: {hosts: [api.example.com]}; `glee learn` finds it",
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

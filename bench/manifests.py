"""Projects of any size: http, command and Python tools in turn, each about sixty lines, all of them lint clean."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_HEAD: Final = """\
# Tool {number} of the bench.
name: {name}
description: {description}
kind: {kind}
version: 1
group: {group}

inputs:
  schema:
    type: object
    additionalProperties: false
    required: [query]
    properties:
      query:
        type: string
        description: What to look for in collection {number}
        minLength: 1
        maxLength: 400
      limit:
        type: integer
        description: How many results to return
        minimum: 1
        maximum: 100
        default: 10
      order:
        type: string
        description: How the results are ordered
        enum: [relevance, newest, oldest]
        default: relevance
"""
_TAIL: Final = """
approval:
  required: false

examples:
  - description: Look for one result
    params:
      query: "first {number}"
      limit: 1
  - description: Look for the newest results
    params: {{query: "second {number}", limit: 5, order: newest}}
"""
_HTTP: Final = """
outputs:
  format: json
  schema:
    type: object
    properties:
      results: {{type: array, items: {{type: object}}}}

exec:
  http:
    method: GET
    url: https://api{number}.example.com/v1/search
    query:
      q: "${{query}}"
      limit: "${{limit}}"
      order: "${{order}}"
    headers:
      Accept: application/json
      Authorization: Bearer ${{SEARCH_KEY}}
    timeout_ms: 15000

permissions:
  network:
    hosts: [api{number}.example.com]
  fs: {{read: [], write: []}}
  secrets:
    SEARCH_KEY:
      description: The key of collection {number}
"""
_COMMAND: Final = """
outputs:
  format: text

exec:
  command:
    entrypoint: .glee/tools/{name}/run.sh
    args: ["--limit", "${{limit}}", "--order", "${{order}}", "--query", "${{query}}"]
    cwd: .
    stdout:
      format: text
    exit_codes_ok: [0, 1]
    timeout_ms: 30000

permissions:
  network: false
  fs:
    read: ["."]
    write: []
  secrets: {{}}
"""
_PYTHON: Final = """
outputs:
  format: json
  schema:
    type: object
    required: [results]
    properties:
      results: {{type: array, items: {{type: string}}}}

exec:
  python:
    module: search_{number}
    function: run
    args: ["${{query}}", "${{limit}}", "${{order}}"]
    cwd: .
    return: json
    timeout_ms: 30000

permissions:
  network: false
  fs:
    read: ["."]
    write: []
  secrets: {{}}
"""
_KINDS: Final = (("http", "web", _HTTP), ("command", "fs", _COMMAND), ("python", "memory", _PYTHON))


def write_project(root: Path, count: int) -> Path:
    """A project of so many tools; returns its root."""
    for number in range(count):
        kind, group, block = _KINDS[number % len(_KINDS)]
        name = f"{group}.search_{number:05}"
        folder = root / ".glee" / "tools" / name
        folder.mkdir(parents=True)
        text = (_HEAD + block + _TAIL).format(
            number=number,
            name=name,
            description=f"Search collection {number} and return the best matches",
            kind=kind,
            group=group,
        )
        (folder / "tool.yml").write_text(text)
        if kind == "command":
            script = folder / "run.sh"
            script.write_text('#!/bin/sh\necho "$@"\n')
            script.chmod(0o755)
        elif kind == "python":
            (folder / f"search_{number}.py").write_text(
                "def run(query, limit, order):\n    return {'results': [query][:limit]}\n"
            )
    return root

"""`glee show`: one tool in full."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from glee.definitions.placeholder import to_text
from glee.definitions.tool import FunctionExec, PackageExec, Tool
from glee.doors.cli.parameters import types_of
from glee.doors.cli.project import complete_tool, get_tool, json_option, load_project, root_option
from glee.doors.cli.screen import one_line, print_json, print_output


@click.command("show", epilog="Example: glee show find_text --json")
@click.argument("name", shell_complete=complete_tool)
@root_option
@json_option
def command(name: str, root: str | None, as_json: bool) -> None:
    """Show one tool in full: what it takes and gives, how it is run, what it may touch."""
    tool = get_tool(load_project(root), name)
    if as_json:
        print_json(describe(tool))
    else:
        print_output("\n".join(_lines(tool)))


def describe(tool: Tool) -> dict[str, Any]:
    """A tool as plain JSON."""
    execution = tool.exec
    if isinstance(execution, FunctionExec | PackageExec):
        exec_block: Any = {"target": execution.target, "timeout_ms": execution.timeout_ms}
    else:
        exec_block = msgspec.to_builtins(execution)
        exec_block.pop("type", None)
    return {
        "name": tool.name,
        "description": tool.description,
        "kind": tool.kind,
        "version": tool.version,
        "group": tool.group,
        "dangerous": tool.dangerous,
        "idempotent": tool.idempotent,
        "inputs": {"schema": tool.inputs},
        "outputs": msgspec.to_builtins(tool.outputs),
        "exec": {tool.kind: exec_block},
        "permissions": msgspec.to_builtins(tool.permissions),
        "approval": msgspec.to_builtins(tool.approval),
        "examples": msgspec.to_builtins(tool.examples),
        "origin": msgspec.to_builtins(tool.origin),
        "digest": tool.digest,
    }


def _lines(tool: Tool) -> list[str]:
    facts = {
        "output": tool.outputs.format,
        "group": tool.group,
        "network": _network(tool),
        "files": f"read {_paths(tool.permissions.fs.read)}, write {_paths(tool.permissions.fs.write)}",
        "secrets": ", ".join(tool.permissions.secrets) or "none",
        "approval": f"needed: {one_line(tool.approval.reason)}" if tool.approval.required else "not needed",
        "from": tool.origin.location,
        "trusted": "its package, by your config: it runs in Glee's own process" if tool.origin.trusted else None,
    }
    return [
        f"{tool.name}  {tool.kind}, version {tool.version}",
        tool.description.strip(),
        "",
        "inputs",
        *_inputs(tool),
        "",
        *(f"{name:12} {value}" for name, value in facts.items() if value),
        *_examples(tool),
    ]


def _inputs(tool: Tool) -> list[str]:
    properties = tool.inputs.get("properties") or {}
    required = tool.inputs.get("required") or []
    lines = []
    for name, schema in properties.items():
        schema = schema if isinstance(schema, dict) else {}
        kind = "|".join(sorted(types_of(schema, tool))) or "any"
        note = (
            "required"
            if name in required
            else f"default {_json(schema['default'])}"
            if "default" in schema
            else "optional"
        )
        about = [one_line(str(schema.get("description", "")))]
        if "enum" in schema:
            about.append(f"one of {', '.join(map(_json, schema['enum']))}")
        lines.append(f"  {name:12} {kind:8} {note:14} {'; '.join(filter(None, about))}".rstrip())
    return lines or ["  none"]


def _examples(tool: Tool) -> list[str]:
    lines = []
    for example in tool.examples:
        words = " ".join(_word(f"{key}={to_text(value)}") for key, value in example.params.items())
        lines.append(f"  glee run {_word(tool.name)} {words}".rstrip())
    return ["", "examples", *lines] if lines else []


def _network(tool: Tool) -> str:
    network = tool.permissions.network
    if isinstance(network, bool):
        return "open" if network else "none"
    return ", ".join(network.hosts)


def _paths(paths: tuple[str, ...]) -> str:
    return ", ".join(paths) or "nothing"


def _word(text: str) -> str:
    import shlex

    return shlex.quote(text)


def _json(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)

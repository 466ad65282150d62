from __future__ import annotations

from typing import Any

import click
import msgspec

from glee.compose import compose_catalog, compose_policy
from glee.definitions.call import Caller
from glee.definitions.decision import Deny
from glee.definitions.tool import FunctionExec, Tool
from glee.doors.cli.failures import fail
from glee.doors.cli.project import complete_tool, json_option, load_project, print_json, root_option
from glee.errors import Denied, NotFound


@click.command("show", epilog="Example: glee show find_text --json")
@click.argument("name", shell_complete=complete_tool)
@root_option
@json_option
def command(name: str, root: str | None, as_json: bool) -> None:
    """Show one tool in full: what it takes and gives, how it is run, what it may touch."""
    settings = load_project(root)
    catalog = compose_catalog(settings)
    tool = catalog.find(name) or catalog.find_by_api_name(name)
    verdict = compose_policy(settings).visible(tool, Caller(door="cli")) if tool else None
    if isinstance(verdict, Deny):
        raise Denied(verdict.reason)
    if tool is None:
        broken = catalog.find_broken(name)
        if broken is not None:
            for problem in broken.problems:
                fail(str(problem))
            raise click.exceptions.Exit(2)
        near = catalog.nearest(name, [summary.name for summary in catalog.summaries()])
        raise NotFound(f"there is no tool {name}" + (f"; did you mean {' or '.join(near)}?" if near else ""))
    if as_json:
        print_json(describe(tool))
    else:
        _print(tool)


def describe(tool: Tool) -> dict[str, Any]:
    """A tool as plain JSON."""
    execution = tool.exec
    if isinstance(execution, FunctionExec):
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


def _print(tool: Tool) -> None:
    click.echo(f"{click.style(tool.name, bold=True)}  {tool.kind}, version {tool.version}")
    click.echo(tool.description)
    click.echo(f"\ninputs\n{_inputs(tool)}")
    click.echo(f"\noutput       {tool.outputs.format}")
    click.echo(f"network      {_network(tool)}")
    click.echo(f"files        read {_paths(tool.permissions.fs.read)}, write {_paths(tool.permissions.fs.write)}")
    click.echo(f"secrets      {', '.join(tool.permissions.secrets) or 'none'}")
    click.echo(f"approval     {tool.approval.reason if tool.approval.required else 'not needed'}")
    click.echo(f"from         {tool.origin.location}")
    if tool.examples:
        click.echo("\nexamples")
        for example in tool.examples:
            words = " ".join(f"{key}={_word(value)}" for key, value in example.params.items())
            click.echo(f"  glee run {tool.name} {words}".rstrip())


def _inputs(tool: Tool) -> str:
    properties = tool.inputs.get("properties") or {}
    required = tool.inputs.get("required") or []
    lines = []
    for name, schema in properties.items():
        schema = schema if isinstance(schema, dict) else {}
        kind = schema.get("type", "any")
        kind = "|".join(kind) if isinstance(kind, list) else kind
        note = (
            "required" if name in required else f"default {schema['default']!r}" if "default" in schema else "optional"
        )
        lines.append(f"  {name:12} {kind:8} {note:14} {schema.get('description', '')}".rstrip())
    return "\n".join(lines) or "  none"


def _network(tool: Tool) -> str:
    network = tool.permissions.network
    if isinstance(network, bool):
        return "open" if network else "none"
    return ", ".join(network.hosts)


def _paths(paths: tuple[str, ...]) -> str:
    return ", ".join(paths) or "nothing"


def _word(value: Any) -> str:
    import shlex

    from glee.definitions.placeholder import to_text

    return shlex.quote(to_text(value))

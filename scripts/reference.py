"""Writes docs/reference from the program itself: commands, manifest fields, settings, errors, events."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import click
from msgspec import structs

from glee.definitions import event
from glee.doors.cli import COMMANDS, cli
from glee.doors.cli.failures import EXIT_STATUS
from glee.errors import CallError
from glee.schemas import load_schema

TARGET = Path(__file__).parents[1] / "docs" / "reference"
NOTE = "<!-- Written by `make docs`; do not edit. -->\n\n"

MEANINGS = {
    "not_found": "There is no such tool, vocabulary or artifact, or its definition is broken.",
    "invalid_input": "The input does not fit; `details.violations` lists `pointer`, `rule`, `message`, `hint`.",
    "denied": "A rule says no; `details.rule` names it and its file.",
    "approval_required": "A person must say yes, and nobody could be asked.",
    "rejected": "A person said no.",
    "secret_missing": "A required secret is not set; `details.missing` names it.",
    "sandbox_unavailable": "What the manifest promises cannot be enforced here.",
    "blocked": "The call tried to reach what it may not, and was stopped.",
    "timeout": "Time ran out; processes and requests were ended, a plain function was left behind.",
    "cancelled": "The caller went away; processes and requests were ended.",
    "exit_code": "The program ended with a code that is not ok; `details` has `exit_code`, `stderr` and `stdout`.",
    "exception": "The function raised; `details` has `type` and `message`.",
    "http_status": "The server answered with a status other than 2xx; `details` has `status` and `body`.",
    "network": "No answer: no connection, unknown host, bad certificate.",
    "too_large": "The tool produced, or the server sent, more than the limit.",
    "unavailable": "Something the call needs is not there: a program, an interpreter, a claimed key.",
    "internal": "Glee itself failed, or could not write its record; the operator's log says more.",
}


def write_cli() -> str:
    parts = ["# Commands\n"]
    context = click.Context(cli, info_name="glee", max_content_width=100, help_option_names=["-h", "--help"])
    parts.append(f"```text\n{cli.get_help(context)}\n```\n")
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, max_content_width=100, terminal_width=100)
        parts.append(f"## glee {name}\n\n```text\n{command.get_help(inner)}\n```\n")
    return "\n".join(parts)


def describe_fields(schema: dict[str, Any], root: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """A row for each field, from the schema's own descriptions."""
    schema = resolve(schema, root)
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        field = resolve(field, root)
        path = f"{prefix}{name}"
        need = "yes" if name in required else ""
        yield f"| `{path}` | {kind_of(field)} | {need} | {field.get('description', '')} |"
        yield from describe_fields(field, root, f"{path}.")
        if isinstance(field.get("additionalProperties"), dict):
            yield from describe_fields(field["additionalProperties"], root, f"{path}.NAME.")
        if isinstance(field.get("items"), dict):
            yield from describe_fields(field["items"], root, f"{path}[].")
        if isinstance(field.get("then"), dict):
            yield from describe_fields(field["then"], root, f"{path}.")


def resolve(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    return root["$defs"][reference.rsplit("/", 1)[-1]] if reference else schema


def kind_of(field: dict[str, Any]) -> str:
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    kind = field.get("type") or field.get("else", {}).get("type") or "any"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def write_fields(name: str, title: str) -> str:
    schema = load_schema(name)
    rows = "\n".join(describe_fields(schema, schema))
    return f"# {title}\n\n{schema['description']}\n\n| field | type | required | meaning |\n|---|---|---|---|\n{rows}\n"


def write_errors() -> str:
    rows = [
        f"| `{kind.code}` | {EXIT_STATUS[kind.code]} | {MEANINGS[kind.code]} |" for kind in CallError.__subclasses__()
    ]
    table = "\n".join(rows)
    return (
        "# Errors\n\n`error.code` of a result, and the exit status `glee run` has with it. A broken config "
        f"or a missing project also ends with 2.\n\n| code | exit status | meaning |\n|---|---|---|\n{table}\n"
    )


def write_events() -> str:
    parts = ["# Events\n\nEvery event has `call_id`, `tool` and `at` (seconds since the epoch).\n"]
    for kind in get_args(event.Event):
        hints = get_type_hints(kind)
        own = [field for field in structs.fields(kind) if field.name not in ("call_id", "tool", "at")]
        fields = ", ".join(f"`{field.name}`: {show_type(hints[field.name])}" for field in own) or "none of its own"
        parts.append(f"## {kind.__name__}\n\n{(kind.__doc__ or '').strip()}\n\nFields: {fields}.\n")
    return "\n".join(parts)


def show_type(hint: Any) -> str:
    if get_args(hint):
        return " or ".join(show_type(argument) for argument in get_args(hint))
    return "nothing" if hint is type(None) else f"{hint.__name__}"


PAGES = {
    "cli.md": write_cli,
    "manifest.md": lambda: write_fields("tool", "Manifest fields"),
    "config.md": lambda: write_fields("config", "Settings"),
    "errors.md": write_errors,
    "events.md": write_events,
}


def main() -> None:
    """With `--check`, says whether the pages are up to date instead of writing them."""
    stale = []
    for name, write in PAGES.items():
        text = NOTE + write()
        page = TARGET / name
        if "--check" in sys.argv:
            if not page.exists() or page.read_text() != text:
                stale.append(name)
        else:
            page.write_text(text)
    if stale:
        sys.exit(f"docs/reference is not up to date ({', '.join(stale)}); run `make docs`")


if __name__ == "__main__":
    main()

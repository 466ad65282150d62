"""What most commands begin with: the project they are in, and options they share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from glee import config
from glee.config import Settings

F = TypeVar("F", bound=Callable[..., Any])


def load_project(root: str | None = None) -> Settings:
    """Settings of the project here, above, or at the root given."""
    return config.load_settings(config.get_root(Path(root) if root else None))


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def root_option(function: F) -> F:
    return click.option(
        "--root",
        metavar="PATH",
        type=click.Path(exists=True, file_okay=False),
        help="A folder in the project.",
    )(function)


def caller_options(function: F) -> F:
    for name, text in (
        ("session", "The session the call belongs to."),
        ("skill", "The skill in whose context it is made."),
        ("provider", "The model provider behind the caller."),
        ("agent", "The agent on whose behalf it is made."),
    ):
        function = click.option(f"--{name}", metavar="NAME", help=text)(function)
    return function


def complete_tool(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Tool names, for shell completion. Silent when there is no project."""
    from glee.compose import compose_catalog
    from glee.errors import GleeError

    try:
        summaries = compose_catalog(load_project()).summaries()
    except GleeError:
        return []
    return [summary.name for summary in summaries if summary.name.startswith(incomplete)]


def print_json(value: Any) -> None:
    import json

    from glee.definitions.json_text import encode_json

    click.echo(json.dumps(json.loads(encode_json(value)), indent=2, ensure_ascii=False))

"""What most commands begin with: the project they are in, its tools, and options they share."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from glee import config
from glee.config import Settings
from glee.errors import Denied, GleeError, NotFound, ProjectNotFound

if TYPE_CHECKING:
    from glee.catalog.source import Summary
    from glee.definitions.tool import Tool

_PLAIN = re.compile(r"[A-Za-z0-9_.:-]+")
"""Names that a shell takes as they are; what it completes is not always quoted."""
F = TypeVar("F", bound=Callable[..., Any])


def load_project(root: str | None = None) -> Settings:
    """Settings of the project here, above, or at the root given."""
    return config.load_settings(config.get_root(_find_start(root)))


def load_any(root: str | None = None) -> Settings:
    """The same, and where there is no project, the settings that hold without one."""
    return config.load_settings(config.find_root(_find_start(root)))


def _find_start(root: str | None) -> Path:
    try:
        return Path(root) if root else Path.cwd()
    except FileNotFoundError:
        raise ProjectNotFound("the folder you are in no longer exists; go to one that does") from None


def get_tool(settings: Settings, name: str) -> Tool:
    """One tool by its name or API name, if a person at the terminal may see it; else why not."""
    from glee.catalog.source import Summary
    from glee.compose import compose_catalog
    from glee.errors import DefinitionError

    catalog = compose_catalog(settings)
    tool = catalog.find(name) or catalog.find_by_api_name(name)
    _check_visible(settings, tool or Summary(name=name))
    if tool is not None:
        return tool
    broken = catalog.find_broken(name)
    if broken is not None:
        problems = "".join(f"\n  {problem}" for problem in broken.problems)
        raise DefinitionError(f"the definition of {name} is broken:{problems}")
    raise unknown_tool(name, (summary.name for summary in visible(settings, catalog.summaries())))


def visible(settings: Settings, summaries: Iterable[Summary]) -> list[Summary]:
    """Those a person at the terminal may know of."""
    from glee.compose import compose_policy
    from glee.definitions.call import Caller
    from glee.definitions.decision import Deny

    policy, caller = compose_policy(settings), Caller(door="cli")
    return [summary for summary in summaries if not isinstance(policy.visible(summary, caller), Deny)]


def _check_visible(settings: Settings, subject: Tool | Summary) -> None:
    from glee.compose import compose_policy
    from glee.definitions.call import Caller
    from glee.definitions.decision import Deny

    verdict = compose_policy(settings).visible(subject, Caller(door="cli"))
    if isinstance(verdict, Deny):
        raise Denied(verdict.reason)


def unknown_tool(name: str, known: Iterable[str]) -> NotFound:
    import difflib

    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "run `glee list` to see what there is"
    return NotFound(f"there is no tool {name!r}; {hint}")


def near(path: Path) -> str:
    """A path as it is seen from where the person stands, if that is shorter."""
    try:
        return min(os.path.relpath(path), str(path), key=len)
    except OSError:
        return str(path)


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

    try:
        settings = load_project(ctx.params.get("root"))
        summaries = visible(settings, compose_catalog(settings).summaries())
    except (GleeError, OSError):
        return []
    names = (summary.name for summary in summaries if not summary.broken)
    return [name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name)]

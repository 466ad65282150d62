"""`glee learn`: the least permissions a tool needs."""

from __future__ import annotations

import difflib
import os
import sys
from pathlib import Path
from typing import Any

import click

from glee.approval import Always, Approver
from glee.definitions.hosts import parse_hosts
from glee.definitions.tool import Tool
from glee.doors.cli.failures import fail, warn
from glee.doors.cli.interruption import end_as_by_ctrl_c
from glee.doors.cli.parameters import ask_missing, read_arguments
from glee.doors.cli.person import TerminalApprover
from glee.doors.cli.project import complete_tool, get_tool, json_option, load_project, near, root_option
from glee.doors.cli.screen import one_line, print_json, printable
from glee.errors import DefinitionError
from glee.formats.permissions_text import replace_permissions, to_mapping
from glee.learning.grants import Allowed
from glee.learning.learner import Learner, Learnt


@click.command("learn", epilog="Example: glee learn find_text text=TODO --allow-read src")
@click.argument("name", shell_complete=complete_tool)
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--params", metavar="JSON|@FILE|-", help="Arguments of one call as JSON, instead of the examples.")
@click.option("--allow-read", "read", multiple=True, metavar="PATH", help="What it may read. Default: the project.")
@click.option("--allow-write", "write", multiple=True, metavar="PATH", help="What it may write. Default: nothing.")
@click.option("--allow-host", "hosts", multiple=True, metavar="HOST", help="What it may reach. Default: nothing.")
@click.option("--write", "apply", is_flag=True, help="Write the permissions into the manifest.")
@click.option("--yes", is_flag=True, help="Answer yes to the approvals that its calls need.")
@root_option
@json_option
def command(
    name: str,
    pairs: tuple[str, ...],
    params: str | None,
    read: tuple[str, ...],
    write: tuple[str, ...],
    hosts: tuple[str, ...],
    apply: bool,
    yes: bool,
    root: str | None,
    as_json: bool,
) -> None:
    """Find the least permissions that a tool needs.

    Runs the examples of the manifest, or one call with the arguments given, in a jail that notes what they try to
    touch, and prints what they need as a change to the manifest. It may do no more than you allow here, whatever
    its manifest says. The exit status is 1 if a call does not succeed with what was allowed.
    """
    end_as_by_ctrl_c()
    settings = load_project(root)
    tool = get_tool(settings, name)
    allowed = _read_allowed(settings.root, read, write, hosts)
    approver: Approver = Always() if yes else TerminalApprover()
    learner = Learner(settings, tool, allowed, approver=approver, tell=_tell, tell_operator=lambda _: None)
    learnt = learner.learn(_find_calls(tool, pairs, params))
    _clear()
    change = _Change(tool, learnt)
    if as_json:
        print_json({**change.to_json(), "written": apply and learnt.ok and change.apply()})
    else:
        _report(tool, learnt, change, apply=apply)
    if not learnt.ok:
        raise click.exceptions.Exit(1)


def _read_allowed(root: Path, read: tuple[str, ...], write: tuple[str, ...], hosts: tuple[str, ...]) -> Allowed:
    try:
        parse_hosts(hosts)
    except ValueError as error:
        raise click.UsageError(f"--allow-host: {error}") from error
    here = Path.cwd()

    def resolve(flag: str, path: str) -> str:
        real = Path(os.path.realpath(here / path))
        if not real.exists():
            raise click.UsageError(f"{flag}: there is no {path}; make it first, or allow the folder it will be in")
        return str(real)

    return Allowed(
        read=tuple(resolve("--allow-read", path) for path in read) or (str(root.resolve()),),
        write=tuple(resolve("--allow-write", path) for path in write),
        hosts=hosts,
    )


def _find_calls(tool: Tool, pairs: tuple[str, ...], params: str | None) -> list[dict[str, Any]]:
    if pairs or params is not None:
        return [ask_missing(read_arguments(pairs, params, tool), tool)]
    if tool.examples:
        return [example.params for example in tool.examples]
    return [ask_missing({}, tool)]


class _Change:
    """From the manifest as it is to the manifest with what was learnt."""

    def __init__(self, tool: Tool, learnt: Learnt) -> None:
        self._learnt = learnt
        self._file = Path(tool.origin.location)
        self.reason: str | None = None
        self._before = self._after = ""
        try:
            if tool.origin.source != "project":
                raise DefinitionError(f"{tool.name} is not defined in a manifest of this project")
            self._before = self._file.read_bytes().decode()
            self._after = replace_permissions(self._before, learnt.permissions)
        except (DefinitionError, OSError, UnicodeDecodeError) as error:
            self.reason = str(error)

    @property
    def diff(self) -> list[str]:
        before, after, name = self._before.splitlines(), self._after.splitlines(), near(self._file)
        return list(difflib.unified_diff(before, after, name, name, lineterm=""))

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self._learnt.ok,
            "permissions": to_mapping(self._learnt.permissions),
            "diff": "\n".join(self.diff),
            "not_allowed": list(self._learnt.not_allowed),
            "errors": [result.error for result in self._learnt.results if result.error],
        }

    def apply(self) -> bool:
        """Whole or not at all."""
        if self.reason is not None or self._before == self._after:
            return False
        draft = self._file.with_name(f".{self._file.name}.{os.getpid()}.draft")
        draft.write_bytes(self._after.encode())
        draft.chmod(self._file.stat().st_mode)
        draft.replace(self._file)
        return True


def _report(tool: Tool, learnt: Learnt, change: _Change, *, apply: bool) -> None:
    for sentence in learnt.not_allowed:
        warn(sentence)
    for result in learnt.results:
        if result.error:
            fail(f"{tool.name}: {one_line(result.error.message)}")
    if not learnt.ok:
        if apply:
            warn("not written: the calls do not succeed with what was allowed")
        return
    if change.reason is not None:
        warn(change.reason)
        print_json({"permissions": to_mapping(learnt.permissions)})
        return
    for line in change.diff or ["the manifest grants exactly what is needed"]:
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        click.echo(click.style(printable(line), fg=colour))
    if apply and change.apply():
        click.echo("written")


def _tell(text: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r\033[K{printable(text)[:100]}", nl=False, err=True)


def _clear() -> None:
    if sys.stderr.isatty():
        click.echo("\r\033[K", nl=False, err=True)

"""`glee doctor`: what this machine can enforce, tried and shown."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

import click

from glee.doctor.examination import examine
from glee.doctor.report import Attempt, Report
from glee.doors.cli.failures import warn
from glee.doors.cli.interruption import end_as_by_ctrl_c
from glee.doors.cli.project import json_option, load_any, root_option
from glee.doors.cli.screen import draw_line, one_line, print_json
from glee.sandbox.remedies import LAYERS, LIMITS

_STATES: Final = {"answers": "answers", "silent": "does not answer", "found": "is there", "missing": "is not there"}


@click.command("doctor", epilog="Example: glee doctor --json")
@click.option("--without", multiple=True, type=click.Choice(LAYERS), help="Try as if this layer were missing.")
@root_option
@json_option
def command(without: tuple[str, ...], root: str | None, as_json: bool) -> None:
    """Show what this machine can enforce: escapes are tried from inside real jails.

    For each attempt: whether it was held, and by what alone. Then what to install or set for the rest. With or
    without a project. The exit status is 1 if the level is less than the settings ask for, if something that
    was promised was not held, or if the sandbox is off.
    """
    end_as_by_ctrl_c()
    settings = load_any(root)
    if settings.sandbox.mode == "off":
        warn("sandbox.mode is OFF in your config: no tool is held here; this shows what could be")
    try:
        report = examine(settings, without=frozenset(without), tell=_draw)
    finally:
        _draw("")
    if as_json:
        print_json(report)
    else:
        click.echo("\n".join(to_lines(report)))
    if not report.ok:
        raise click.exceptions.Exit(1)


def _draw(text: str) -> None:
    if sys.stderr.isatty():
        draw_line(text)


def to_lines(report: Report) -> Iterator[str]:
    yield _line("mode", click.style("OFF", fg="red", bold=True) if report.mode == "off" else report.mode)
    yield _line("level", f"{report.level}: {report.meaning}")
    yield _line("minimum", report.minimum)
    if report.limits:
        yield _line("limits", f"{report.limits}: {LIMITS[report.limits]}")
    yield _line("layers", ", ".join(_name_layers(report)) or "none")
    for reason, names in _group_missing(report).items():
        yield _line("", f"{click.style('missing', fg='yellow')}: {', '.join(names)}: {one_line(reason)}")
    yield _line("engines", ", ".join(f"{name} {_STATES[state]}" for name, state in report.engines.items()))
    yield ""
    yield from _table(report.trials)
    for note in report.notes:
        yield f"{click.style('note', fg='yellow')}: {one_line(note)}"
    word = click.style("ok", fg="green", bold=True) if report.ok else click.style("FAILED", fg="red", bold=True)
    yield f"{word}: {one_line(report.verdict)}"
    for remedy in report.remedies:
        yield f"{click.style('mend', fg='green')}: {one_line(remedy)}"


def _line(name: str, value: str) -> str:
    return f"{name:9} {value}"


def _name_layers(report: Report) -> Iterator[str]:
    for name, layer in report.layers.items():
        if layer.there:
            yield name if layer.version is None else f"{name} version {layer.version}"


def _group_missing(report: Report) -> dict[str, list[str]]:
    """Many are often missing for one reason."""
    reasons: dict[str, list[str]] = {}
    for name, layer in report.layers.items():
        if not layer.there:
            reasons.setdefault(layer.reason, []).append(name)
    return reasons


def _table(attempts: tuple[Attempt, ...]) -> Iterator[str]:
    if not attempts:
        return
    names = max(len(attempt.name) for attempt in attempts)
    yield click.style(f"{'':12}  {'tried from inside a jail':{names}}        what holds it, each alone", dim=True)
    kind = ""
    for attempt in attempts:
        shown = attempt.kind if attempt.kind != kind else ""
        kind = attempt.kind
        yield f"{shown:12}  {attempt.name:{names}}  {_show_outcome(attempt)}".rstrip()
    yield ""


def _show_outcome(attempt: Attempt) -> str:
    if attempt.held:
        return f"{click.style('held', fg='green')}  {', '.join(attempt.by)}"
    if attempt.promised:
        return f"{click.style('NOT HELD', fg='red', bold=True)}  {one_line(attempt.answer)}"
    return f"{click.style('not held', fg='yellow')}, which is not promised here"

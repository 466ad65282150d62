"""The third table: a catalog of ten thousand tools, listed, linted and called."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.commands import GLEE, SETTLE, command_turn, own_environment
from bench.contest import Contestant, hold_contest
from bench.manifests import write_project
from bench.measure import Plan, Turn, interleave
from bench.progress import tell
from bench.table import Row, Table, judge

_MANY: Final = 10_000
_FEW: Final = 10
_LINTED: Final = 1_000
_SAME: Final = 1.2
"""A ratio within which two calls cost the same: less than that is noise."""


def measure_catalog(plan: Plan, *, repeats: int) -> Table:
    with tempfile.TemporaryDirectory(prefix="glee-bench-") as folder:
        base = Path(folder)
        tell(f"catalog: writing {_MANY:,} manifests, and {_LINTED:,} to lint")
        few, linted, many = (write_project(base / str(count), count) for count in (_FEW, _LINTED, _MANY))
        time.sleep(SETTLE)
        env = own_environment(base / "home")
        rows = [
            _cold(many, env, Plan(rounds=repeats)),
            _warm(many, env, Plan(rounds=5 * repeats)),
            _lint(linted, env, Plan(rounds=repeats + 2)),
            *_calls(few, many, env, plan),
        ]
    notes = [
        "http, command and Python manifests in turn, some 65 lines each. Cold: without a cache of Glee's; the files",
        "themselves are in the kernel's memory. Calls: of one function, with as many others registered as there are",
        f"manifests, and everything listed once before. Ratio: to a call among {_FEW} tools.",
    ]
    return Table(title=f"{_MANY:,} tools", rows=rows, notes=notes)


def _cold(root: Path, env: dict[str, str], plan: Plan) -> Row:
    tell("catalog: listing without a cache")
    listing = _command("list", root, env)

    def turn() -> Sequence[float]:
        shutil.rmtree(env["XDG_CACHE_HOME"], ignore_errors=True)
        return listing()

    return _row(f"glee list of {_MANY:,}, cold", turn, plan, limit=10.0)


def _warm(root: Path, env: dict[str, str], plan: Plan) -> Row:
    tell("catalog: listing from the cache")
    return _row(f"glee list of {_MANY:,}, warm", _command("list", root, env), plan, limit=0.4)


def _lint(root: Path, env: dict[str, str], plan: Plan) -> Row:
    tell(f"catalog: lint of {_LINTED:,}")
    return _row(f"glee lint of {_LINTED:,}", _command("lint", root, env), plan, limit=3.0)


def _command(name: str, root: Path, env: dict[str, str]) -> Turn:
    run = command_turn([GLEE, name], env=env, cwd=root)
    return lambda: [milliseconds / 1000 for milliseconds in run()]


def _row(name: str, turn: Turn, plan: Plan, *, limit: float) -> Row:
    outcome = interleave({name: turn}, plan)[name]
    if isinstance(outcome, str):
        return Row(name=name, problem=outcome, own=True)
    met = judge(outcome.median, limit)
    return Row(name=name, figure=outcome, unit="s", target=f"< {limit:g} s", met=met, own=True)


def _calls(few: Path, many: Path, env: dict[str, str], plan: Plan) -> list[Row]:
    tell("catalog: calls among few tools and among many")
    names = (f"one call among {_FEW} tools", f"one call among {_MANY:,} tools")
    roots = ((_FEW, few), (_MANY, many))
    outcomes = hold_contest(
        {name: _caller(count, root, env, plan) for name, (count, root) in zip(names, roots, strict=True)}, plan
    )
    first, second = (outcomes[name] for name in names)
    if isinstance(first, str) or isinstance(second, str):
        return [Row(name=name, problem=str(outcomes[name]), own=True) for name in names]
    ratio = second.median / first.median
    target, met = f"≤ {_SAME}×", judge(ratio, _SAME)
    return [
        Row(name=names[0], figure=first, unit="µs", own=True),
        Row(name=names[1], figure=second, unit="µs", ratio=ratio, target=target, met=met, own=True),
    ]


def _caller(count: int, root: Path, env: dict[str, str], plan: Plan) -> Contestant:
    options = (str(count), str(root), env["XDG_CACHE_HOME"])
    return Contestant(python=Path(sys.executable), module="glee_call", way="sync", options=options, calls=plan.calls)

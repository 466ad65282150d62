"""The fourth table: a program as a tool, beside the bare start of the same program."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from bench.contest import Contestant, hold_contest
from bench.measure import Figure, Plan
from bench.progress import tell
from bench.table import Row, Table, judge

_BASES: Final = {"true": "subprocess.run of /bin/true", "python": "subprocess.run of python -c pass"}
_ENTRIES: Final = {
    _BASES["true"]: ("sync-bare", "true"),
    "command tool /bin/true": ("sync", "true"),
    "command tool /bin/true, awaited": ("awaited", "true"),
    _BASES["python"]: ("sync-bare", "python"),
    "Python tool that does nothing": ("sync", "python"),
}
_LIMITS: Final = {"command tool /bin/true": 1.5}


def measure_process(plan: Plan) -> Table:
    tell(f"processes: up to {plan.rounds} rounds of {plan.calls} calls each")
    outcomes = hold_contest({name: _contestant(*entry, plan) for name, entry in _ENTRIES.items()}, plan)
    rows = [_row(name, outcomes) for name in _ENTRIES]
    notes = ["With the sandbox off. Ratio: to the bare start of the same program, its output captured."]
    return Table(title="A program as a tool", rows=rows, notes=notes)


def _contestant(way: str, program: str, plan: Plan) -> Contestant:
    """An interpreter takes as long as thirty small programs, so it has one call in a round."""
    calls = plan.calls if program == "true" else 1
    return Contestant(python=Path(sys.executable), module="process_call", way=way, options=(program,), calls=calls)


def _row(name: str, outcomes: dict[str, Figure | str]) -> Row:
    outcome, base = outcomes[name], outcomes[_BASES[_ENTRIES[name][1]]]
    if isinstance(outcome, str):
        return Row(name=name, problem=outcome, own=True)
    if isinstance(base, str) or name in _BASES.values():
        return Row(name=name, figure=outcome, unit="µs", own=True)
    ratio, limit = outcome.median / base.median, _LIMITS.get(name)
    if limit is None:
        return Row(name=name, figure=outcome, unit="µs", ratio=ratio, own=True)
    met = judge(ratio, limit)
    return Row(name=name, figure=outcome, unit="µs", ratio=ratio, target=f"≤ {limit}×", met=met, own=True)

"""The first table: one call of `add(a, b)` in this process, through all that each library does for a call."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.contest import Contestant, hold_contest
from bench.measure import Figure, Plan
from bench.peers import Peer
from bench.progress import tell
from bench.table import Row, Table, judge
from glee.version import VERSION

_WAYS: Final = {
    "sync": "plain function, called without await",
    "awaited": "plain function, awaited",
    "async": "async function, awaited",
}
_GLEE_LIMITS: Final = {"sync": 50.0, "sync-unrecorded": 15.0, "awaited": 50.0, "async": 50.0}
"""Microseconds that Glee may take."""
_MODULES: Final = {
    "fastmcp": "fastmcp_call",
    "langchain-core": "langchain_call",
    "pydantic-ai-slim": "pydantic_ai_call",
    "mcp": "mcp_call",
}
PEERS: Final = frozenset(_MODULES)
_FIVE_TIMES: Final = {  # the peers that must take at least five times as long
    "sync": ("fastmcp", "langchain-core", "pydantic-ai-slim"),
    "awaited": ("fastmcp", "langchain-core"),
    "async": ("fastmcp", "langchain-core"),
}
_NOTES: Final = [
    "Glee: validation, policy, events to one listener, and an audit line written before the run and after it.",
    "Peers: their own tool call with its validation, without a transport; none of them keeps a record.",
    "Ratio: to Glee in the same way, record included. For a library that has no call without await, an event",
    "loop is kept and each call is run on it to its end.",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One row to be: who calls, and in which way."""

    label: str
    way: str
    python: Path
    module: str
    peer: Peer | None = None


def measure_calls(peers: dict[str, Peer], plan: Plan) -> Table:
    entries = [*_glee(), *_peers(peers)]
    contestants = {
        entry.label: Contestant(python=entry.python, module=entry.module, way=entry.way, calls=plan.calls)
        for entry in entries
        if entry.peer is None or entry.peer.problem is None
    }
    tell(f"calls: {len(contestants)} contestants, up to {plan.rounds} rounds of {plan.calls} calls each")
    outcomes = hold_contest(contestants, plan)
    bases = {entry.way: outcomes[entry.label] for entry in entries if entry.peer is None}
    rows = [_row(entry, outcomes, bases[entry.way]) for entry in entries]
    return Table(title="One call in process: add(a, b)", rows=rows, notes=_NOTES)


def _glee() -> list[Entry]:
    texts = {**_WAYS, "sync-unrecorded": "the same without the audit write"}
    return [
        Entry(label=f"Glee {VERSION}, {texts[way]}", way=way, python=Path(sys.executable), module="glee_call")
        for way in _GLEE_LIMITS
    ]


def _peers(peers: dict[str, Peer]) -> list[Entry]:
    """Way by way, so that what is compared stands together."""
    present = [peers[name] for name in _MODULES if name in peers]
    return [
        Entry(label=f"{peer}, {text}", way=way, python=peer.python, module=_MODULES[peer.name], peer=peer)
        for way, text in _WAYS.items()
        for peer in present
    ]


def _row(entry: Entry, outcomes: dict[str, Figure | str], base: Figure | str) -> Row:
    if entry.peer is not None and entry.peer.problem:
        return Row(name=entry.label, problem=entry.peer.problem)
    outcome = outcomes[entry.label]
    if isinstance(outcome, str):
        return Row(name=entry.label, problem=outcome, own=entry.peer is None)
    if entry.peer is None:
        limit = _GLEE_LIMITS[entry.way]
        met = judge(outcome.median, limit)
        return Row(name=entry.label, figure=outcome, unit="µs", target=f"≤ {limit:g} µs", met=met, own=True)
    ratio = outcome.median / base.median if isinstance(base, Figure) else None
    if entry.peer.name not in _FIVE_TIMES[entry.way]:
        return Row(name=entry.label, figure=outcome, unit="µs", ratio=ratio)
    met = judge(ratio, 5, at_least=True)
    return Row(name=entry.label, figure=outcome, unit="µs", ratio=ratio, target="≥ 5×", met=met)

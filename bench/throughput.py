"""How many held runs a second one process makes, with one caller and with many."""

from __future__ import annotations

import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from bench.measure import Figure, Plan
from bench.table import Row
from glee.engine import Engine
from glee.testing import Project, manifest

_CALLERS: Final = (1, 8, 64)
_CALLS: Final = 128
"""In a round, of all callers together."""


def measure_throughput(plan: Plan) -> list[Row]:
    rounds: dict[int, list[float]] = {callers: [] for callers in _CALLERS}
    with tempfile.TemporaryDirectory(prefix="glee-bench-") as folder:
        project = Project(Path(folder))
        project.add_tool("true", manifest("true", "command", {"entrypoint": "/bin/true"}))
        with project.open() as engine:
            _run(engine, 8)
            for _ in range(max(3, plan.rounds // 20)):
                for callers in _CALLERS:
                    rounds[callers].append(_run(engine, callers))
    return [_row(callers, figures) for callers, figures in rounds.items()]


def _run(engine: Engine, callers: int) -> float:
    """Calls a second."""
    began = time.perf_counter()
    with ThreadPoolExecutor(callers) as pool:
        results = list(pool.map(lambda _: engine.call_sync("true").ok, range(_CALLS)))
    if not all(results):
        raise RuntimeError("a call failed")
    return _CALLS / (time.perf_counter() - began)


def _row(callers: int, figures: list[float]) -> Row:
    figure = Figure(median=statistics.median(figures), low=min(figures), high=max(figures), count=len(figures))
    return Row(name=f"held runs with {callers} caller{'' if callers == 1 else 's'}", figure=figure, unit="/s", own=True)

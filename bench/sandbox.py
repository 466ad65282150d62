"""The fifth table: what it costs to hold one run, beside other ways to do so; and how many runs a second there are."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from bench.child import Child
from bench.commands import GLEE, own_environment, time_command
from bench.docker import IMAGE, own_docker
from bench.jailers import set_up_jailers
from bench.measure import ContestantFailed, Figure, Plan, Turn, interleave
from bench.progress import tell
from bench.table import Row, Table, judge
from bench.throughput import measure_throughput
from glee.sandbox.launcher import find_program

_BASE: Final = "subprocess.run of /bin/true"
_C: Final = "command tool, all layers, C launcher"
_PYTHON: Final = "command tool, all layers, Python launcher"
_OWN: Final[dict[str, tuple[str, ...]]] = {
    _C: ("true", "c"),
    _PYTHON: ("true", "python"),
    "Python function of a warm tool": ("python", "any"),
    "command tool, its first call": ("cold", "any"),
    "Python tool, its first call": ("cold-python", "any"),
    "Python tool that asks a named host, to its answer": ("hosts", "any"),
}
_CONTAINER: Final = "command tool in a container"
_DOCKER: Final = "docker run"
_RUN: Final = "glee run, always cold"
_LIMITS: Final = {_C: 1.5, _PYTHON: 2.7, "Python function of a warm tool": 2.0}
_QUICK: Final = (_BASE, _C, _PYTHON, "Python function of a warm tool", "bubblewrap")
"""Measured in rounds of their own: the others would leave them cold caches."""
_FASTER: Final = {_C: 3.0, _PYTHON: 1.6}
"""How many times faster than bubblewrap."""


def measure_sandbox(plan: Plan, *, peers: bool) -> Table:
    tell(f"sandbox: up to {plan.rounds} rounds")
    jailers = set_up_jailers(install=peers) if peers else {}
    problems: dict[str, str] = {name: reason for name, reason in jailers.items() if isinstance(reason, str)}
    with ExitStack() as stack:
        turns: dict[str, Turn] = {}
        for name, options in _entries().items():
            try:
                turns[name] = _start(name, options, stack)
            except ContestantFailed as error:
                problems[name] = str(error)
        turns[_RUN] = _glee_run(stack)
        if peers:
            _add_docker(turns, problems, stack)
        turns |= {name: _time(run) for name, run in jailers.items() if not isinstance(run, str)}
        quick = {name: turn for name, turn in turns.items() if name in _QUICK}
        slow = {name: turn for name, turn in turns.items() if name not in _QUICK}
        beside = interleave({_BASE: turns[_BASE], **slow}, plan)
        outcomes: dict[str, Figure | str] = {**problems, **beside, **interleave(quick, plan)}
    last = (_CONTAINER, *jailers, _DOCKER) if peers else ()
    names = (*_entries(), _RUN, *last)
    rows = [_row(name, outcomes, outcomes[_BASE] if name in _QUICK else beside[_BASE]) for name in names]
    rows += measure_throughput(plan)
    notes = [
        "Ratio: to the bare start of /bin/true, in the same rounds; quick and slow ones have rounds of their",
        "own. One call in a round, so that a jail waits for it; back to back it is the throughput, of one process. All",
        "layers: namespaces, Landlock, filter, limits, control group where there is one. bubblewrap: namespaces alone.",
    ]
    return Table(title="One run, held", rows=rows, notes=notes)


def _entries() -> dict[str, tuple[str, ...]]:
    own = {name: options for name, options in _OWN.items() if name != _C or find_program() is not None}
    return {_BASE: (), **own}


def _start(name: str, options: tuple[str, ...], stack: ExitStack) -> Turn:
    child = Child(Path(sys.executable), "jail_call", "sync" if options else "sync-bare", *options)
    stack.callback(child.close)
    child.wait_ready()
    return lambda: child.run(1)


def _add_docker(turns: dict[str, Turn], problems: dict[str, str], stack: ExitStack) -> None:
    try:
        host = stack.enter_context(own_docker())
        turns[_CONTAINER] = _start(_CONTAINER, ("container", host), stack)
        command = ["docker", "-H", host, "run", "--rm", "--network=none", IMAGE, "/bin/true"]
        turns[_DOCKER] = _time(lambda: subprocess.run(command, capture_output=True, check=True, timeout=60))
    except ContestantFailed as error:
        problems |= dict.fromkeys({_CONTAINER, _DOCKER} - turns.keys(), str(error))


def _time(run: Callable[[], object]) -> Turn:
    def turn() -> list[float]:
        began = time.perf_counter()
        try:
            run()
        except Exception as error:
            raise ContestantFailed(str(error)) from error
        return [(time.perf_counter() - began) * 1e6]

    return turn


def _glee_run(stack: ExitStack) -> Turn:
    import tempfile

    from glee.testing import Project, manifest

    base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="glee-bench-")))
    project = Project(base)
    project.add_tool("true", manifest("true", "command", {"entrypoint": "/bin/true"}))
    env = own_environment(base)
    return lambda: [time_command([GLEE, "run", "true"], env=env, cwd=project.root) * 1000]


def _row(name: str, outcomes: dict[str, Figure | str], base: Figure | str) -> Row:
    outcome = outcomes[name]
    own = name in _OWN or name in (_BASE, _RUN)
    if isinstance(outcome, str):
        return Row(name=name, problem=outcome, own=own)
    if isinstance(base, str) or name == _BASE:
        return Row(name=name, figure=outcome, unit="µs", own=own)
    ratio = outcome.median / base.median
    if name not in _LIMITS:
        return Row(name=name, figure=outcome, unit="µs", ratio=ratio, own=own)
    target, met = f"≤ {_LIMITS[name]}×", judge(ratio, _LIMITS[name])
    peer = outcomes.get("bubblewrap")
    if name in _FASTER and isinstance(peer, Figure):
        gain = peer.median / outcome.median
        target += f", bubblewrap ≥ {_FASTER[name]}× (is {gain:.1f}×)"
        met = bool(met and judge(gain, _FASTER[name], at_least=True))
    return Row(name=name, figure=outcome, unit="µs", ratio=ratio, target=target, met=met, own=True)

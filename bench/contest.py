"""A contest: every contestant an interpreter of its own, started once, warmed up, and asked in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.child import Child
from bench.measure import ContestantFailed, Figure, Plan, Turn, interleave


@dataclass(frozen=True, kw_only=True, slots=True)
class Contestant:
    """A module of `bench.contestants`, the way it makes its calls, and how many it makes in a round."""

    python: Path
    module: str
    way: str
    options: tuple[str, ...] = ()
    calls: int


def hold_contest(contestants: Mapping[str, Contestant], plan: Plan) -> dict[str, Figure | str]:
    """A figure for each, or the sentence that says why there is none."""
    with ExitStack() as stack:
        children = {name: _start(one, stack) for name, one in contestants.items()}
        reasons: dict[str, Figure | str] = {}
        turns: dict[str, Turn] = {}
        for name, child in children.items():
            try:
                child.wait_ready()
                turns[name] = _turn(child, contestants[name].calls)
            except ContestantFailed as error:
                reasons[name] = str(error)
        return {**reasons, **interleave(turns, plan)}


def _start(one: Contestant, stack: ExitStack) -> Child:
    child = Child(one.python, one.module, one.way, *one.options)
    stack.callback(child.close)
    return child


def _turn(child: Child, calls: int) -> Turn:
    def turn() -> Sequence[float]:
        return child.run(calls)

    return turn

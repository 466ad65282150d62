"""Figures from many short rounds: every contestant has its turn in each, so that all meet the same noise."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Turn = Callable[[], Sequence[float]]
"""One turn of a contestant: the times of the calls it made."""


class ContestantFailed(Exception):
    """A contestant cannot go on; the others can."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """The median of the rounds' medians, and where four fifths of all single times lie."""

    median: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How much is measured; time is the bound that always holds."""

    rounds: int
    calls: int = 1
    seconds: float = 60.0


def interleave(turns: Mapping[str, Turn], plan: Plan) -> dict[str, Figure | str]:
    """A figure for each contestant, or the sentence that says why there is none."""
    rounds: dict[str, list[Sequence[float]]] = {name: [] for name in turns}
    failed: dict[str, str] = {}
    names = list(turns)
    until = time.monotonic() + plan.seconds
    for _ in range(plan.rounds):
        for name in names:
            if name not in failed:
                try:
                    rounds[name].append(turns[name]())
                except ContestantFailed as error:
                    failed[name] = str(error)
        names.reverse()
        if time.monotonic() > until:
            break
    return {name: failed.get(name) or summarise(rounds[name]) for name in turns}


def summarise(rounds: Sequence[Sequence[float]]) -> Figure:
    every = sorted(value for one in rounds for value in one)
    return Figure(
        median=statistics.median(map(statistics.median, rounds)),
        low=every[round((len(every) - 1) * 0.1)],
        high=every[round((len(every) - 1) * 0.9)],
        count=len(every),
    )

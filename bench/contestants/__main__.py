"""The child's end: warms up, greets, then answers `run N` with a JSON list of times in microseconds."""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from time import perf_counter_ns
from typing import Final

from bench.contestants import Subject

_SETTLE: Final = 5
"""Calls before each round that are not timed: other contestants had the caches meanwhile."""


def main() -> None:
    module, way, *options = sys.argv[1:]
    subject: Subject = import_module(f"bench.contestants.{module}").open_subject(way, *options)
    try:
        if way.startswith("sync"):
            _serve(subject)
        else:
            asyncio.run(_serve_awaited(subject))
    finally:
        subject.close()


def _serve(subject: Subject) -> None:
    _check(subject, subject.call())
    _time(subject, subject.warm_up)
    _greet(subject)
    for line in sys.stdin:
        _time(subject, min(_SETTLE, subject.warm_up))
        _answer(_time(subject, int(line.split()[1])))


def _time(subject: Subject, calls: int) -> list[float]:
    call = subject.call
    times = []
    for _ in range(calls):
        began = perf_counter_ns()
        call()
        times.append((perf_counter_ns() - began) / 1000)
    return times


async def _serve_awaited(subject: Subject) -> None:
    """On one loop that stays; reading blocks it, and nothing else is waiting on it."""
    _check(subject, await subject.call())
    await _time_awaited(subject, subject.warm_up)
    _greet(subject)
    for line in sys.stdin:
        await _time_awaited(subject, min(_SETTLE, subject.warm_up))
        _answer(await _time_awaited(subject, int(line.split()[1])))


async def _time_awaited(subject: Subject, calls: int) -> list[float]:
    call = subject.call
    times = []
    for _ in range(calls):
        began = perf_counter_ns()
        await call()
        times.append((perf_counter_ns() - began) / 1000)
    return times


def _check(subject: Subject, answer: object) -> None:
    got = subject.read(answer)
    if got != subject.answer:
        sys.exit(f"the call answered {got!r}, not {subject.answer!r}")


def _greet(subject: Subject) -> None:
    print(json.dumps({"ready": subject.warm_up}), flush=True)


def _answer(times: list[float]) -> None:
    print(json.dumps(times), flush=True)


main()

"""Waiting in a coroutine with or without an event loop.

A coroutine that no event loop drives (the synchronous façade) may simply block; one that a loop drives
must not. And what only works on a loop asks for one first: the façade then carries the coroutine onto it.
"""

from __future__ import annotations

import select
import sys
import types
from collections.abc import Coroutine, Generator, Iterable
from typing import Any, Final

NEEDS_LOOP: Final = object()


def running_loop() -> Any | None:
    """The running event loop, if any; does not import asyncio to find out."""
    events = sys.modules.get("asyncio.events")
    return events._get_running_loop() if events else None


@types.coroutine
def on_event_loop() -> Generator[Any, None, None]:
    """Returns once an event loop drives the calling coroutine."""
    if running_loop() is None:
        yield NEEDS_LOOP


@types.coroutine
def go_on(coroutine: Coroutine[Any, Any, Any], waiting: Any) -> Generator[Any, Any, Any]:
    """The rest of a coroutine that was started by hand and now waits for something, or for an event loop."""
    value: Any = None
    error: BaseException | None = None
    while True:
        if waiting is not NEEDS_LOOP:
            try:
                value = yield waiting
            except BaseException as thrown:
                error = thrown
        try:
            waiting = coroutine.send(value) if error is None else coroutine.throw(error)
        except StopIteration as done:
            return done.value
        value = error = None


async def wait_readable(files: Iterable[int], seconds: float | None) -> list[int]:
    """The file descriptors that can be read now; none if the time passed first."""
    loop = running_loop()
    return await _wait_on_loop(loop, files, seconds) if loop else _wait_blocking(files, seconds)


def _wait_blocking(files: Iterable[int], seconds: float | None) -> list[int]:
    poll = select.poll()
    for file in files:
        poll.register(file, select.POLLIN | select.POLLHUP)
    ready = poll.poll(None if seconds is None else max(0.0, seconds) * 1000)
    return [file for file, _ in ready]


async def _wait_on_loop(loop: Any, files: Iterable[int], seconds: float | None) -> list[int]:
    files = list(files)
    ready: list[int] = []
    woken = loop.create_future()

    def wake(file: int | None) -> None:
        if file is not None:
            ready.append(file)
        if not woken.done():
            woken.set_result(None)

    timer = None if seconds is None else loop.call_later(max(0.0, seconds), wake, None)
    for file in files:
        loop.add_reader(file, wake, file)
    try:
        await woken
    finally:
        for file in files:
            loop.remove_reader(file)
        if timer is not None:
            timer.cancel()
    return ready

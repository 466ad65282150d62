"""One module for each library, run by that library's own interpreter; nothing here imports Glee for a peer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

ARGUMENTS: Final = {"a": 1, "b": 2}
ANSWER: Final = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """What is timed: one call, made anew each time. It is awaited unless its way begins with `sync`."""

    call: Callable[[], Any]
    read: Callable[[Any], Any] = lambda answer: answer
    """Takes the sum out of what the library returned, to see that the call did its work."""
    answer: Any = ANSWER
    warm_up: int = 200
    close: Callable[[], None] = lambda: None


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def add_async(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def choose(way: str) -> Callable[..., Any]:
    """The function that a way calls: `async` has a coroutine function, the others a plain one."""
    return add_async if way == "async" else add

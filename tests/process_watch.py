"""Looking for processes by a number among their arguments, as a person would with `ps`."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 20.0
"""Seconds to wait for what is sure to come."""


def new_mark() -> str:
    """A number that `sleep` takes for a very long time and that no other process has."""
    return str(random.randrange(10**8, 10**9))


def find_processes(mark: str) -> list[int]:
    """Living processes with this very argument; a process that is only waited for has none."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark.encode() in arguments:
                found.append(int(entry.name))
    return found


def wait_for(condition: Callable[[], object]) -> bool:
    """True as soon as the condition holds; False if it does not within the patience of a test."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def wait_gone(mark: str) -> None:
    assert wait_for(lambda: not find_processes(mark)), f"left behind: {find_processes(mark)}"


def wait_there(mark: str, count: int = 1) -> None:
    assert wait_for(lambda: len(find_processes(mark)) >= count)


def find_zombies() -> list[int]:
    """Children of this process that ended and were not waited for."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_bytes().rpartition(b") ")[2].split()[:2]
            except OSError:
                continue
            if state == b"Z" and int(parent) == os.getpid():
                found.append(int(entry.name))
    return found


def count_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))

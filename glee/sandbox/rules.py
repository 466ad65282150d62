"""What Landlock allows: behind the mount view the same once more; without one, all there is to hold files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator

from glee.sandbox import rights
from glee.sandbox.mounts import DEVICES, FRESH, NOT_SHOWN, Mounts
from glee.sandbox.plan import Step
from glee.sandbox.spec import Spec, is_below


def rules_behind(mounts: Mounts, *, proc: bool) -> Iterator[Step]:
    """For a run with mounts of its own, which already leave out what it may not see."""
    yield from (("rule", str(rights.READ), path) for path in mounts.readable())
    yield from (("rule", str(rights.WRITE), path) for path in mounts.writable())
    yield from _devices()
    yield ("inside", str(rights.LIST), "/")
    yield from (("inside", str(rights.WRITE), path) for path in FRESH)
    if proc:
        yield ("inside", str(rights.LOOK), "/proc")


def rules_alone(spec: Spec, mounts: Mounts) -> Iterator[Step]:
    """For a run that sees the machine's files. A rule can only add, so exceptions are left out one by one."""
    secret = (*spec.hidden, *NOT_SHOWN)
    for path in mounts.readable():
        yield from _carve(path, rights.READ, (), secret)
    for path in mounts.writable():
        yield from _carve(path, rights.WRITE, spec.guarded, secret)
    yield from _devices()


def _carve(path: str, allowed: int, guarded: Collection[str], hidden: Collection[str]) -> Iterator[Step]:
    """Rules for a path and what is below it. In a folder that holds an exception nothing new can be made."""
    if path in hidden or os.path.islink(path):
        return
    if path in guarded:
        guarded, allowed = (), rights.READ
    if not any(is_below(exception, path) for exception in (*guarded, *hidden)):
        yield ("rule", str(allowed), path)
        return
    yield ("rule", str(rights.LIST), path)
    with contextlib.suppress(OSError):
        for entry in sorted(os.listdir(path)):
            yield from _carve(f"{path.rstrip('/')}/{entry}", allowed, guarded, hidden)


def find_carved(spec: Spec, mounts: Mounts) -> Iterator[str]:
    """Folders whose entries were looked at, so that the rules must be made anew when these change."""
    for step in rules_alone(spec, mounts):
        if step[1] == str(rights.LIST):
            yield step[2]


def _devices() -> Iterator[Step]:
    return (("rule", str(rights.DEVICE), path) for path in DEVICES)

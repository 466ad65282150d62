"""All that a process started, where no process namespace ends it at once."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Final

_PASSES: Final = 100


def end_offspring(proc: int) -> None:
    """Kills every process below this one, which must be the one that orphans go to; `proc` is the machine's /proc.

    They are stopped first, again and again until none is new: what is stopped starts no other.
    """
    seen: set[int] = set()
    for _ in range(_PASSES):
        found = _find_offspring(proc, os.getpid())
        if found <= seen:
            break
        seen |= found
        _signal(found, signal.SIGSTOP)
    _signal(_find_offspring(proc, os.getpid()), signal.SIGKILL)


def _signal(pids: set[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _find_offspring(proc: int, ancestor: int) -> set[int]:
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir(proc)):
        with contextlib.suppress(OSError):
            children.setdefault(_read_parent(proc, name), []).append(int(name))
    found: set[int] = set()
    waiting = [ancestor]
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            if pid not in found:
                found.add(pid)
                waiting.append(pid)
    return found


def _read_parent(proc: int, pid: str) -> int:
    """The name of a program may hold anything, so the fields are counted from its end."""
    with open(os.open(f"{pid}/stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc), "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])


def count_threads(uid: int) -> int:
    """How many threads a user has, as the limit on processes counts them."""
    count = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{name}").st_uid == uid:
                count += len(os.listdir(f"/proc/{name}/task"))
    return count

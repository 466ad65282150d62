"""A mark that every process of a run carries, so that what detached from its parents is found and ended.

The mark is a resource limit of no effect (real-time CPU time, which only real-time processes feel) set to
a random number. Fork, exec, setsid and a cleared environment do not remove it. It must be there when the
process begins, so Glee wears it itself for the moment in which the process is made. Whoever removes it on
purpose is held by the sandbox, not here. Without /proc there is no mark, only the process group.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

_LIMIT: Final = getattr(resource, "RLIMIT_RTTIME", None)
_SWEEPS: Final = 50
_LEAST: Final = 1 << 50
"""A limit above this is a mark: no one sets a limit of decades."""
_WEARING: Final = threading.Lock()
_SHORT: Final = 1.0
"""Seconds in which process numbers do not come round again."""

Limits = tuple[int, int]


class Marked:
    """A started process whose descendants can be told from all others."""

    def __init__(self, argv: Sequence[str], **options: Any) -> None:
        self._began = time.monotonic()
        self._number = 0
        if _LIMIT is None or _find_last_pid() is None:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(argv, **options)
            return
        with _WEARING:
            limits = _own_limits()
            self._number = _draw(limits[1])
            earlier = _find_last_pid() or 0
            if self._number:
                resource.setrlimit(_LIMIT, (self._number, limits[1]))
            try:
                self.process = subprocess.Popen(argv, **options)
            finally:
                resource.setrlimit(_LIMIT, limits)
        if self._number:
            self._unmark_others(earlier, limits)

    def is_alone(self) -> bool:
        """True if no process at all was started since, so that none can have been left."""
        return _find_last_pid() == self.process.pid

    def sweep(self) -> None:
        """Ends every process that carries the mark, until two looks in a row find none."""
        quiet = 0
        for _ in range(_SWEEPS if self._number else 0):
            found = [pid for pid in self._candidates() if self._is_alive(pid)]
            for pid in found:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            quiet = 0 if found else quiet + 1
            if quiet == 2:
                return

    def _candidates(self) -> Iterable[int]:
        """Numbers are given out in order, so after a short run only those since its own come into question."""
        own, last = self.process.pid, _find_last_pid() or 0
        if own <= last and time.monotonic() - self._began < _SHORT:
            return range(own + 1, last + 1)
        return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]

    def _is_alive(self, pid: int) -> bool:
        try:
            return self._is_on(pid) and _read_stat(pid)[0] not in (b"Z", b"X")
        except OSError:
            return False

    def _is_on(self, pid: int) -> bool:
        with open(f"/proc/{pid}/limits", "rb") as file:
            return str(self._number).encode() in file.read()

    def _unmark_others(self, earlier: int, limits: Limits) -> None:
        """What another thread of this program started at the same moment is not ours to end."""
        assert _LIMIT is not None
        for pid in range(earlier + 1, (_find_last_pid() or 0) + 1):
            with contextlib.suppress(OSError):
                if pid != self.process.pid and self._is_on(pid) and _read_stat(pid)[1] == os.getpid():
                    resource.prlimit(pid, _LIMIT, limits)


def _own_limits() -> Limits:
    assert _LIMIT is not None
    soft, hard = resource.getrlimit(_LIMIT)
    return (soft, soft if soft > _LEAST else hard)  # inside a tool of Glee's own, that tool's mark must stay


def _draw(hard: int) -> int:
    """A number below what Glee itself may have; 0 if that leaves no room for one."""
    top = 1 << 62 if hard == resource.RLIM_INFINITY else hard
    return top // 2 + random.getrandbits(top.bit_length() - 2) if top > _LEAST else 0


def _find_last_pid() -> int | None:
    """The process started last on this machine, if that can be told."""
    try:
        with open("/proc/loadavg", "rb") as file:
            return int(file.read().rpartition(b" ")[2])
    except (OSError, ValueError):
        return None


def _read_stat(pid: int) -> tuple[bytes, int]:
    """State and parent."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        state, parent = file.read().rpartition(b") ")[2].split()[:2]
    return state, int(parent)

"""A mark that the processes of a run carry, so that what detached from its parents is found and ended.

Two signs that hardly ever get lost together. An environment variable is there from the first instruction,
but a program can clear it. A resource limit of no effect (real-time CPU time, which only real-time processes
feel) survives fork, exec, setsid and a cleared environment. Where no other thread could start a process at the
same moment, Glee wears the limit itself while the child is made, so that it is there from the first instruction
too; else the program is started through `prlimit`, and where that is missing the limit is laid on afterwards.
The number is random, so nobody else's process has it. Whoever removes both on purpose is held by the sandbox, not
here. Without /proc there is no mark, only the process group.
"""

from __future__ import annotations

import contextlib
import functools
import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

VARIABLE: Final = "GLEE_RUN"
IDLE: Final = "glee-idle"
SPINNER: Final = "glee-spinner"
"""Names of Glee's own threads that start no process: an idle worker, and the terminal's spinner."""
_LIMIT: Final = getattr(resource, "RLIMIT_RTTIME", None)
_HELPERS: Final = ("/usr/bin/prlimit", "/bin/prlimit")
"""Of util-linux, which most systems have."""
_NOT_FOUND: Final = 127
_LEAST: Final = 1 << 50
"""A limit above this is a mark: no one sets a limit of decades."""
_SHORT: Final = 1.0
"""Seconds in which process numbers do not come round again."""
_SETTLING: Final = 0.2
"""Seconds within which a process that was being started has its environment."""
_GLANCE: Final = 0.001
"""Seconds in which something that forks without pause is seen."""
_PATIENCE: Final = 2.0
"""Seconds for which processes that keep forking are chased."""


class Mark:
    """Drawn before a process is started, so that it is found even if its start is interrupted."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._number = _draw()
        self._sign = f"{VARIABLE}={self._number}".encode()
        self._pid = 0
        self._is_wrapped = False
        self.is_used = False

    def start(self, argv: Sequence[str], *, env: Mapping[str, str], **options: Any) -> subprocess.Popen[bytes]:
        """Starts a process that carries the mark, and whose descendants do."""
        self.is_used = True
        alone = _LIMIT is not None and _is_only_thread()
        if not alone:
            argv = self._wrap(argv)
        try:
            with self._wearing() if alone else contextlib.nullcontext():
                process = subprocess.Popen(argv, env={**env, VARIABLE: str(self._number)}, **options)
        except (OSError, ValueError):
            self.is_used = False
            raise
        self._pid = process.pid
        self._lay()
        return process

    def _wrap(self, argv: Sequence[str]) -> Sequence[str]:
        """A program that lays the limit on itself and then becomes the one that was asked for, if it can."""
        helper = _find_helper()
        if helper is None or not os.access(argv[0], os.X_OK) or _LIMIT is None:
            return argv
        self._is_wrapped = True
        hard = resource.getrlimit(_LIMIT)[1]
        return [helper, f"--rttime={self._number}:{self._number if hard == -1 else hard}", *argv]

    @contextlib.contextmanager
    def _wearing(self) -> Iterator[None]:
        assert _LIMIT is not None
        soft, hard = resource.getrlimit(_LIMIT)
        resource.setrlimit(_LIMIT, (self._number, hard))
        try:
            yield
        finally:
            resource.setrlimit(_LIMIT, (soft, hard))

    def was_not_started(self, exit_code: int, stderr: bytes) -> bool:
        """True if `prlimit` says that it could not become the program."""
        return self._is_wrapped and exit_code == _NOT_FOUND and stderr.startswith(b"prlimit: failed to execute ")

    def is_alone(self) -> bool:
        """True if no process at all was started since, so that none can have been left."""
        return _find_last_pid() == self._pid

    def sweep(self) -> bool:
        """Ends every process with the mark, until two looks in a row find none. False if some kept escaping.

        A process whose start was interrupted may be in the midst of its exec, when its environment cannot be read
        yet; so then the looks go on for a while.
        """
        if _find_last_pid() is None:
            return True
        now = time.monotonic()
        quiet, least, until = 0, now + (0 if self._pid else _SETTLING), now + _PATIENCE
        while (quiet < 2 or time.monotonic() < least) and time.monotonic() < until:
            found = self._chase()
            for pid in self._candidates():
                group = self._find_group(pid)
                if group is not None:
                    found = True
                    _end(pid, group)
            quiet = 0 if found else quiet + 1
        return quiet >= 2

    def _chase(self) -> bool:
        """Ends what forks without pause and is gone before a list of processes is read: it looks at the newest one.

        Its group stays the same from one to the next, so a single sight of it is enough. True if there was one.
        """
        looks_until = time.monotonic() + _GLANCE
        while time.monotonic() < looks_until:
            newest = _find_last_pid() or 0
            group = self._find_group(newest) if newest != self._pid else None
            if group is not None:
                _end(newest, group)
                return True
        return False

    def _lay(self) -> None:
        """The soft limit alone: inside a tool of Glee's own, the hard one is that tool's mark."""
        self._lay_on(self._pid)
        done = self._pid
        while (last := _find_last_pid() or 0) > done:  # what it forked before this instant gets the mark too
            for pid in range(done + 1, last + 1):
                if self._descends(pid):
                    self._lay_on(pid)
            done = last

    def _lay_on(self, pid: int) -> None:
        if _LIMIT is None:
            return
        with contextlib.suppress(OSError, ValueError):
            hard = resource.prlimit(pid, _LIMIT)[1]
            resource.prlimit(pid, _LIMIT, (self._number, self._number if hard == -1 else hard))

    def _descends(self, pid: int) -> bool:
        """True for a process below the child, or in the child's own session."""
        try:
            while pid > 1:
                _, parent, _, session = _read(pid, "stat").rpartition(b") ")[2].split()[:4]
                if self._pid in (int(parent), int(session)):
                    return True
                pid = int(parent)
        except (OSError, ValueError):
            pass
        return False

    def _candidates(self) -> Iterable[int]:
        """Numbers are given out in order, so after a short run only its own and those since come into question."""
        last = _find_last_pid() or 0
        if 0 < self._pid <= last and time.monotonic() - self._began < _SHORT:
            return range(self._pid, last + 1)
        return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]

    def _find_group(self, pid: int) -> int | None:
        """The process group of a living process that carries the mark."""
        try:
            state, _, group = _read(pid, "stat").rpartition(b") ")[2].split()[:3]
            if state in (b"Z", b"X"):
                return None
            marked = str(self._number).encode() in _read(pid, "limits") or self._sign in _read(pid, "environ")
        except (OSError, ValueError):
            return None
        return int(group) if marked else None


@functools.cache
def _find_helper() -> str | None:
    return next((path for path in _HELPERS if os.access(path, os.X_OK)), None)


def _is_only_thread() -> bool:
    """True if no other thread can be starting a process just now; Glee's own that idle or draw do not count."""
    here = threading.current_thread()
    return all(thread is here or thread.name in (IDLE, SPINNER) for thread in threading.enumerate())


def _draw() -> int:
    """A random number below the mark that Glee itself may carry, so that the limit can be lowered to it."""
    number = int.from_bytes(os.urandom(8)) >> 3 | _LEAST
    hard = resource.getrlimit(_LIMIT)[1] if _LIMIT is not None else -1
    return number if hard == -1 or hard <= _LEAST else _LEAST + number % (hard - _LEAST)


def _end(pid: int, group: int) -> None:
    """With its group, whose members cannot fork out of the same blow; never with Glee's own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if group != os.getpgid(0):
            os.killpg(group, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):  # ours to reap if its start was interrupted
        os.waitpid(pid, 0)


def _find_last_pid() -> int | None:
    """The process started last on this machine, if that can be told."""
    try:
        with open("/proc/loadavg", "rb") as file:
            return int(file.read().rpartition(b" ")[2])
    except (OSError, ValueError):
        return None


def _read(pid: int, name: str) -> bytes:
    with open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read()

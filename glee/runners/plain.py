"""A program without a jail, for whoever turned the sandbox off: held by its process group and its mark alone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from glee.definitions.isolation import Isolation
from glee.runners.marks import Mark
from glee.runners.processes import Finished


class PlainProcess:
    def __init__(self) -> None:
        self.isolation = Isolation(level="off")
        self.exit_file: int | None = None
        self._mark = Mark()
        self._process: subprocess.Popen[bytes] | None = None
        self._over = False

    def number_of(self, channel: int) -> int:
        return channel

    def start(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], files: Sequence[int]) -> None:
        stdin, stdout, stderr, *others = files
        self._process = self._mark.start(
            argv,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=others,
            start_new_session=True,
        )
        self.exit_file = _open_exit(self._process.pid)

    def is_over(self) -> bool:
        """A look that leaves the process to be waited for, so that nobody else gets its number yet."""
        assert self._process is not None
        if self.exit_file is not None:
            return True
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def collect(self, drain: Callable[[], bool]) -> int:
        assert self._process is not None
        _kill_group(self._process.pid)
        if not drain():  # something that left the group still holds a pipe, and could write for ever
            self._mark.sweep()
            drain()
        self._over = self._mark.is_alone()
        code = self._process.wait()
        return code if code >= 0 else 128 - code

    def check(self, finished: Finished) -> Finished:
        if self._mark.was_not_started(finished.exit_code, finished.stderr):
            raise FileNotFoundError
        return finished

    def end(self) -> bool:
        whole = True
        if self._process is None:
            return self._mark.sweep() if self._mark.is_used else True
        if not self._over:
            _kill_group(self._process.pid)
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()
            whole = self._mark.sweep()
            self._over = True
        exit_file, self.exit_file = self.exit_file, None
        if exit_file is not None:
            os.close(exit_file)
        return whole


def _open_exit(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where the system has no such thing."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)

"""A child process and all it starts: bounded in time and output, and gone when the run is over.

Every process of a run carries a mark that fork, exec, setsid and a cleared environment do not remove:
a resource limit of no effect (real-time CPU time, which only real-time processes feel) set to a random
number. What detached from its parents is found by it. Whoever removes the mark on purpose is held by
the sandbox, not here.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from glee.errors import TimedOut, TooLarge, Unavailable
from glee.runners.waiting import wait_readable

_CHUNK: Final = 65_536
_SWEEPS: Final = 50


class Finished(Struct, frozen=True, kw_only=True):
    exit_code: int
    """128 and the signal's number for a process that a signal ended, as shells have it."""
    stdout: bytes
    stderr: bytes
    channel: bytes
    """What was written to the extra descriptor, if one was asked for."""


async def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float,
    output_bytes: int,
    stdin: int = subprocess.DEVNULL,
    channel: bool = False,
) -> Finished:
    """Runs a program to its end. With `channel`, the last argument is the number of a descriptor to write to."""
    child = _Child(argv, cwd=cwd, env=env, stdin=stdin, channel=channel, output_bytes=output_bytes)
    try:
        return await child.finish(timeout)
    finally:
        child.end()


class _Child:
    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: int,
        channel: bool,
        output_bytes: int,
    ) -> None:
        self._left = output_bytes
        self._limit = output_bytes
        self._over = False
        read, write = os.pipe() if channel else (-1, -1)
        try:
            self._process = subprocess.Popen(
                [*argv, str(write)] if channel else argv,
                cwd=cwd,
                env=env,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(write,) if channel else (),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            if channel:
                os.close(read)
            raise Unavailable(_why_not_started(argv[0], cwd, error)) from error
        finally:
            if channel:
                os.close(write)
        self._mark = _mark(self._process.pid)
        assert self._process.stdout and self._process.stderr
        self._buffers: dict[int, bytearray] = {}
        self._out = self._watch(self._process.stdout.fileno())
        self._err = self._watch(self._process.stderr.fileno())
        self._channel = read
        if channel:
            self._watch(read)
        self._open = set(self._buffers)
        self._exit = os.pidfd_open(self._process.pid)

    def _watch(self, file: int) -> int:
        os.set_blocking(file, False)
        self._buffers[file] = bytearray()
        return file

    async def finish(self, timeout: float) -> Finished:
        deadline = time.monotonic() + timeout
        while True:
            ready = await wait_readable([self._exit, *self._open], deadline - time.monotonic())
            if not ready:
                raise TimedOut(
                    f"the tool ran longer than {timeout:g} s and was ended; give it less to do, or raise timeout_ms",
                    details={"timeout_ms": round(timeout * 1000)},
                )
            for file in ready:
                if file != self._exit:
                    self._drain(file)
            if self._exit in ready:
                return self._collect()

    def _drain(self, file: int) -> None:
        """Reads what is there; past the limit the run is over."""
        while True:
            try:
                data = os.read(file, _CHUNK)
            except BlockingIOError:
                return
            if not data:
                self._open.discard(file)
                return
            self._left -= len(data)
            if self._left < 0:
                raise TooLarge(
                    f"the tool wrote more than {self._limit:,} bytes and was ended; make it write less, "
                    "or raise limits.output_bytes in your config",
                    details={"limit": self._limit},
                )
            self._buffers[file] += data

    def _collect(self) -> Finished:
        _kill_group(self._process.pid)
        for file in list(self._open):
            self._drain(file)
        self._over = not self._open
        code = self._process.wait()
        return Finished(
            exit_code=code if code >= 0 else 128 - code,
            stdout=bytes(self._buffers[self._out]),
            stderr=bytes(self._buffers[self._err]),
            channel=bytes(self._buffers.get(self._channel, b"")),
        )

    def end(self) -> None:
        """Leaves no process, no zombie and no descriptor. A closed pipe tells that nothing was left."""
        if not self._over:
            _kill_group(self._process.pid)
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()
            _sweep(self._mark)
        assert self._process.stdout and self._process.stderr
        self._process.stdout.close()
        self._process.stderr.close()
        os.close(self._exit)
        if self._channel >= 0:
            os.close(self._channel)


def _mark(pid: int) -> int:
    mark = random.getrandbits(62) | (1 << 61)
    with contextlib.suppress(OSError, ValueError):
        resource.prlimit(pid, resource.RLIMIT_RTTIME, (mark, mark))
    return mark


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _sweep(mark: int) -> None:
    """Ends every process that carries the mark, until two looks in a row find none."""
    quiet = 0
    for _ in range(_SWEEPS):
        found = list(_find_marked(mark))
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        quiet = 0 if found else quiet + 1
        if quiet == 2:
            return


def _find_marked(mark: int) -> Iterator[int]:
    needle = str(mark).encode()
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            with open(f"/proc/{entry.name}/limits", "rb") as file:
                limits = file.read()
            if needle in limits and not _is_zombie(entry.name):
                yield int(entry.name)
        except OSError:
            continue


def _is_zombie(pid: str) -> bool:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b") ")[2][:1] in (b"Z", b"X")


def _why_not_started(program: str, cwd: Path, error: Exception) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError) and not cwd.is_dir():
        return f"the folder {cwd} does not exist; make it, or change cwd in the manifest"
    if isinstance(error, FileNotFoundError):
        return f"the program {program} does not exist, or the interpreter its first line names does not"
    if isinstance(error, PermissionError):
        return f"the program {program} may not be executed; try chmod +x {program}"
    reason = getattr(error, "strerror", None) or str(error)
    return f"the program {program} cannot be started: {reason}"

"""A child process and all it starts: bounded in time and output, and gone when the run is over."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from glee.errors import CallError, InvalidInput, TimedOut, TooLarge, Unavailable
from glee.runners.marks import Mark
from glee.runners.waiting import wait_readable
from glee.secrets.redaction import Redactor

_CHUNK: Final = 65_536
SHOWN: Final = 4000
"""Characters of a stream that an error shows."""
_TICK: Final = 0.01
"""Seconds between two looks at a child where the system cannot tell of its end by itself."""


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
    redactor: Redactor,
    stdin: int = subprocess.DEVNULL,
    channel: bool = False,
) -> Finished:
    """Runs a program to its end. With `channel`, the last argument is the number of a descriptor to write to."""
    mark = Mark()
    child: _Child | None = None
    try:
        child = _Child(mark, argv, cwd=cwd, env=env, stdin=stdin, channel=channel, output_bytes=output_bytes)
        finished = await child.finish(timeout)
        if mark.was_not_started(finished.exit_code, finished.stderr):
            raise _not_started(argv[0], cwd, FileNotFoundError())
        return finished
    except TimedOut as error:
        if child is not None:
            error.details |= {name: redactor.text(text)[-SHOWN:] for name, text in child.so_far().items() if text}
            if not _end_surely(child, mark):
                error.warnings = ("some processes of the tool kept escaping and may still be running",)
        raise
    finally:
        _end_surely(child, mark)


def _end_surely(child: _Child | None, mark: Mark) -> bool:
    """Ends what was started, however often the person at Ctrl-C interrupts, and even if its start was."""
    while True:
        try:
            if child is not None:
                return child.end()
            return mark.sweep() if mark.is_used else True
        except KeyboardInterrupt:
            continue


class _Child:
    def __init__(
        self,
        mark: Mark,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: int,
        channel: bool,
        output_bytes: int,
    ) -> None:
        self._mark = mark
        self._left = output_bytes
        self._limit = output_bytes
        self._over = False
        self._exit: int | None = None
        self._buffers: dict[int, bytearray] = {}
        self._open: set[int] = set()
        self._channel, write = os.pipe() if channel else (-1, -1)
        try:
            self._process = mark.start(
                [*argv, str(write)] if channel else argv,
                cwd=cwd,
                env=env,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(write,) if channel else (),
                start_new_session=True,
            )
        except BaseException as error:
            if channel:
                os.close(self._channel)
            if isinstance(error, OSError | ValueError):
                raise _not_started(argv[0], cwd, error) from error
            raise
        finally:
            if channel:
                os.close(write)
        self._watch_all()

    def _watch_all(self) -> None:
        assert self._process.stdout and self._process.stderr
        self._out = self._watch(self._process.stdout.fileno())
        self._err = self._watch(self._process.stderr.fileno())
        if self._channel >= 0:
            self._watch(self._channel)
        self._exit = _open_exit(self._process.pid)

    def _watch(self, file: int) -> int:
        os.set_blocking(file, False)
        self._buffers[file] = bytearray()
        self._open.add(file)
        return file

    async def finish(self, timeout: float) -> Finished:
        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            files = self._open if self._exit is None else {self._exit, *self._open}
            ready = await wait_readable(files, left if self._exit is not None else min(left, _TICK))
            for file in ready:
                if file != self._exit:
                    self._drain(file)
            if self._exit in ready or (self._exit is None and self._process.poll() is not None):
                return self._collect()
            if time.monotonic() >= deadline:
                raise TimedOut(
                    f"the tool ran longer than {timeout:g} s and was ended; give it less to do, or raise timeout_ms",
                    details={"timeout_ms": round(timeout * 1000)},
                )

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
        if self._open:  # something that left the group still holds a pipe, and could write for ever
            self._mark.sweep()
            for file in list(self._open):
                self._drain(file)
        self._over = self._mark.is_alone()
        code = self._process.wait()
        return Finished(
            exit_code=code if code >= 0 else 128 - code,
            stdout=bytes(self._buffers[self._out]),
            stderr=bytes(self._buffers[self._err]),
            channel=bytes(self._buffers.get(self._channel, b"")),
        )

    def so_far(self) -> dict[str, str]:
        """What was written until now."""
        written = {"stdout": self._buffers[self._out], "stderr": self._buffers[self._err]}
        return {name: data.decode("utf-8", "replace") for name, data in written.items()}

    def end(self) -> bool:
        """Leaves no process, no zombie and no descriptor; False if some process kept escaping.

        It may be interrupted and begun again.
        """
        whole = True
        if not self._over:
            _kill_group(self._process.pid)
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()
            whole = self._mark.sweep()
            self._over = True
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        exit_file, self._exit = self._exit, None
        channel, self._channel = self._channel, -1
        for file in (exit_file, channel):
            if file is not None and file >= 0:
                os.close(file)
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


def _not_started(program: str, cwd: Path, error: Exception) -> CallError:
    if isinstance(error, FileNotFoundError | NotADirectoryError) and not cwd.is_dir():
        return Unavailable(f"the folder {cwd} does not exist; make it, or change cwd in the manifest")
    if isinstance(error, FileNotFoundError):
        return Unavailable(f"the program {program} does not exist, or the interpreter its first line names does not")
    if isinstance(error, PermissionError):
        return Unavailable(f"the program {program} may not be executed; try chmod +x {shlex.quote(program)}")
    if isinstance(error, OSError) and error.errno == errno.E2BIG:
        return InvalidInput("the arguments are longer than a program can be given; pass large inputs through a file")
    reason = getattr(error, "strerror", None) or str(error)
    return Unavailable(f"the program {program} cannot be started: {reason}")

"""A child process and all it starts: bounded in time and output, and gone when the run is over."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from glee.definitions.isolation import Isolation
from glee.errors import CallError, InvalidInput, TimedOut, TooLarge, Unavailable
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


class Process(Protocol):
    """One way to run a program: plain, jailed, contained. It exists before the program does, so it can always end."""

    isolation: Isolation
    exit_file: int | None
    """A descriptor that can be read when there is news of its end."""

    def number_of(self, channel: int) -> int:
        """The number that the program will know a descriptor of ours by."""
        ...

    def start(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], files: Sequence[int]) -> None:
        """Standard input, output and error, and perhaps the channel. Raises OSError if the program cannot start."""
        ...

    def is_over(self) -> bool: ...

    def collect(self, drain: Callable[[], bool]) -> int:
        """After its end: leaves nothing behind, and returns the exit code. `drain` is True once all is read."""
        ...

    def check(self, finished: Finished) -> Finished:
        """What is the program's own of it. Raises OSError if it turns out that it was not started after all."""
        ...

    def end(self) -> bool:
        """Ends whatever still runs, now; may be called again. False if some process kept escaping."""
        ...


async def run_process(
    process: Process,
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float,
    output_bytes: int,
    redactor: Redactor,
    stdin: int | None = None,
    channel: bool = False,
) -> Finished:
    """Runs a program to its end. With `channel`, the last argument is the number of a descriptor to write to."""
    streams = _Streams(output_bytes)
    try:
        streams.start(process, argv, cwd=cwd, env=env, stdin=stdin, channel=channel)
        finished = await _finish(process, streams, timeout)
        return process.check(finished)
    except (OSError, ValueError) as error:
        raise _not_started(argv[0], cwd, error) from error
    except TimedOut as error:
        error.details |= {name: redactor.text(text)[-SHOWN:] for name, text in streams.so_far().items() if text}
        if not _end_surely(process):
            error.warnings = ("some processes of the tool kept escaping and may still be running",)
        raise
    finally:
        _end_surely(process)
        streams.close()


def _end_surely(process: Process) -> bool:
    """Ends what was started, however often the person at Ctrl-C interrupts, and even if its start was."""
    while True:
        try:
            return process.end()
        except KeyboardInterrupt:
            continue


async def _finish(process: Process, streams: _Streams, timeout: float) -> Finished:
    deadline = time.monotonic() + timeout
    while True:
        left = deadline - time.monotonic()
        exit_file = process.exit_file
        files = streams.open if exit_file is None else {exit_file, *streams.open}
        ready = await wait_readable(files, left if exit_file is not None else min(left, _TICK))
        for file in ready:
            if file != exit_file:
                streams.read(file)
        if (exit_file is None or exit_file in ready) and process.is_over():
            return streams.finished(process.collect(streams.drain))
        if time.monotonic() >= deadline:
            raise TimedOut(
                f"the tool ran longer than {timeout:.3g} s and was ended; give it less to do, or raise timeout_ms",
                details={"timeout_ms": round(timeout * 1000)},
            )


class _Streams:
    """Our ends of what a program writes to, and what came so far."""

    def __init__(self, limit: int) -> None:
        self._limit = self._left = limit
        self._buffers: dict[int, bytearray] = {}
        self.open: set[int] = set()

    def start(
        self,
        process: Process,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: int | None,
        channel: bool,
    ) -> None:
        """Hands the other ends to the program, and keeps none of them."""
        theirs = []
        try:
            theirs.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) if stdin is None else os.dup(stdin))
            theirs += [self._make_pipe() for _ in range(3 if channel else 2)]
            if channel:
                argv = [*argv, str(process.number_of(theirs[3]))]
            process.start(argv, cwd=cwd, env=env, files=theirs)
        finally:
            for file in theirs:
                os.close(file)

    def _make_pipe(self) -> int:
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        self._buffers[ours] = bytearray()
        self.open.add(ours)
        return theirs

    def read(self, file: int) -> None:
        """What is there; past the limit the run is over."""
        while True:
            try:
                data = os.read(file, _CHUNK)
            except BlockingIOError:
                return
            if not data:
                self.open.discard(file)
                return
            self._left -= len(data)
            if self._left < 0:
                raise TooLarge(
                    f"the tool wrote more than {self._limit:,} bytes and was ended; make it write less, "
                    "or raise limits.output_bytes in your config",
                    details={"limit": self._limit},
                )
            self._buffers[file] += data

    def drain(self) -> bool:
        for file in list(self.open):
            self.read(file)
        return not self.open

    def finished(self, exit_code: int) -> Finished:
        stdout, stderr, *channel = map(bytes, self._buffers.values())
        return Finished(exit_code=exit_code, stdout=stdout, stderr=stderr, channel=channel[0] if channel else b"")

    def so_far(self) -> dict[str, str]:
        """What was written until now."""
        texts = [data.decode("utf-8", "replace") for data in self._buffers.values()]
        return dict(zip(("stdout", "stderr"), texts, strict=False))

    def close(self) -> None:
        for file in self._buffers:
            with contextlib.suppress(OSError):
                os.close(file)
        self._buffers = {}


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

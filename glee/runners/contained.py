"""A program in a container. Its standard input is the lifeline: let go of it, and the container is gone.

    Glee ──lifeline──► the feeder ──orders, request, then silence──► docker run ──► process one ──► the program

The feeder holds what process one is told, however long, so that nothing here waits until the container exists. If
Glee dies it lives on for a moment, and removes the container by name should a tool have found a way to keep it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import select
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import structs

from glee.definitions.isolation import Isolation
from glee.errors import SandboxUnavailable, Unavailable
from glee.runners.processes import SHOWN, Finished
from glee.sandbox.container import Container
from glee.sandbox.containers import removal, remove
from glee.sandbox.process_one import CHANNEL, NOT_RUN, read_mark, write_orders

_PATIENCE: Final = 5.0
"""Seconds in which an engine ends a container that was let go of, before it is removed by name."""
_FEEDER: Final = 'cat "$1" -; exec >/dev/null; sleep "$2"; shift 2; exec "$@"'
_LOST: Final = 125
"""The client's exit code if it could not start a container, or lost sight of it."""
_LONGEST: Final = 131_071
_MOST: Final = 2_000_000
"""Bytes of one argument, and of all: what the kernel takes."""


class ContainedProcess:
    def __init__(self, container: Container, isolation: Isolation) -> None:
        self.isolation = isolation
        self.exit_file: int | None = None
        self._container = container
        self._mark = secrets.token_hex(16)
        self._lifeline: int | None = None
        self._feeder: subprocess.Popen[bytes] | None = None
        self._client: subprocess.Popen[bytes] | None = None
        self._program = ""

    def number_of(self, channel: int) -> int:
        return CHANNEL

    def start(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], files: Sequence[int]) -> None:
        if not cwd.is_dir():
            raise NotADirectoryError(cwd)
        stdin, stdout, stderr, *channel = files
        self._program = argv[0]
        own = {name: value for name, value in env.items() if name != "PATH"}  # the image has one
        _check_size([*argv, *own.values()])
        request = _read_all(stdin)
        orders = write_orders(argv, env=own, mark=self._mark)
        sizes = [str(len(orders)), str(len(request)), str(CHANNEL) if channel else "no"]
        line = self._feed(orders + request)
        try:
            self._client = subprocess.Popen(
                [*self._container.argv, *sizes],
                stdin=line,
                stdout=channel[0] if channel else stdout,  # what a function prints then goes to standard error
                stderr=stderr,
                env=self._container.engine.env,
                cwd="/",
                start_new_session=True,
            )
        finally:
            os.close(line)
        self.exit_file = os.pidfd_open(self._client.pid)

    def _feed(self, data: bytes) -> int:
        """The end of a pipe that gives this, and then nothing until the lifeline is let go of."""
        told = os.memfd_create("orders", os.MFD_CLOEXEC)
        ours, theirs = os.pipe()
        held, self._lifeline = os.pipe()
        try:
            with open(told, "wb", closefd=False) as file:
                file.write(data)
            self._feeder = subprocess.Popen(
                ["sh", "-c", _FEEDER, "glee", f"/dev/fd/{told}", f"{_PATIENCE:g}", *removal(self._container)],
                stdin=held,
                stdout=theirs,
                stderr=subprocess.DEVNULL,
                pass_fds=[told],
                env={"PATH": os.defpath, **self._container.engine.env},
                cwd="/",
                start_new_session=True,
            )
        except BaseException:
            os.close(ours)
            raise
        finally:
            for file_number in (told, theirs, held):
                os.close(file_number)
        return ours

    def is_over(self) -> bool:
        return True

    def collect(self, drain: Callable[[], bool]) -> int:
        """The engine's client ends when the container is gone, and with it all that could write."""
        assert self._client is not None
        code = self._client.wait()
        drain()
        if code < 0:
            raise SandboxUnavailable(
                f"{self._container.engine.name} was ended from outside, and the container with it; "
                "the tool may have done part of its work"
            )
        return code

    def check(self, finished: Finished) -> Finished:
        """The engine's own failures have exit codes that programs have too; only process one knows which it was."""
        if finished.exit_code not in NOT_RUN:
            return finished
        stderr, word = read_mark(finished.stderr, self._mark)
        if word == "missing":
            raise self._missing()
        if not word:
            raise self._refused(stderr.decode("utf-8", "replace"))
        return structs.replace(finished, stderr=stderr)

    def _missing(self) -> Unavailable:
        link = f", which leads to {os.path.realpath(self._program)}," if Path(self._program).is_symlink() else ""
        where = f"in the image {self._container.image}" if self._container.image else "there"
        return Unavailable(f"the program {self._program}{link} is not {where}; add it, or correct the manifest")

    def _refused(self, said: str) -> SandboxUnavailable:
        engine, image = self._container.engine.name, self._container.image
        if "no such image" in said.lower() or "image not known" in said.lower():
            return SandboxUnavailable(
                f"the image {image} is not on this machine, and Glee fetches none; run `{engine} pull {image}`"
            )
        lines = [line for line in said.strip().splitlines() if len(line) <= SHOWN // 8]
        needs = f"the image {image} needs /bin/sh and dd, and " if image else ""
        return SandboxUnavailable(
            f"{engine} did not run the tool to its end: {' '.join(lines[:4]) or 'it does not say why'}; "
            f"{needs}{engine} must be able to run here"
        )

    def end(self) -> bool:
        """Lets go, and waits until the engine's client has seen the container go; else it is removed by name."""
        lifeline, self._lifeline = self._lifeline, None
        if lifeline is not None:
            os.close(lifeline)
        whole = True
        if self._client is not None:
            whole = self._end_client(self._client)
            self._client = None
        exit_file, self.exit_file = self.exit_file, None
        if exit_file is not None:
            os.close(exit_file)
        if self._feeder is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._feeder.pid, signal.SIGKILL)
            self._feeder.wait()
            self._feeder = None
        return whole

    def _end_client(self, client: subprocess.Popen[bytes]) -> bool:
        if client.returncode is None and self.exit_file is not None:
            watch = select.poll()
            watch.register(self.exit_file, select.POLLIN)
            watch.poll(_PATIENCE * 1000)
        code = client.poll()
        if code is not None and code >= 0 and code != _LOST:
            return True
        whole = remove(self._container)
        if code is None:
            with contextlib.suppress(ProcessLookupError):
                client.kill()
            client.wait()
            whole = remove(self._container)  # it may have been about to make it
        return whole


def _read_all(file: int) -> bytes:
    parts = []
    while part := os.read(file, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _check_size(words: Sequence[str]) -> None:
    sizes = [len(os.fsencode(word)) for word in words]
    if max(sizes) > _LONGEST or sum(sizes) > _MOST:
        raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))
    if any("\0" in word for word in words):
        raise ValueError("embedded null byte")

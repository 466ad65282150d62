"""A program in a jail that waits for it. The line to the jail is all that there is to hold: let go, and it is gone."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from glee.errors import SandboxUnavailable
from glee.runners.processes import Finished
from glee.sandbox.jails import Jail

if TYPE_CHECKING:
    from glee.runners.way_out import WayOut
    from glee.sandbox.recording import Recorder

CHANNEL: Final = 3
"""The number of the channel in a jail: the first after the standard streams."""
_PATIENCE: Final = 5.0
"""Seconds in which the kernel ends every process of a jail, unless one hangs in the kernel itself."""


class HeldProcess:
    """What every run in a jail has in common, however it came there."""

    def __init__(self, jail: Jail) -> None:
        self.exit_file: int | None = None
        self.isolation = jail.isolation
        self._jail = jail
        self._status: int | None = None

    def number_of(self, channel: int) -> int:
        return CHANNEL

    def collect(self, drain: Callable[[], bool]) -> int:
        """All that could write is gone already."""
        assert self._status is not None
        drain()
        return self._status

    def check(self, finished: Finished) -> Finished:
        """The jail has said so already."""
        return finished

    def _own(self, files: Sequence[int]) -> None:
        """Run by root, what was made for this run is the run's own, so that it can open it by name: /dev/stdout."""
        if os.getuid() != 0:
            return
        for file in files:
            status = os.fstat(file)
            if stat.S_ISFIFO(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink == 0):
                os.fchown(file, *self._jail.identity)


class JailedProcess(HeldProcess):
    def __init__(self, jail: Jail, way_out: WayOut | None = None, recorder: Recorder | None = None) -> None:
        super().__init__(jail)
        self._way_out = way_out
        self._recorder = recorder
        self._line: socket.socket | None = None
        self._is_ready = False

    def start(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], files: Sequence[int]) -> None:
        if not cwd.is_dir():
            raise NotADirectoryError(cwd)
        spare = self._jail.take()
        self._line = spare.line
        self._is_ready = spare.is_ready
        self.exit_file = self._line.fileno()
        if self._way_out is not None:
            env = {**env, **self._way_out.environment}
        self._own(files)
        try:
            self._jail.send(spare, argv, env=env, files=files)
        except ConnectionError:
            self.is_over()  # it says why, if it can
            raise SandboxUnavailable("the jail was gone before it was used; nothing was run, call again") from None

    def is_over(self) -> bool:
        assert self._line is not None
        alone = self._way_out is None and self._recorder is None
        news = receive(self._line) if alone else self._receive_with(self._line)
        if news in (b"L", b"N"):
            return False
        if news == b"R":
            self._is_ready = True
            return False
        if news[:1] == b"X":
            self._status = int(news[1:])
            return True
        if news[:1] == b"F":
            number = int(news[1:])
            raise OSError(number, os.strerror(number))
        if news[:1] == b"E":
            raise SandboxUnavailable(
                f"the sandbox could not be set up, so nothing was run: {news[1:].decode('utf-8', 'replace')}"
            )
        happened = "it may have done part of its work" if self._is_ready else "nothing was run, call again"
        raise SandboxUnavailable(f"the jail was ended from outside; {happened}")

    def _receive_with(self, line: socket.socket) -> bytes:
        """News, and with some of them a descriptor: the door at which the run knocks, or where its calls are told."""
        news, files = receive_files(line)
        for file in files:
            if news == b"L" and self._way_out is not None:
                self._way_out.open(socket.socket(fileno=file))
            elif news == b"N" and self._recorder is not None:
                self._recorder.listen(file)
            else:
                os.close(file)
        return news

    def end(self) -> bool:
        line, self._line = self._line, None
        if line is None:
            return True
        self.exit_file = None
        whole = True
        if self._status is None:
            whole = end_jail(line)
        line.close()
        if self._way_out is not None:
            self._way_out.close()
        self._jail.refill()
        return whole


def receive(line: socket.socket) -> bytes:
    """The next words; none once the other side is gone."""
    for _ in range(2):  # a reset comes before the words that were sent ahead of it
        with contextlib.suppress(ConnectionError):
            return line.recv(65_536)
    return b""


def receive_files(line: socket.socket) -> tuple[bytes, list[int]]:
    """The same, with a descriptor if one came."""
    for _ in range(2):
        with contextlib.suppress(ConnectionError):
            news, files, _, _ = socket.recv_fds(line, 65_536, 1)
            return news, files
    return b"", []


def end_jail(line: socket.socket) -> bool:
    """Tells process one to end everything, and waits until it says that it did."""
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_WR)
    watch = select.poll()
    watch.register(line, select.POLLIN)
    while watch.poll(_PATIENCE * 1000):
        try:
            news = line.recv(2000)
        except OSError:
            return True
        if news != b"R":
            return True
    return False

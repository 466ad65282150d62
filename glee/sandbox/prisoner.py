"""What `glee doctor` runs in a jail: it tries one thing after the other, and says of each how it went.

The jail sees nothing of Glee, so this text itself is handed to an interpreter. It imports nothing but the standard
library and nothing newer than Python 3.8. Lines of JSON come out: the number of a trial as it begins, then the
number, whether it was held, and the system's answer.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import mmap
import os
import resource
import signal
import socket
import struct
import sys
import termios
import time
from collections.abc import Callable
from typing import Any, NoReturn

_GET_PID_BY_THE_32_BIT_DOOR = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"
_PATIENCE = 5
_WAITS = 30
"""Seconds that a process waits which was left behind, if nothing ends it."""


class Prisoner:
    """Each trial has a process of its own, so that none can end or change the others."""

    def __init__(self, words: Any) -> None:
        self._numbers = words["numbers"]
        self._host = words["world"]["HOST"]
        self._own = {os.getpid(), os.getppid()}
        self._codes: list[str] = words["codes"]
        self._scope = {
            **words["world"],
            "TMP": os.environ["TMPDIR"],
            "os": os,
            "socket": socket,
            "resource": resource,
            "ctypes": ctypes,
            "pack": struct.pack,
            "call": self.call,
            "host": self.host,
            "leave_a_daemon": leave_a_daemon,
            "type_into_terminal": type_into_terminal,
            "enter_32_bit": enter_32_bit,
            "fork_often": fork_often,
            "eat_together": eat_together,
        }

    def try_all(self) -> None:
        for number, code in enumerate(self._codes):
            say([number])
            try:
                pid = os.fork()
            except OSError as error:
                say([number, False, f"it could not be tried: {error}"])
                continue
            if pid == 0:
                self._try(number, code)
            how = os.waitpid(pid, 0)[1]
            if os.WIFSIGNALED(how):
                say([number, True, f"ended by {signal.Signals(os.WTERMSIG(how)).name}"])

    def _try(self, number: int, code: str) -> NoReturn:
        signal.alarm(_PATIENCE)
        try:
            eval(code, dict(self._scope))  # noqa: S307
            say([number, False, ""])
        except (OSError, MemoryError) as error:
            say([number, True, getattr(error, "strerror", None) or str(error) or type(error).__name__])
        except BaseException as error:
            say([number, False, f"it could not be tried: {error!r}"])
        os._exit(0)

    def call(self, name: str, *arguments: Any) -> int:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.syscall.restype = ctypes.c_long
        values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
        result: int = libc.syscall(ctypes.c_long(self._numbers[name]), *values)
        if result < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return result

    def host(self) -> int:
        """The number of a process outside. Numbers start anew in a process namespace, so it may be one of our own."""
        if self._host in self._own or self._host == os.getpid():
            raise ProcessLookupError(3, "No such process: here that number is its own")
        return int(self._host)


def say(words: Any) -> None:
    os.write(1, json.dumps(words).encode() + b"\n")


def leave_a_daemon() -> None:
    def detach() -> None:
        os.setsid()
        fork(wait)

    def wait() -> None:
        os.closerange(0, 3)
        time.sleep(_WAITS)

    fork(detach)


def type_into_terminal() -> None:
    """Into the one that standard input is, made one's own first, as the kernel wants it."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    fcntl.ioctl(0, termios.TIOCSTI, b"x")


def enter_32_bit() -> None:
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(_GET_PID_BY_THE_32_BIT_DOOR)
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()


def fork_often(most: int) -> None:
    """One process more than there may be."""
    children: list[int] = []
    try:
        children.extend(fork(lambda: time.sleep(_WAITS)) for _ in range(most + 1))
    finally:
        end(children)


def eat_together(most: int) -> None:
    """Each less than one process may have; held if not all of them have theirs at the same time."""
    children: list[int] = []
    try:
        for _ in range(3):
            fed, tell = os.pipe()
            children.append(fork(lambda tell=tell: eat(most * 6 // 10, tell)))  # type: ignore[misc]
            os.close(tell)
            if not os.read(fed, 1):
                raise MemoryError
        if any(os.waitpid(pid, os.WNOHANG)[0] for pid in children):
            raise MemoryError
    finally:
        end(children)


def eat(size: int, tell: int) -> None:
    food = bytearray(b"x") * size
    os.write(tell, b"+")
    time.sleep(_WAITS)
    del food


def fork(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return pid


def end(children: list[int]) -> None:
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


if __name__ == "__main__":
    Prisoner(json.loads(sys.argv[1])).try_all()

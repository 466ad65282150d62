"""What a run tries to touch, heard from the kernel. It is told of each call and lets it go on; the jail decides."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import socket
import struct
import threading
from typing import Final

from msgspec import Struct

from glee.sandbox.syscalls import machine, numbers

_RECEIVE: Final = 0xC050_2100
_SEND: Final = 0xC018_2101
_IS_VALID: Final = 0x4008_2102
_MOST: Final = 20_000
"""Touches that are kept."""
_NOTICE: Final = struct.Struct("=QIIiIQ6Q")
"""Id, process, flags, number, architecture, instruction, arguments."""
_ANSWER: Final = struct.Struct("=Qqii")
_GO_ON: Final = 1
_HERE: Final = -100
_PAGE: Final = 4096
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_PATHS: Final = {
    "open": (None, 0), "openat": (0, 1), "openat2": (0, 1), "creat": (None, 0), "execve": (None, 0),
    "execveat": (0, 1), "mkdir": (None, 0), "mkdirat": (0, 1), "rmdir": (None, 0), "unlink": (None, 0),
    "unlinkat": (0, 1), "rename": (None, 1), "renameat": (2, 3), "renameat2": (2, 3), "link": (None, 1),
    "linkat": (2, 3), "symlink": (None, 1), "symlinkat": (1, 2), "truncate": (None, 0), "mknod": (None, 0),
    "mknodat": (0, 1), "chmod": (None, 0), "fchmodat": (0, 1), "stat": (None, 0), "lstat": (None, 0),
    "newfstatat": (0, 1), "statx": (0, 1), "access": (None, 0), "faccessat": (0, 1), "faccessat2": (0, 1),
    "readlink": (None, 0), "readlinkat": (0, 1), "chdir": (None, 0),
}  # fmt: skip
"""Where each call has the folder it starts from, and its path."""
_ALSO: Final = {"rename": (None, 0), "renameat": (0, 1), "renameat2": (0, 1)}
_CHANGING: Final = ("truncate", "chmod", "fchmodat")
LOOKING: Final = (
    "stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2", "readlink", "readlinkat", "chdir",
)  # fmt: skip
"""Calls that only look whether something is there."""
_READING: Final = {"open": 1, "openat": 2, "execve": None, "execveat": None} | dict.fromkeys(LOOKING)
"""Calls that may only read: where their flags are, if they have any."""


class Touch(Struct, frozen=True):
    """A path and what was tried with it, or an address."""

    what: str
    writes: bool = False
    makes: bool = False
    """True if something is made or removed there, for which its folder must be writable."""
    looks: bool = False
    """True if it only looked whether it is there."""
    address: bool = False


class Recorder:
    """Listens in a thread until the run is over. What it hears may be a moment old, so nothing is decided by it."""

    def __init__(self) -> None:
        self.touches: dict[Touch, None] = {}
        self._names = {number: name for name, number in numbers(machine() or "x86_64").items()}
        self._threads: list[threading.Thread] = []

    def listen(self, file: int) -> None:
        thread = threading.Thread(target=self._serve, args=(file,), name="glee-recorder", daemon=True)
        self._threads.append(thread)
        thread.start()

    def wait(self) -> None:
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _serve(self, file: int) -> None:
        watch = select.poll()
        watch.register(file, select.POLLIN)
        try:
            while watch.poll()[0][1] & select.POLLIN:  # else no process has the filter any more
                notice = bytearray(_NOTICE.size)
                try:
                    fcntl.ioctl(file, _RECEIVE, notice)
                except OSError:  # whoever made the call is gone
                    continue
                token, pid, _, number, _, _, *arguments = _NOTICE.unpack(notice)
                with contextlib.suppress(OSError, ValueError, KeyError):  # it may be gone by now, or have lied
                    touches = self._read(pid, self._names.get(number, ""), arguments)
                    fcntl.ioctl(file, _IS_VALID, struct.pack("=Q", token))  # it was that process whose memory was read
                    if len(self.touches) < _MOST:
                        self.touches |= dict.fromkeys(touches)
                with contextlib.suppress(OSError):
                    fcntl.ioctl(file, _SEND, bytearray(_ANSWER.pack(token, 0, 0, _GO_ON)))
        finally:
            os.close(file)

    def _read(self, pid: int, name: str, arguments: list[int]) -> list[Touch]:
        if name == "connect":
            return [Touch(_read_address(_read_memory(pid, arguments[1], min(arguments[2], 128))), address=True)]
        writes = name not in _READING
        makes = writes and name not in _CHANGING
        flags = _READING.get(name)
        if flags is not None:
            writes, makes = bool(arguments[flags] & _WRITES), bool(arguments[flags] & os.O_CREAT)
        places = [_PATHS[name], *([_ALSO[name]] if name in _ALSO else [])]
        return [
            Touch(_read_path(pid, arguments, *place), writes, makes=makes, looks=name in LOOKING) for place in places
        ]


def _read_memory(pid: int, address: int, size: int) -> bytes:
    file = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(file, size, address)
    finally:
        os.close(file)


def _read_path(pid: int, arguments: list[int], folder: int | None, path: int) -> str:
    address = arguments[path]
    text = b""
    while b"\0" not in text and len(text) < _PAGE:
        text += _read_memory(pid, address + len(text), _PAGE - (address + len(text)) % _PAGE)
    name = os.fsdecode(text.split(b"\0", 1)[0])
    if not name:  # of the descriptor itself
        raise ValueError("no path")
    if name.startswith("/"):
        return os.path.normpath(name)
    start = struct.unpack("=i", struct.pack("=I", arguments[folder] & 0xFFFF_FFFF))[0] if folder is not None else _HERE
    base = os.readlink(f"/proc/{pid}/cwd" if start == _HERE else f"/proc/{pid}/fd/{start}")
    return os.path.normpath(f"{base}/{name}")


def _read_address(data: bytes) -> str:
    family, port = struct.unpack_from("=H", data)[0], struct.unpack_from(">H", data, 2)[0]
    if family == socket.AF_INET:
        return f"{socket.inet_ntop(family, data[4:8])}:{port}"
    if family == socket.AF_INET6:
        return f"[{socket.inet_ntop(family, data[8:24])}]:{port}"
    raise ValueError("a local socket")

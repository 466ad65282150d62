"""User and network namespaces: whose identity a run has, and which network it sees."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import struct
from collections.abc import Callable
from typing import Final

from glee.sandbox import kernel

_SET_FLAGS: Final = 0x8914
_UP_AND_RUNNING: Final = 0x41


def enter_user(uid: int, gid: int, proc: int | None = None) -> None:
    """A user namespace in which this process is who it was, and nobody else exists.

    `proc` is a descriptor of the machine's /proc, for a process that does not see it any more.
    """
    kernel.unshare(kernel.NEW_USER)
    base = "/proc/self" if proc is None else "self"
    _write(f"{base}/setgroups", "deny", proc)
    _write(f"{base}/uid_map", f"{uid} {uid} 1", proc)
    _write(f"{base}/gid_map", f"{gid} {gid} 1", proc)


def become(uid: int, gid: int) -> None:
    """From root to an unprivileged identity, with no way back."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    kernel.set_dumpable(True)  # the change of identity took that away, and /proc/self with it


def make_empty_network() -> int:
    """A descriptor of a network in which there is nothing, not even a loopback that is up."""
    return _borrow(kernel.NEW_NET, "net")


def open_door(port: int) -> socket.socket:
    """In a network of one's own: loopback is raised, and a socket listens there for whoever is handed it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", b"lo", _UP_AND_RUNNING)
        fcntl.ioctl(control, _SET_FLAGS, request)
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    door.bind(("127.0.0.1", port))
    door.listen(128)
    return door


def make_id_map(owner: tuple[int, int], shown: tuple[int, int]) -> int:
    """A descriptor of a user namespace through which one owner of files is seen as another."""

    def write_maps(pid: int) -> None:
        _write(f"/proc/{pid}/uid_map", f"{owner[0]} {shown[0]} 1")
        _write(f"/proc/{pid}/gid_map", f"{owner[1]} {shown[1]} 1")

    return _borrow(kernel.NEW_USER, "user", write_maps)


def _borrow(flag: int, name: str, prepare: Callable[[int], None] | None = None) -> int:
    """The descriptor keeps the namespace alive. Who made it goes now, or with this process if that is killed."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            ours.close()
            kernel.unshare(flag)
            theirs.send(b"+")
            theirs.recv(1)
        os._exit(1)
    theirs.close()
    try:
        if ours.recv(1) != b"+":
            raise OSError(f"a new {name} namespace cannot be made")
        if prepare is not None:
            prepare(pid)
        return os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        ours.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _write(path: str, text: str, folder: int | None = None) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)

"""System calls that Python has no name for. Each raises OSError, with what was tried, if the kernel refuses.

Loaded by the fork server, in an interpreter that knows nothing but the standard library.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
from typing import Any, Final

from glee.sandbox.syscalls import machine, numbers

_libc = ctypes.CDLL(None, use_errno=True)
_python = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = _python.syscall.restype = ctypes.c_long
_NUMBERS: Final = numbers(machine() or "x86_64")

NEW_MOUNTS: Final = 0x0002_0000
NEW_IPC: Final = 0x0800_0000
NEW_USER: Final = 0x1000_0000
NEW_PIDS: Final = 0x2000_0000
NEW_NET: Final = 0x4000_0000

READ_ONLY: Final = 1
NO_SETUID: Final = 2
NO_DEVICES: Final = 4
NO_EXEC: Final = 8
TELL: Final = 8
_IDMAP: Final = 0x0010_0000

_MS_PRIVATE: Final = 1 << 18
_MS_RECURSIVE: Final = 1 << 14
_AT_FDCWD: Final = -100
_AT_RECURSIVE: Final = 0x8000
_AT_EMPTY_PATH: Final = 0x1000
_OPEN_TREE_CLONE: Final = 1
_MOVE_FROM_EMPTY: Final = 0x04
_MOVE_TO_EMPTY: Final = 0x40
_DETACH: Final = 2
_PARENT_DEATH: Final = 1
_DUMPABLE: Final = 4
_SUBREAPER: Final = 36
_NO_NEW_PRIVILEGES: Final = 38
_CAPABILITY_VERSION: Final = 0x2008_0522
_NO_SYMLINKS: Final = 0x04
_NO_MAGIC_LINKS: Final = 0x02


def call(name: str, *arguments: Any) -> int:
    """One system call by its name. Numbers are passed whole, bytes as text that ends in a zero."""
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result: int = _libc.syscall(ctypes.c_long(_NUMBERS[name]), *values)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")
    return result


def clone(flags: int) -> int:
    """Like `os.fork`, into new namespaces; tells the interpreter as `os.fork` does."""
    _python.PyOS_BeforeFork()
    pid: int = _python.syscall(
        ctypes.c_long(_NUMBERS["clone"]), ctypes.c_ulong(flags | signal.SIGCHLD), None, None, None, None
    )
    if pid == 0:
        _python.PyOS_AfterFork_Child()
        return 0
    error = ctypes.get_errno()
    _python.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(error, f"clone: {os.strerror(error)}")
    return pid


def unshare(flags: int) -> None:
    call("unshare", flags)


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    call("mount", source.encode(), os.fsencode(target), kind.encode(), flags, options.encode())


def make_mounts_private() -> None:
    """So that nothing done here is seen outside."""
    call("mount", None, b"/", None, _MS_PRIVATE | _MS_RECURSIVE, None)


def clone_mount(directory: int, path: str = "") -> int:
    """A descriptor of a detached copy of what is at a path, with all that is mounted below it."""
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE | (0 if path else _AT_EMPTY_PATH)
    return call("open_tree", directory, os.fsencode(path), flags)


def attach_mount(tree: int, target: int) -> None:
    """Onto a place given as a descriptor: a path could be made to lead elsewhere meanwhile."""
    call("move_mount", tree, b"", target, b"", _MOVE_FROM_EMPTY | _MOVE_TO_EMPTY)


def set_mount(tree: int, attributes: int, *, ids: int | None = None, recursive: bool = True) -> None:
    """Attributes of a detached mount; with `ids`, the descriptor of a user namespace, owners are mapped through it."""
    value = struct.pack("=QQQQ", attributes | (0 if ids is None else _IDMAP), 0, 0, ids or 0)
    flags = _AT_EMPTY_PATH | (_AT_RECURSIVE if recursive else 0)
    call("mount_setattr", tree, b"", flags, value, len(value))


def set_mount_at(path: str, attributes: int) -> None:
    value = struct.pack("=QQQQ", attributes, 0, 0, 0)
    call("mount_setattr", _AT_FDCWD, os.fsencode(path), 0, value, len(value))


def change_root(folder: str) -> None:
    """Makes a folder the root, and lets go of all that was mounted before."""
    os.chdir(folder)
    call("pivot_root", b".", b".")
    call("umount2", b".", _DETACH)
    os.chdir("/")


def unmount(path: str) -> None:
    call("umount2", os.fsencode(path), _DETACH)


def open_path(path: str, root: int | None = None) -> int:
    """A descriptor of a path that leads through no symbolic link, so that nobody swaps one in meanwhile."""
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, _NO_SYMLINKS | _NO_MAGIC_LINKS)
    try:
        return call("openat2", _AT_FDCWD if root is None else root, os.fsencode(path), how, len(how))
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno or 0), path) from None


def close_from(first: int) -> None:
    call("close_range", first, 0xFFFF_FFFF, 0)


def set_parent_death(number: int) -> None:
    call("prctl", _PARENT_DEATH, number, 0, 0, 0)


def adopt_orphans() -> None:
    """From here on, what a descendant leaves behind becomes a child of this process."""
    call("prctl", _SUBREAPER, 1, 0, 0, 0)


def set_dumpable(dumpable: bool) -> None:
    """Whether another process of the same user can look into this one, and this one into its own /proc."""
    call("prctl", _DUMPABLE, int(dumpable), 0, 0, 0)


def forbid_new_privileges() -> None:
    call("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)


def drop_capabilities() -> None:
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    call("capset", header, bytes(24))


def install_filter(program: bytes, flags: int = 0) -> int:
    """With `TELL`, returns a descriptor at which what the filter asks about is told."""
    buffer = ctypes.create_string_buffer(program, len(program))
    description = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    return call("seccomp", 1, flags, description)

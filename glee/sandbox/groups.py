"""Control groups: what all processes of a run may use together. One group for each run, made before the run is.

Loaded by the fork server. Version 2 has one tree for all controllers, version 1 one for each.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Final

NEEDED: Final = ("memory", "pids")
_LIMITS: Final = {
    "memory": ("memory.max", "memory.limit_in_bytes"),
    "pids": ("pids.max", "pids.max"),
}
_NO_SWAP: Final = {"memory.swap.max": "0", "memory.memsw.limit_in_bytes": None, "memory.oom.group": "1"}
"""Set where they are there; None stands for the limit on memory."""


class Groups:
    """Below the groups that this process is in itself, so that what holds it holds its runs too."""

    def __init__(self, folders: dict[str, str]) -> None:
        self._folders = {controller: f"{folder}/glee-{os.getpid()}" for controller, folder in folders.items()}
        self._ended: list[str] = []
        for folder in sorted(set(self._folders.values())):
            _sweep(os.path.dirname(folder))
            os.makedirs(folder, exist_ok=True)
            if os.path.exists(f"{folder}/cgroup.subtree_control"):
                _write(f"{folder}/cgroup.subtree_control", " ".join(f"+{name}" for name in NEEDED))

    def make(self, name: str, memory: int, processes: int) -> list[int]:
        """Descriptors; whoever writes a zero to each is in the group, and so is all that it starts."""
        for folder in self._leaves(name):
            os.mkdir(folder)
        for controller, value in (("memory", memory), ("pids", processes)):
            folder = f"{self._folders[controller]}/{name}"
            _write_first([f"{folder}/{file}" for file in _LIMITS[controller]], str(value))
            for file, limit in _NO_SWAP.items() if controller == "memory" else ():
                with contextlib.suppress(OSError):
                    _write(f"{folder}/{file}", str(memory) if limit is None else limit)
        return [os.open(f"{folder}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC) for folder in self._leaves(name)]

    def _leaves(self, name: str) -> list[str]:
        return sorted({f"{folder}/{name}" for folder in self._folders.values()})

    def remove(self, name: str) -> None:
        """When its run is over; a group that is still busy goes with one of the next."""
        self._ended += self._leaves(name)
        self._ended = [folder for folder in self._ended if not _remove(folder)]

    def close(self) -> None:
        for folder in set(self._folders.values()):
            _clear(folder)


def find_groups() -> Groups:
    """Where groups can be made; OSError if nowhere."""
    with open("/proc/self/cgroup", errors="surrogateescape") as file:
        own = dict(line.rstrip("\n").split(":", 2)[1:] for line in file)
    mounts = dict(_read_mounts())
    folders: dict[str, str] = {}
    for controller in NEEDED:
        if controller in mounts:
            folders[controller] = _find_own(mounts[controller], own.get(controller, "/"))
    if len(folders) < len(NEEDED):
        if "" not in mounts:
            raise OSError("no control groups are mounted")
        folders = dict.fromkeys(NEEDED, _find_delegated(mounts[""], own.get("", "/")))
    return Groups(folders)


def _read_mounts() -> Iterator[tuple[str, str]]:
    """Controllers and where they are; that of version 2, which has them all, has no name."""
    with open("/proc/self/mounts", errors="surrogateescape") as file:
        for line in file:
            _, place, kind, options, *_ = line.split(" ")
            if kind == "cgroup2":
                yield "", place
            elif kind == "cgroup":
                yield from ((name, place) for name in NEEDED if name in options.split(","))


def _find_own(mount: str, path: str) -> str:
    """The path may be told from further up than the mount shows, as in a container."""
    own = mount + path.rstrip("/")
    return own if os.path.isdir(own) else mount


def _find_delegated(mount: str, path: str) -> str:
    """The nearest group above this process that hands both controllers on and lets us make groups in it."""
    folder = _find_own(mount, path)
    while len(folder) >= len(mount):
        with contextlib.suppress(OSError), open(f"{folder}/cgroup.subtree_control") as file:
            if set(NEEDED) <= set(file.read().split()) and os.access(f"{folder}/cgroup.procs", os.W_OK):
                return folder
        folder = os.path.dirname(folder)
    raise OSError(
        "no control group was delegated to this user; on systemd, start Glee with: systemd-run --user --scope"
    )


def _sweep(parent: str) -> None:
    """What servers that were killed left behind."""
    with contextlib.suppress(OSError):
        for name in os.listdir(parent):
            pid = name.removeprefix("glee-")
            if pid != name and pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
                _clear(f"{parent}/{name}")


def _clear(folder: str) -> None:
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            _remove(f"{folder}/{name}")
    _remove(folder)


def _remove(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _write_first(paths: list[str], text: str) -> None:
    """The name of a limit depends on the version."""
    _write(next((path for path in paths if os.path.exists(path)), paths[0]), text)


def _write(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)

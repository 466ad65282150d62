"""What is seen where in a jail that has mounts of its own, from the outermost folder in."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final

from glee.sandbox.plan import Step
from glee.sandbox.programs import RUNTIME
from glee.sandbox.spec import Spec, is_below

HOME: Final = "/run/home"
TMP: Final = "/tmp"
_SYSTEM: Final = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/locale.alias",
    "/etc/timezone",
    "/etc/alternatives",
    "/etc/ssl",
    "/etc/pki/tls",
    "/etc/pki/ca-trust",
    "/etc/ca-certificates",
    "/etc/mime.types",
)
_FOR_NETWORK: Final = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/gai.conf",
    "/etc/host.conf",
)
NOT_SHOWN: Final = ("/etc/ssl/private", "/etc/pki/tls/private")
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_DEVICE_LINKS: Final = {
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
    "/dev/shm": TMP,
}
FRESH: Final = (TMP, HOME)
_MACHINES_OWN: Final = ("proc", "sys", "dev", "run", "tmp")


class Mounts:
    """What is seen where, from the outermost folder in."""

    def __init__(self, spec: Spec) -> None:
        self._links: dict[str, str] = dict(_DEVICE_LINKS)
        self._system: dict[str, str] = {}
        for path in (*RUNTIME, *_SYSTEM, *(_FOR_NETWORK if spec.network != "none" else ())):
            self._add_system(path)
        for path in spec.links:
            self._links[path] = os.readlink(path)
        self.grants = dict.fromkeys(_expand(spec.read), "r") | dict.fromkeys(_expand(spec.write), "w")
        self.pinned = _pins(spec)
        self.masks = [path for path in (*spec.hidden, *NOT_SHOWN) if os.path.exists(path) and self._covers(path)]
        self._cwd = spec.cwd

    def _add_system(self, path: str) -> None:
        """The same as on the machine, links included; a link out of what is shown is replaced by what it leads to."""
        if not os.path.exists(path):
            return
        real = os.path.realpath(path)
        if os.path.islink(path) and any(real.startswith(f"{folder}/") for folder in RUNTIME):
            self._links[path] = os.readlink(path)
        else:
            self._system[path] = real

    def _covers(self, path: str) -> bool:
        return any(is_below(path, folder) for folder in (*self.grants, *self._system))

    def steps(self) -> Iterator[Step]:
        binds: dict[str, tuple[str, str]] = {path: ("s", real) for path, real in self._system.items()}
        binds |= {path: (mode, path) for path, mode in self.grants.items()}
        binds |= {path: (mode, path) for path, mode in self.pinned.items()}
        tops = [path for path in binds if not any(is_below(path, other) for other in binds if other != path)]
        for path in tops:
            if any(is_below(path, fresh) for fresh in FRESH):
                yield ("late", _kind(path), path)
        for path in tops:
            yield (_kind(binds[path][1]), path)
        for path in DEVICES:
            yield ("file", path)
            yield ("bind", "d", path, path)
        for path, target in self._links.items():
            if not any(is_below(path, other) for other in binds):
                yield ("link", target, path)
        if not any(is_below(self._cwd, other) for other in binds):
            yield ("folder", self._cwd)
        for path in sorted(binds, key=lambda path: path.count("/")):
            yield ("bind", *binds[path], path)
        for path in self.masks:
            yield ("mask", path)

    def readable(self) -> Iterable[str]:
        return {*self._system.values(), *(path for path, mode in self.grants.items() if mode == "r")}

    def writable(self) -> Iterable[str]:
        return {path for path, mode in self.grants.items() if mode == "w"}


def _pins(spec: Spec) -> dict[str, str]:
    """What stays read-only inside a writable folder, and the folders on the way to it, which must not be renamed."""
    pins: dict[str, str] = {}
    for path in (*spec.guarded, *spec.hidden):
        granted = [folder for folder in spec.write if is_below(path, folder)]
        if not granted:
            continue
        if path in spec.guarded:
            pins[path] = "r"
        between = os.path.dirname(path)
        while between not in granted and len(between) > min(map(len, granted)):
            pins.setdefault(between, "w")
            between = os.path.dirname(between)
    return pins


def _expand(paths: Iterable[str]) -> Iterator[str]:
    """The root itself cannot be shown whole, but all that is in it can, apart from the kernel's and each run's own."""
    for path in paths:
        if path == "/":
            entries = (entry for entry in os.scandir("/") if not entry.is_symlink())
            yield from (entry.path for entry in entries if entry.name not in _MACHINES_OWN)
        else:
            yield path


def _kind(path: str) -> str:
    return "folder" if os.path.isdir(path) else "file"

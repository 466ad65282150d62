"""A description into the steps that a launcher carries out, with the layers that this machine has."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from glee.sandbox import rights
from glee.sandbox.plan import Step
from glee.sandbox.programs import RUNTIME
from glee.sandbox.seccomp import Net, compile_filter
from glee.sandbox.spec import Bounds, Spec

HOME: Final = "/run/home"
TMP: Final = "/tmp"
_SYSTEM: Final = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
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
_NOT_SHOWN: Final = ("/etc/ssl/private", "/etc/pki/tls/private")
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_DEVICE_LINKS: Final = {
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
    "/dev/shm": TMP,
}
_FRESH: Final = (TMP, HOME)
_MACHINES_OWN: Final = ("proc", "sys", "dev", "run")
_MB: Final = 1024 * 1024


class Abilities(Struct, frozen=True, kw_only=True):
    """What this machine can hold, as it was tried."""

    machine: str
    layers: frozenset[str]
    """Of user, mount, pid, proc, ipc, net, landlock, seccomp."""
    landlock: int = 0
    uid: int
    gid: int
    faults: dict[str, str] = {}
    """Why a layer is missing."""


def compile_steps(spec: Spec, abilities: Abilities) -> list[Step]:
    mounts = _Mounts(spec)
    steps: list[Step] = [("layer", layer) for layer in sorted(abilities.layers)]
    steps.append(("user", str(abilities.uid), str(abilities.gid)))
    steps += mounts.steps()
    steps += [("fresh", str(spec.bounds.tmp_mb * _MB), "mode=1777", TMP)]
    steps += [("fresh", str(spec.bounds.tmp_mb * _MB), f"mode=700,uid={abilities.uid},gid={abilities.gid}", HOME)]
    if "proc" in abilities.layers:
        steps.append(("processes", "/proc"))
    steps += _rules(mounts, abilities)
    steps += _limits(spec.bounds)
    net: Net = "none" if spec.network == "none" else "open"
    alone = "mount" not in abilities.layers
    steps += [("net", net), ("filter", compile_filter(abilities.machine, net, alone=alone).hex())]
    steps += [("version", str(abilities.landlock)), ("ports", "yes" if net == "none" else "no")]
    return steps


def _limits(bounds: Bounds) -> Iterator[Step]:
    for number, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, bounds.open_files),
        (resource.RLIMIT_NPROC, bounds.processes),
        (resource.RLIMIT_DATA, bounds.memory_mb * _MB),
        (resource.RLIMIT_FSIZE, bounds.file_mb * _MB),
        (resource.RLIMIT_CPU, bounds.cpu_seconds),
    ):
        hard = resource.getrlimit(number)[1]
        yield ("limit", str(number), str(value if hard == resource.RLIM_INFINITY else min(value, hard)))


class _Mounts:
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
        self.masks = [path for path in (*spec.hidden, *_NOT_SHOWN) if os.path.exists(path) and self._covers(path)]
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
        return any(_is_below(path, folder) for folder in (*self.grants, *self._system))

    def steps(self) -> Iterator[Step]:
        binds: dict[str, tuple[str, str]] = {path: ("s", real) for path, real in self._system.items()}
        binds |= {path: (mode, path) for path, mode in self.grants.items()}
        binds |= {path: (mode, path) for path, mode in self.pinned.items()}
        tops = [path for path in binds if not any(_is_below(path, other) for other in binds if other != path)]
        for path in tops:
            if any(_is_below(path, fresh) for fresh in _FRESH):
                yield ("late", _kind(path), path)
        for path in tops:
            yield (_kind(binds[path][1]), path)
        for path in _DEVICES:
            yield ("file", path)
            yield ("bind", "d", path, path)
        for path, target in self._links.items():
            if not any(_is_below(path, other) for other in binds):
                yield ("link", target, path)
        if not any(_is_below(self._cwd, other) for other in binds):
            yield ("folder", self._cwd)
        for path in sorted(binds, key=lambda path: path.count("/")):
            yield ("bind", *binds[path], path)
        for path in self.masks:
            yield ("mask", path)

    def readable(self) -> Iterable[str]:
        return {*self._system.values(), *(path for path, mode in self.grants.items() if mode == "r")}

    def writable(self) -> Iterable[str]:
        return {path for path, mode in self.grants.items() if mode == "w"}


def _rules(mounts: _Mounts, abilities: Abilities) -> Iterator[Step]:
    for path in mounts.readable():
        yield ("rule", str(rights.READ), path)
    for path in mounts.writable():
        yield ("rule", str(rights.WRITE), path)
    for path in _DEVICES:
        yield ("rule", str(rights.DEVICE), path)
    if "mount" in abilities.layers:
        yield ("inside", str(rights.LIST), "/")
        for path in _FRESH:
            yield ("inside", str(rights.WRITE), path)
        if "proc" in abilities.layers:
            yield ("inside", str(rights.LOOK), "/proc")


def _pins(spec: Spec) -> dict[str, str]:
    """What stays read-only inside a writable folder, and the folders on the way to it, which must not be renamed."""
    pins: dict[str, str] = {}
    for path in (*spec.guarded, *spec.hidden):
        granted = [folder for folder in spec.write if _is_below(path, folder)]
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
    """The root itself cannot be shown whole, but all that is in it can, apart from what is the kernel's."""
    for path in paths:
        if path == "/":
            yield from (entry.path for entry in os.scandir("/") if entry.name not in _MACHINES_OWN)
        else:
            yield path


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _kind(path: str) -> str:
    return "folder" if os.path.isdir(path) else "file"

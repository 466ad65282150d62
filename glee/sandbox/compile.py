"""A description into the steps that a launcher carries out, with the layers that this machine has."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

from glee.definitions.bounds import Bounds
from glee.errors import SandboxUnavailable
from glee.sandbox.mounts import HOME, TMP, Mounts
from glee.sandbox.plan import Step
from glee.sandbox.rules import rules_alone, rules_behind
from glee.sandbox.seccomp import Lack, Net, compile_filter, compile_recording
from glee.sandbox.spec import Spec

Level = Literal["full", "reduced"]
Minimum = Literal["full", "reduced", "none"]
"""What a run must at least be held by. No setting says none: it is for trying one layer alone."""

FULL: Final = frozenset({"user", "mount", "pid", "net", "ipc", "landlock", "seccomp"})
_FILES_SINCE: Final = 3
"""Before this version Landlock does not keep a file from being emptied."""
_SIGNALS_SINCE: Final = 6
DOOR: Final = 3128
"""The port inside a jail behind which the way out to named hosts is."""
_MB: Final = 1024 * 1024


class Abilities(Struct, frozen=True, kw_only=True):
    """What this machine can hold, as it was tried."""

    machine: str
    layers: frozenset[str]
    """Of user, mount, pid, proc, ipc, net, landlock, seccomp, group."""
    landlock: int = 0
    uid: int
    gid: int
    running: int = 0
    """How many threads this user has, which count where a run has no user namespace of its own."""
    faults: dict[str, str] = {}
    """Why a layer is missing."""

    @property
    def level(self) -> Level | None:
        """None where not even files and network can be held."""
        if self.layers >= FULL:
            return "full"
        files = "mount" in self.layers or ("landlock" in self.layers and self.landlock >= _FILES_SINCE)
        return "reduced" if files and "seccomp" in self.layers else None

    @property
    def can_fork(self) -> bool:
        """True where several runs of one template can be kept from each other, one after the other."""
        return self.layers >= FULL | {"proc"} and self.landlock >= _SIGNALS_SINCE

    def explain(self) -> str:
        missing = sorted(FULL - self.layers)
        return "; ".join(f"{layer}: {self.faults.get(layer, 'not there')}" for layer in missing)


def compile_steps(
    spec: Spec, abilities: Abilities, *, private: str, forks: bool = False, record: bool = False
) -> list[Step]:
    """`private` is where runs that have no mounts get a folder of their own; `forks` is for a template of many runs."""
    mounts = Mounts(spec)
    layers = abilities.layers
    steps: list[Step] = [("layer", layer) for layer in sorted(layers)]
    steps.append(("user", str(abilities.uid), str(abilities.gid)))
    if "mount" in layers:
        steps += _view(spec, mounts, abilities)
        steps += rules_behind(mounts, proc="proc" in layers)
    else:
        steps += [("private", private), *rules_alone(spec, mounts)]
    steps += _limits(spec.bounds, 0 if "user" in layers else 2 * abilities.running)
    if "group" in layers:
        steps.append(("group", str(spec.bounds.memory_mb * _MB), str(spec.bounds.processes)))
    net: Net = "none" if spec.network == "none" else "open"
    steps.append(("filter", compile_filter(abilities.machine, net, lacks=_lacks(abilities, forks)).hex()))
    if record:
        steps.append(("record", compile_recording(abilities.machine).hex()))
    steps += [("net", spec.network), ("version", str(abilities.landlock))]
    steps.append(("ports", "no" if spec.network == "open" else "yes"))
    if spec.network == "hosts":
        steps.append(("door", str(DOOR)))
    return steps


def _view(spec: Spec, mounts: Mounts, abilities: Abilities) -> Iterator[Step]:
    size = str(spec.bounds.tmp_mb * _MB)
    yield from mounts.steps()
    yield ("fresh", size, "mode=1777", TMP)
    yield ("fresh", size, f"mode=700,uid={abilities.uid},gid={abilities.gid}", HOME)
    if "proc" in abilities.layers:
        yield ("processes", "/proc")


def _lacks(abilities: Abilities, forks: bool) -> set[Lack]:
    """What only the filter is left to hold. Runs of one template share a process namespace."""
    lacks: set[Lack] = {"processes"} if forks else set()
    if "mount" not in abilities.layers:
        lacks.add("files")
    if "pid" not in abilities.layers:
        lacks.add("processes")
        if "landlock" not in abilities.layers or abilities.landlock < _SIGNALS_SINCE:
            lacks.add("signals")
    return lacks


def check_level(name: str, spec: Spec, abilities: Abilities, minimum: Minimum) -> Level:
    """How a run is held here; refused if that is less than what it was promised."""
    level = abilities.level
    if level is None and minimum == "none":
        return "reduced"
    if level is None:
        raise SandboxUnavailable(
            f"{name} was not run: this machine cannot hold it ({abilities.explain()}); `glee doctor` says what would "
            "help, or use sandbox.mode: container in your own config"
        )
    if level == "reduced" and minimum == "full":
        raise SandboxUnavailable(
            f"{name} was not run: sandbox.minimum is full, and this machine lacks {abilities.explain()}; "
            "`glee doctor` says what would help, or set sandbox.minimum: reduced in your own config"
        )
    if spec.network == "hosts" and not {"mount", "net"} <= abilities.layers:
        raise SandboxUnavailable(
            f"{name} was not run: a network of named hosts needs namespaces, which are missing here "
            f"({abilities.explain()}); `glee doctor` says what would help, or give it network: false or true"
        )
    return level


def _limits(bounds: Bounds, others: int) -> Iterator[Step]:
    for number, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, bounds.open_files),
        (resource.RLIMIT_NPROC, bounds.processes + others),
        (resource.RLIMIT_DATA, bounds.memory_mb * _MB),
        (resource.RLIMIT_FSIZE, bounds.file_mb * _MB),
        (resource.RLIMIT_CPU, bounds.cpu_seconds),
    ):
        hard = resource.getrlimit(number)[1]
        yield ("limit", str(number), str(value if hard == resource.RLIM_INFINITY else min(value, hard)))

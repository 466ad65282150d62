"""Which jail a tool gets: its description, compiled once, and again when something it names was replaced."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from glee.definitions.tool import Tool
from glee.errors import SandboxUnavailable
from glee.sandbox.compile import HOME, TMP, Abilities, compile_steps
from glee.sandbox.launcher import Launcher, send_request
from glee.sandbox.plan import encode_steps
from glee.sandbox.programs import find_needs
from glee.sandbox.spec import Bounds, Place, Spec, describe

FULL = frozenset({"user", "mount", "pid", "net", "ipc", "landlock", "seccomp"})
Stamp = tuple[tuple[str, tuple[int, int] | None], ...]


class Jail:
    """The jail of one tool, as often as it is needed."""

    def __init__(self, launcher: Launcher, plan: bytes, cwd: str) -> None:
        self._launcher = launcher
        self._plan = plan
        self._cwd = cwd

    def take(self) -> socket.socket:
        return self._launcher.take(self._plan)

    def refill(self) -> None:
        self._launcher.refill(self._plan)

    def send(self, line: socket.socket, argv: Sequence[str], *, env: Mapping[str, str], files: Sequence[int]) -> None:
        env = {"HOME": HOME, "TMPDIR": TMP, **env}
        send_request(line, argv, cwd=self._cwd, env=env, files=files)


class _Known(Struct):
    jail: Jail
    stamp: Stamp


class Jails:
    def __init__(self, launcher: Launcher, place: Place, bounds: Bounds, *, search_path: str) -> None:
        self._launcher = launcher
        self._place = place
        self._bounds = bounds
        self._search_path = search_path
        self._known: dict[tuple[Tool, Path], _Known] = {}

    def get(self, tool: Tool, program: Path, *, cwd: Path, needs: Iterable[Path] = ()) -> Jail:
        """The jail for a tool's program. Whatever cannot be held is refused here, before anything runs."""
        known = self._known.get((tool, program))
        if known is not None and known.stamp == _stamp(path for path, _ in known.stamp):
            return known.jail
        abilities = self._launcher.abilities()
        _check(tool, abilities)
        own = [Path(tool.origin.folder).resolve()] if tool.origin.folder else []
        found = find_needs(program, self._search_path).union(own, needs)
        spec = describe(tool.permissions, self._place, cwd=cwd, needs=found, bounds=self._bounds)
        stamp = _stamp({str(program), *map(str, self._place.guarded), *_paths(spec), *self._granted(tool)})
        steps = [*compile_steps(spec, abilities), ("stamp", repr(stamp))]
        jail = Jail(self._launcher, encode_steps(steps), spec.cwd)
        self._known[(tool, program)] = _Known(jail, stamp)
        return jail

    def _granted(self, tool: Tool) -> Iterable[str]:
        """As they are spelled too: what is not there yet may come, and a link may lead elsewhere."""
        files = tool.permissions.fs
        return (str(self._place.root / path) for path in (*files.read, *files.write))

    def close(self) -> None:
        self._known.clear()
        self._launcher.close()


def _paths(spec: Spec) -> tuple[str, ...]:
    return (*spec.read, *spec.write, *spec.links, *spec.hidden)


def _stamp(paths: Iterable[str]) -> Stamp:
    return tuple((path, _identify(path)) for path in sorted(paths))


def _identify(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _check(tool: Tool, abilities: Abilities) -> None:
    missing = FULL - abilities.layers
    if missing:
        reasons = "; ".join(f"{layer}: {abilities.faults.get(layer, 'not there')}" for layer in sorted(missing))
        raise SandboxUnavailable(
            f"{tool.name} was not run: this machine cannot hold it ({reasons}); "
            "without sandbox.mode: native it runs unheld"
        )
    if not isinstance(tool.permissions.network, bool) and tool.permissions.network.hosts:
        raise SandboxUnavailable(
            f"{tool.name} was not run: a network of named hosts is not held yet; give it network: false or true"
        )

"""Which jail a tool gets: its description, compiled once, and again when something it names was replaced."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, structs

from glee.definitions.bounds import Bounds
from glee.definitions.isolation import Isolation
from glee.definitions.tool import Tool
from glee.sandbox.compile import Abilities, Minimum, check_level, compile_steps
from glee.sandbox.launcher import Launcher, Spare, send_request
from glee.sandbox.mounts import HOME, TMP, Mounts
from glee.sandbox.plan import encode_steps
from glee.sandbox.programs import find_needs
from glee.sandbox.rules import find_carved
from glee.sandbox.spec import Place, Spec, describe

_MOST_KNOWN: Final = 1000
Stamp = tuple[tuple[str, tuple[int, ...]], ...]


class Jail(Struct, frozen=True, kw_only=True):
    """The jail of one tool, as often as it is needed."""

    launcher: Launcher
    plan: bytes
    cwd: str
    spec: Spec
    isolation: Isolation
    identity: tuple[int, int]
    """Whom a run is."""
    private: Path | None
    """Where each run has a folder of its own, on a machine where it cannot have mounts of its own."""

    def take(self) -> Spare:
        return self.launcher.take(self.plan)

    def refill(self) -> None:
        self.launcher.refill(self.plan)

    def send(self, spare: Spare, argv: Sequence[str], *, env: Mapping[str, str], files: Sequence[int]) -> None:
        home, tmp = HOME, TMP
        if self.private is not None:
            home, tmp = f"{self.private}/{spare.name}/home", f"{self.private}/{spare.name}/tmp"
        env = {"HOME": home, "TMPDIR": tmp, **env}
        send_request(spare.line, argv, cwd=self.cwd, env=env, files=files)


class _Known(Struct):
    jail: Jail
    stamp: Stamp


class Jails:
    def __init__(
        self,
        launcher: Launcher,
        place: Place,
        bounds: Bounds,
        *,
        search_path: str,
        minimum: Minimum = "reduced",
        network: bool = True,
        record: bool = False,
    ) -> None:
        self._launcher = launcher
        self._place = place
        self._bounds = bounds
        self._search_path = search_path
        self._minimum = minimum
        self._record = record
        self.network = network
        """False takes the network from every run."""
        self._known: dict[tuple[Tool, Path, bool], _Known] = {}

    def get(self, tool: Tool, program: Path, *, cwd: Path, needs: Iterable[Path] = (), forks: bool = False) -> Jail:
        """The jail for a tool's program. Whatever cannot be held is refused here, before anything runs.

        With `forks`, for a template that many runs are forked from, one after the other.
        """
        known = self._known.get((tool, program, forks))
        if known is not None and all(_identify(path) == identity for path, identity in known.stamp):
            return known.jail
        abilities = self._launcher.abilities()
        own = [Path(tool.origin.folder).resolve()] if tool.origin.folder else []
        found = find_needs(program, self._search_path).union(own, needs)
        permissions = tool.permissions if self.network else structs.replace(tool.permissions, network=False)
        spec = describe(permissions, self._place, cwd=cwd, needs=found, bounds=self._bounds.narrow(tool.limits))
        level = check_level(tool.name, spec, abilities, self._minimum)
        carved = () if "mount" in abilities.layers else find_carved(spec, Mounts(spec))
        kept = map(str, (*self._place.guarded, *self._place.hidden))
        stamp = _stamp({str(program), *kept, *_paths(spec), *self._granted(tool)}, carved)
        private = self._launcher.private
        whose = (tool.identity, tool.digest) if forks else ()  # a template holds the function of one tool
        steps = [
            *compile_steps(spec, abilities, private=str(private), forks=forks, record=self._record),
            ("stamp", repr((stamp, whose))),
        ]
        jail = Jail(
            launcher=self._launcher,
            plan=encode_steps(steps),
            cwd=spec.cwd,
            spec=spec,
            isolation=Isolation(level=level, limits="group" if "group" in abilities.layers else "process"),
            identity=(abilities.uid, abilities.gid),
            private=None if "mount" in abilities.layers else private,
        )
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()  # a definition that changed is another tool, so old ones pile up
        self._known[(tool, program, forks)] = _Known(jail, stamp)
        return jail

    def abilities(self) -> Abilities:
        return self._launcher.abilities()

    def _granted(self, tool: Tool) -> Iterable[str]:
        """As they are spelled too: what is not there yet may come, and a link may lead elsewhere."""
        files = tool.permissions.fs
        return (str(self._place.root / path) for path in (*files.read, *files.write))

    def close(self) -> None:
        self._known.clear()
        self._launcher.close()


def _paths(spec: Spec) -> tuple[str, ...]:
    return (*spec.read, *spec.write, *spec.links, *spec.hidden)


def _stamp(paths: Iterable[str], carved: Iterable[str] = ()) -> Stamp:
    """Which file each path is; of folders whose entries matter, also when these last changed."""
    ordinary = ((path, _identify(path)) for path in paths)
    return tuple(sorted((*ordinary, *((path + "/", _identify(path + "/")) for path in carved))))


def _identify(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except OSError:
        return ()
    identity = (status.st_dev, status.st_ino)
    return (*identity, status.st_mtime_ns) if path.endswith("/") else identity

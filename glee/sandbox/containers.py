"""Which container a run gets: its description made into a command line anew each time, and an end that is sure."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from msgspec import structs

from glee.definitions.bounds import Bounds
from glee.definitions.permissions import Hosts
from glee.definitions.tool import Tool
from glee.errors import SandboxUnavailable
from glee.sandbox.container import LABEL, Container, Engine, EngineName, compile_run
from glee.sandbox.container_mounts import Mount, arrange_mounts, parse_mount_points
from glee.sandbox.plan import STRANGER
from glee.sandbox.programs import find_needs
from glee.sandbox.spec import Place, describe

_ENGINES: Final[tuple[EngineName, ...]] = ("docker", "podman")
_PATIENCE: Final = 10.0
_GONE: Final = ("no such container", "no container with name", "no container with id")
_UNDER_WAY: Final = "already in progress"
_TICK: Final = 0.05
_NAME: Final = re.compile(r"glee-(\d+)-(\d+)-(\d+)-[0-9a-f]+")


class Containers:
    def __init__(
        self,
        engine: Engine,
        image: str,
        place: Place,
        bounds: Bounds,
        *,
        binds: tuple[Mount, ...],
        network: bool,
        search_path: str,
    ) -> None:
        self._engine = engine
        self._image = image
        self._place = place
        self._bounds = bounds
        self._binds = binds
        self._network = network
        self._search_path = search_path
        self._is_swept = False

    def get(self, tool: Tool, program: str, *, cwd: Path, needs: Iterable[Path] = ()) -> Container:
        """Whatever cannot be held is refused here, before anything runs."""
        self._sweep()
        permissions = tool.permissions
        if isinstance(permissions.network, Hosts) and permissions.network.hosts and self._network:
            raise SandboxUnavailable(
                f"{tool.name} was not run: a container's network cannot be held to named hosts; "
                "use sandbox.mode: native, or give it network: false or true"
            )
        if not self._network:
            permissions = structs.replace(permissions, network=False)
        needs = {*needs, *self._find_needs(tool, program)}
        spec = describe(permissions, self._place, cwd=cwd, needs=needs, bounds=self._bounds.narrow(tool.limits))
        points = parse_mount_points(Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape"))
        mounts = arrange_mounts(spec, self._binds, points)
        name = f"glee-{_owner(os.getpid())}-{secrets.token_hex(8)}"
        user = find_user([*spec.write, *(mount.source for mount in self._binds if mount.mode == "w")])
        argv = compile_run(spec, mounts, engine=self._engine, image=self._image, user=user, name=name)
        return Container(engine=self._engine, image=self._image, name=name, argv=argv)

    def _find_needs(self, tool: Tool, program: str) -> Iterable[Path]:
        """What lies in the project; everything else that a program is started from is the image's own."""
        folder = [Path(tool.origin.folder).resolve()] if tool.origin.folder else []
        found = find_needs(Path(program), self._search_path) if "/" in program else set()
        return [*folder, *(path for path in found if path.is_relative_to(self._place.root))]

    def _sweep(self) -> None:
        """Once: containers of a Glee that died and that were not ended with it."""
        if self._is_swept:
            return
        words = ["ps", "--all", f"--filter=label={LABEL}", "--format={{.Names}}"]
        for name in _ask(self._engine, words).split():
            if _is_orphan(name):
                _remove(self._engine, name)
        self._is_swept = True


def find_engine(wanted: EngineName | None, env: Mapping[str, str], search_path: str) -> Engine:
    for name in _ENGINES if wanted is None else (wanted,):
        program = shutil.which(name, path=search_path)
        if program:
            return Engine(
                name=name,
                program=program,
                env=env,
                is_rootless=name == "podman" and os.getuid() != 0,
                cpus=os.cpu_count() or 1,
            )
    names = wanted or " or ".join(_ENGINES)
    raise SandboxUnavailable(f"there is no {names} on PATH; install it, or use sandbox.mode: native")


def find_user(writable: Iterable[str]) -> str:
    """Never root. What is writable must belong to whom the run is, and only root could be anybody else."""
    if os.getuid() != 0:
        return f"{os.getuid()}:{os.getgid()}"
    owners: dict[tuple[int, int], str] = {}
    for path in writable:
        status = os.stat(path)
        if not status.st_mode & 0o002:
            owners.setdefault((status.st_uid, status.st_gid), path)
    for (uid, _), path in owners.items():
        if uid == 0:
            raise SandboxUnavailable(
                f"{path} belongs to root, and a container is never run as root: give it to another user "
                f"(chown -R {STRANGER}:{STRANGER} {path}), or use sandbox.mode: native"
            )
    if len({uid for uid, _ in owners}) > 1:
        raise SandboxUnavailable(
            f"{' and '.join(owners.values())} belong to different users, and a container is run as one of them; "
            "give them to one user, or use sandbox.mode: native"
        )
    uid, gid = next(iter(owners), (STRANGER, STRANGER))
    return f"{uid}:{gid or STRANGER}"


def _ask(engine: Engine, words: list[str]) -> str:
    try:
        done = subprocess.run(
            [engine.program, *words], env=engine.env, capture_output=True, text=True, timeout=_PATIENCE, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailable(f"{engine.name} does not answer: {error}; start it, and call again") from error
    if done.returncode:
        said = done.stderr.strip()[:500] or f"exit code {done.returncode}"
        raise SandboxUnavailable(f"{engine.name} does not answer: {said}; start it, and call again")
    return done.stdout


def remove(container: Container) -> bool:
    """Ends it and all in it. True if it is certain that there is no such container any more."""
    return not container.name or _remove(container.engine, container.name)


def removal(container: Container) -> list[str]:
    """The command that ends it. What nsjail holds has no name: it is nsjail's child, and ends with it."""
    return [container.engine.program, "rm", "--force", "--volumes", container.name] if container.name else ["true"]


def _remove(engine: Engine, name: str) -> bool:
    """The engine may be at it already, and says so before it is done."""
    words = [engine.program, "rm", "--force", "--volumes", name]
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        try:
            done = subprocess.run(words, env=engine.env, capture_output=True, text=True, timeout=_PATIENCE, cwd="/")
        except (OSError, subprocess.TimeoutExpired):
            return False
        if done.returncode == 0 or any(text in done.stderr.lower() for text in _GONE):
            return True
        if _UNDER_WAY not in done.stderr:
            return False
        time.sleep(_TICK)
    return False


def _owner(pid: int) -> str:
    """A process for as long as the machine runs: numbers come round, and each container of processes has its own."""
    return f"{os.stat('/proc/self/ns/pid').st_ino}-{pid}-{_began(pid)}"


def _began(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19]


def _is_orphan(name: str) -> bool:
    found = _NAME.fullmatch(name)
    if found is None or int(found[1]) != os.stat("/proc/self/ns/pid").st_ino:
        return False
    try:
        return _began(int(found[2])) != found[3]
    except FileNotFoundError:
        return True

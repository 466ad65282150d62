"""Settings into what programs are run in. Each mechanism is loaded only where it was chosen."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from glee.config import Settings
from glee.errors import SandboxUnavailable
from glee.runners.cells import Cells, ContainerCells, JailCells, NsjailCells, PlainCells
from glee.sandbox.spec import Place

if TYPE_CHECKING:
    from glee.egress.proxy import Proxy
    from glee.sandbox.compile import Minimum
    from glee.sandbox.containers import Containers
    from glee.sandbox.jails import Jails
    from glee.sandbox.nsjail import Nsjails


def compose_cells(settings: Settings) -> Cells:
    mode = settings.sandbox.mode
    if mode == "native":
        return JailCells(compose_jails(settings), settings.search_path, lambda: compose_proxy(settings))
    if mode == "container":
        return ContainerCells(_compose_containers(settings), settings.root.resolve())
    if mode == "nsjail":
        return NsjailCells(_compose_nsjails(settings), settings.search_path)
    return PlainCells(settings.search_path)


def compose_jails(
    settings: Settings,
    *,
    layers: frozenset[str] | None = None,
    minimum: Minimum | None = None,
    record: bool = False,
    native: bool | None = None,
) -> Jails:
    """With `layers`, no others are used, whatever the machine has: that is how each is tried alone.

    With `native`, the launcher is the program in C, or the one in Python, and not whichever is there.
    """
    from glee.sandbox.jails import Jails
    from glee.sandbox.launcher import Launcher

    sandbox = settings.sandbox
    if sandbox.limits.cpu_percent is not None:
        raise SandboxUnavailable(
            "sandbox.limits.cpu_percent is not held by sandbox.mode: native; remove it, or use sandbox.mode: container"
        )
    return Jails(
        Launcher(settings.state.parent / "jails", layers=layers, native=native),
        _place(settings),
        sandbox.limits,
        search_path=settings.search_path,
        minimum=minimum or sandbox.minimum,
        network=sandbox.network_access,
        record=record,
    )


def compose_proxy(settings: Settings) -> Proxy:
    from glee.egress.proxy import Proxy

    return Proxy(resolve=settings.egress.resolve, ca_file=settings.egress.ca_file)


def _compose_containers(settings: Settings) -> Containers:
    from glee.sandbox.container_mounts import Mount
    from glee.sandbox.containers import Containers, find_engine

    sandbox = settings.sandbox
    if sandbox.image is None:
        raise SandboxUnavailable(
            f"sandbox.mode is container and no image is named; write sandbox.image in {settings.person}"
        )
    return Containers(
        find_engine(sandbox.engine, settings.engine_environ, settings.search_path),
        sandbox.image,
        _place(settings),
        settings.sandbox.limits,
        binds=tuple(
            Mount(source=bind.source, target=bind.target, mode="w" if bind.writable else "r")
            for bind in sandbox.bind_mounts
        ),
        network=sandbox.network_access,
        search_path=settings.search_path,
    )


def _compose_nsjails(settings: Settings) -> Nsjails:
    from glee.sandbox.nsjail import Nsjails

    network = settings.sandbox.network_access
    return Nsjails(_place(settings), settings.sandbox.limits, network=network, search_path=settings.search_path)


def _place(settings: Settings) -> Place:
    folder = settings.folder.resolve()
    return Place(
        root=settings.root.resolve(),
        guarded=(folder / "config.yml", folder / "audit", folder / "tools", *_own_code()),
        hidden=tuple(path.resolve() for path in (settings.state.parent, settings.cache.parent, settings.person.parent)),
    )


def _own_code() -> tuple[Path, ...]:
    """Glee and the interpreter that runs it: whoever could write there would run outside every jail next time."""
    own = {Path(__file__).parent, Path(sys.prefix), Path(sys.base_prefix)}
    return tuple(sorted(path.resolve() for path in own if path.resolve() != Path("/")))

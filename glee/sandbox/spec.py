"""What one run may touch: permissions made definite for this project and this machine."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from glee.definitions.bounds import Bounds
from glee.definitions.permissions import Hosts, Permissions
from glee.errors import SandboxUnavailable
from glee.sandbox.programs import find_links

Network = Literal["none", "open", "hosts"]


class Place(Struct, frozen=True, kw_only=True):
    """Where runs take place: the project, and what no run may change or see there whatever it was granted."""

    root: Path
    guarded: tuple[Path, ...]
    """Never writable: Glee's settings and its own code, the record, the tools of others."""
    hidden: tuple[Path, ...]
    """Not even readable: Glee's own state."""


class Spec(Struct, frozen=True, kw_only=True):
    """One description for every mechanism. All paths are absolute and lead through no link."""

    read: tuple[str, ...]
    write: tuple[str, ...]
    links: tuple[str, ...]
    """Paths that are themselves links, and must be there as such."""
    guarded: tuple[str, ...]
    hidden: tuple[str, ...]
    cwd: str
    network: Network
    bounds: Bounds


def describe(permissions: Permissions, place: Place, *, cwd: Path, needs: Iterable[Path], bounds: Bounds) -> Spec:
    """The description of a run. `needs` is what the program itself is started from."""
    read = {path for text in permissions.fs.read if (path := _resolve(text, place)) is not None}
    write = {_resolve_existing(text, place) for text in permissions.fs.write}
    links = {path for path in needs if path.is_symlink()}
    links |= _check_links(permissions, place)
    read |= {path for path in needs if not path.is_symlink() and path.exists()}
    _reserve(write, (*place.guarded, *place.hidden))
    _reserve(read, place.hidden)
    demoted = {path for path in write if any(path.is_relative_to(guarded) for guarded in place.guarded)}
    read |= demoted
    write -= demoted
    hidden = {path for path in place.hidden if path.exists()}
    for path in read | write:
        if any(path.is_relative_to(folder) for folder in hidden):
            raise SandboxUnavailable(f"no tool can be given {path}, Glee's own state; take it out of permissions.fs")
    return Spec(
        read=_sorted(read - write),
        write=_sorted(write),
        links=_sorted(links),
        guarded=_sorted(path for path in place.guarded if path.exists()),
        hidden=_sorted(hidden),
        cwd=str(cwd.resolve()),
        network=_network(permissions),
        bounds=bounds,
    )


def _reserve(granted: Iterable[Path], kept: Iterable[Path]) -> None:
    """What a run may not make, or may not see, must be there before it could be: only what exists can be covered."""
    for path in kept:
        if path.exists() or not any(path.is_relative_to(folder) for folder in granted):
            continue
        try:
            if path.suffix:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch(mode=0o600)
            else:
                path.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            if error.errno == errno.EROFS:  # then it cannot appear either
                continue
            raise SandboxUnavailable(f"{path} cannot be kept from the tool: {error.strerror}") from error


def _check_links(permissions: Permissions, place: Place) -> set[Path]:
    """The links that grants lead through. Where they lead must be granted too, since a tool could plant a link."""
    links: set[Path] = set()
    for granted in (permissions.fs.write, (*permissions.fs.read, *permissions.fs.write)):
        found = {text: find_links(place.root / text) for text in granted}
        plain = [(place.root / text).resolve() for text in granted if not found[text]]
        for text in (text for text in granted if found[text]):
            real = (place.root / text).resolve()
            if real.exists() and not any(real.is_relative_to(folder) for folder in plain):
                raise SandboxUnavailable(
                    f"{text} is a link, or lies behind one, and leads to {real}; name that path in the manifest too"
                )
            links |= found[text]
    return links


def _network(permissions: Permissions) -> Network:
    """An empty list of hosts is no network at all."""
    if isinstance(permissions.network, Hosts):
        return "hosts" if permissions.network.hosts else "none"
    return "open" if permissions.network else "none"


def _resolve(text: str, place: Place) -> Path | None:
    """A path that is not there is no grant: there is nothing to read."""
    spelled = Path(os.path.normpath(place.root / text))
    real = (place.root / text).resolve()
    _check_kernels(text, real)
    if spelled.is_relative_to(place.root) and not real.is_relative_to(place.root):
        raise SandboxUnavailable(
            f"{text} is a link that leads out of the project, to {real}; "
            "if that is meant, write the path it leads to in the manifest"
        )
    try:
        return real if real.exists() else None
    except OSError as error:
        raise SandboxUnavailable(
            f"{text} cannot be granted: {error.strerror}; take it out of permissions.fs, or mend its permissions"
        ) from error


def _check_kernels(text: str, real: Path) -> None:
    """A run has a /proc and a /dev of its own, and the kernel's other file systems cannot be shown in part."""
    for folder in ("/proc", "/dev"):
        if real.is_relative_to(folder):
            raise SandboxUnavailable(
                f"{text} cannot be granted: a run has a {folder} of its own; take it out of permissions.fs"
            )


def _resolve_existing(text: str, place: Place) -> Path:
    path = _resolve(text, place)
    if path is None:
        raise SandboxUnavailable(
            f"permissions.fs.write names {text}, which does not exist; make it first, or grant the folder it will be in"
        )
    return path


def _sorted(paths: Iterable[Path]) -> tuple[str, ...]:
    return tuple(sorted(map(os.fspath, paths)))


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")

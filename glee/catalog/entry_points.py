"""Entry points of installed packages, read from their metadata: nothing of a package is imported here."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from glee.definitions.sandbox import normalise_package
from glee.definitions.tool import PackageSite

GROUP: Final = "glee.tools"
_VALUE: Final = re.compile(r"(\w+(?:\.\w+)*)\s*(?::\s*(\w+(?:\.\w+)*))?\s*(?:\[[^\]]*\])?", re.ASCII)
_LIBRARIES: Final = ("site-packages", "dist-packages")


class EntryPoint(Struct, frozen=True, array_like=True):
    name: str
    value: str
    package: str

    @property
    def target(self) -> str | None:
        """`module:attribute`, without extras; None for a value that cannot lead anywhere."""
        match = _VALUE.fullmatch(self.value.strip())
        return f"{match[1]}:{match[2] or ''}" if match else None


def find_points() -> list[EntryPoint]:
    """Those of every package on the path, in the order of packages and names."""
    from importlib.metadata import entry_points

    try:
        found = list(entry_points(group=GROUP))
    except Exception:  # some package's metadata is broken, and must not hide the others
        found = list(_find_one_by_one())
    points = (EntryPoint(p.name, p.value, (p.dist.name if p.dist else None) or p.value) for p in found)
    return sorted(points, key=lambda point: (point.package, point.name))


def _find_one_by_one() -> Iterator[Any]:
    from importlib.metadata import distributions

    seen: set[str] = set()
    for package in distributions():
        try:
            points = list(package.entry_points.select(group=GROUP))
            name = normalise_package(package.name)
        except Exception:  # noqa: S112 what it offers cannot be read
            continue
        if name not in seen:
            yield from points
        seen.add(name)


def find_site(target: str) -> PackageSite:
    """Where the top-level package of a target lies, installed or linked to be edited; nowhere if there is none."""
    own = [place for place in _find_places(re.split("[.:]", target)[0]) if place != place.parent]
    glee = Path(__file__).resolve().parents[1]
    libraries = [folder for folder in _search_path() if folder.name in _LIBRARIES]
    holders = {glee.parent, *libraries, *(place.parent for place in own)}
    before, after = _split(folder for folder in _search_path() if folder in holders or folder == _standard())
    return PackageSite(own=_texts(own), shared=_texts([glee, *libraries]), before=before, after=after)


def _find_places(name: str) -> list[Path]:
    from importlib.util import find_spec

    try:
        spec = find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return []
    return [Path(place).resolve() for place in _locations(spec)] if spec else []


def _locations(spec: ModuleSpec) -> Iterable[str]:
    if spec.submodule_search_locations is not None:
        return spec.submodule_search_locations
    return [spec.origin] if spec.has_location and spec.origin else []


def _search_path() -> list[Path]:
    return list(dict.fromkeys(Path(entry).resolve() for entry in sys.path))


def _standard() -> Path:
    return Path(os.__file__).resolve().parent


def _split(folders: Iterable[Path]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is searched before the standard library, and after it."""
    texts, standard = _texts(folders), str(_standard())
    if standard not in texts:
        return (), texts
    at = texts.index(standard)
    return texts[:at], texts[at + 1 :]


def _texts(paths: Iterable[Path]) -> tuple[str, ...]:
    return tuple(map(str, paths))

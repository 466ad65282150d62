"""Tools that installed packages provide through the entry-point group `glee.tools`.

An entry point leads to a tool made by `@glee.tool`, to a list of such tools, or to a function without parameters
that returns either. A package is asked in a jail which tools it has, and they run in jails too: nothing of it is
loaded into Glee's process, unless the person's own config trusts it or turned the sandbox off.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, structs

from glee.catalog import package_cache
from glee.catalog.entry_points import EntryPoint, find_points, find_site
from glee.catalog.package_cache import BROKEN_FOR, Answer, Offer, Stamps, stamp_site
from glee.catalog.source import Found, Progress, Summary, summarise
from glee.definitions.sandbox import normalise_package
from glee.definitions.tool import Origin, PackageExec, Tool
from glee.errors import CallError, SandboxUnavailable

Describe = Callable[[Sequence[Tool]], Sequence[Any]]
"""Runs probes, each in a jail: what each said, unchecked, or the CallError that says why it said nothing."""
_LOOK_AGAIN: Final = 1.0
"""Seconds between two looks at the files of a package whose tools are in use."""


def _refuse(probes: Sequence[Tool]) -> Sequence[Any]:
    return [SandboxUnavailable("there is no sandbox in which it could be asked for its tools") for _ in probes]


class _Listed(Struct, frozen=True):
    summary: Summary
    find: Callable[[], Found]


class PackageSource:
    def __init__(
        self,
        cache_file: Path | None = None,
        points: Callable[[], list[EntryPoint]] | None = None,
        *,
        describe: Describe = _refuse,
        trusted: frozenset[str] = frozenset(),
        is_off: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`trusted` are normalised names of packages; with `is_off` there is no sandbox for any."""
        self._cache_file = cache_file
        self._find_points = points or find_points
        self._describe = describe
        self._trusted = trusted
        self._is_off = is_off
        self._now = now
        self._path: Stamps | None = None
        self._listed: list[_Listed] = []
        self._answers: dict[EntryPoint, Answer] = {}
        self._looked: dict[EntryPoint, float] = {}

    def find(self, name: str) -> Found | None:
        return next((listed.find() for listed in self._load() if listed.summary.name == name), None)

    def is_current(self, tool: Tool) -> bool:
        if not isinstance(tool.exec, PackageExec):
            return True
        whose = (tool.origin.location, tool.exec.target)
        if any(self._is_unchanged(answer) for answer in self._answers.values() if whose == _whose(answer.point)):
            return True
        self._path = None
        return False

    def _is_unchanged(self, answer: Answer) -> bool:
        if self._now() - self._looked.get(answer.point, 0.0) < _LOOK_AGAIN:
            return True
        self._looked[answer.point] = self._now()
        return answer.is_unchanged()

    def summaries(self, progress: Progress | None = None) -> Iterator[Summary]:
        return (listed.summary for listed in self._load())

    def _load(self) -> list[_Listed]:
        """In the order of names; of two with the same name the first package's comes first."""
        path = package_cache.stamp_path()
        if self._path != path:
            found = [listed for point in self._look(path) for listed in self._list(point)]
            self._listed = sorted(found, key=lambda listed: listed.summary.name)
            self._path = path
        return self._listed

    def _look(self, path: Stamps) -> list[EntryPoint]:
        """The entry points, once each that is for a jail has an answer.

        Finding out what is installed costs more than a whole listing, so it is kept; but what is loaded into this
        process is never read from a cache.
        """
        kept = package_cache.load(self._cache_file)
        is_same = kept is not None and kept.path == path
        points = kept.points if kept and is_same else []
        if not is_same or any(map(self._is_loaded_here, points)):
            points = self._find_points()
        known = {answer.point: answer for answer in (kept.answers if kept else ())} | self._answers
        asked = self._ask([point for point in points if not self._is_loaded_here(point)], known, is_same)
        if asked or not kept or not is_same or points != kept.points:
            package_cache.save(self._cache_file, path, points, self._answers.values(), self._now())
        return points

    def _ask(self, points: list[EntryPoint], known: dict[EntryPoint, Answer], is_same: bool) -> bool:
        """Has an answer from each. True if some had to be asked."""
        from_before = {
            point: known[point]
            for point in points
            if point in known and not known[point].is_due(self._now()) and _counts(known[point], is_same)
        }
        waiting = [point for point in points if point not in from_before and point.target]
        self._answers = {**from_before, **(self._ask_jailed(waiting) if waiting else {})}
        return bool(waiting)

    def _ask_jailed(self, points: list[EntryPoint]) -> dict[EntryPoint, Answer]:
        from glee.catalog.offers import explain, read_offers
        from glee.formats.described import to_probe

        probes = [
            to_probe(point.name, package=point.package, target=str(point.target), site=find_site(str(point.target)))
            for point in points
        ]
        stamps = [stamp_site(probe.exec.site) for probe in probes]  # type: ignore[union-attr]
        answers = {}
        for point, stamp, said in zip(points, stamps, self._describe(probes), strict=True):
            if isinstance(said, CallError):
                until = 0.0 if isinstance(said, SandboxUnavailable) else self._now() + BROKEN_FOR
                answers[point] = Answer(point, stamp, [explain(point, said)], until)
            else:
                answers[point] = Answer(point, stamp, read_offers(point, said))
        return answers

    def _is_loaded_here(self, point: EntryPoint) -> bool:
        return self._is_off or normalise_package(point.package) in self._trusted

    def _list(self, point: EntryPoint) -> Iterator[_Listed]:
        if point.target is None:
            from glee.catalog.offers import broken

            reason = f"the entry point {point.value!r} is not of the form module:attribute"
            yield _to_listed(broken(point, reason), point)
        elif self._is_loaded_here(point):
            yield from _load_here(point, point.target, trusted=not self._is_off)
        else:
            yield from (_to_listed(offer, point) for offer in self._answers[point].offers)


def _whose(point: EntryPoint) -> tuple[str, str | None]:
    return point.package, point.target


def _counts(answer: Answer, is_same: bool) -> bool:
    """True if the package is what it was; where the path has changed, it may also lie elsewhere now."""
    return answer.is_unchanged() if is_same else stamp_site(find_site(str(answer.point.target))) == answer.stamps


def _to_listed(offer: Offer, point: EntryPoint) -> _Listed:
    def find() -> Found:
        if offer.problem is not None:
            return Found(None, (offer.problem,))
        from glee.definitions.json_text import decode_json
        from glee.formats.described import to_package_tool

        target = str(point.target)
        told = decode_json(offer.manifest)
        return Found(to_package_tool(told, package=point.package, target=target, site=find_site(target)))

    return _Listed(offer.summary, find)


def _load_here(point: EntryPoint, target: str, *, trusted: bool) -> Iterator[_Listed]:
    """One broken package never hides the others, so whatever its code raises becomes a problem."""
    import contextlib
    import sys

    from glee.catalog.offers import broken
    from glee.formats.entry_point import load_tools

    origin = Origin(source="package", location=point.package, trusted=trusted)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what a package prints is no part of anybody's output
            tools = [structs.replace(tool.definition, origin=origin) for tool in load_tools(target)]
    except (Exception, SystemExit) as error:
        reason = f"the entry point {point.value} cannot be loaded: {type(error).__name__}: {error}"
        yield _to_listed(broken(point, reason), point)
        return
    yield from (_Listed(summarise(tool), lambda tool=tool: Found(tool)) for tool in tools)  # type: ignore[misc]

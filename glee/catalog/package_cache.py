"""What packages said of their tools, kept so that a listing starts no process: definitions as data, never code.

An answer counts as long as the package's files are what they were. It lies outside every path a tool can be given.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from glee.catalog.entry_points import EntryPoint
from glee.catalog.source import Summary
from glee.definitions.problem import Problem
from glee.definitions.tool import PackageSite
from glee.version import VERSION

Stamps = list[tuple[str, tuple[int, ...]]]

_FRESH_NS: Final = 2_000_000_000
"""A file changed this recently may change again within the same timestamp, so nothing about it is kept."""
_MOST_FILES: Final = 5000
BROKEN_FOR: Final = 600.0
"""Seconds for which a failure is kept: its cause may lie outside the package."""


class Offer(Struct, frozen=True, array_like=True):
    """One tool that an entry point offers, or why there is none."""

    summary: Summary
    manifest: bytes = b""
    """The definition as JSON, checked; empty if it is broken."""
    problem: Problem | None = None


class Answer(Struct, frozen=True, array_like=True):
    """What came of asking one entry point."""

    point: EntryPoint
    stamps: Stamps
    """Of the package's own files."""
    offers: list[Offer]
    until: float | None = None
    """When it is to be asked again, whatever its files say."""

    def is_due(self, now: float) -> bool:
        return self.until is not None and now >= self.until

    def is_unchanged(self) -> bool:
        return all(_stamp(path) == stamp for path, stamp in self.stamps)


class Kept(Struct, frozen=True, array_like=True):
    version: str
    interpreter: str
    path: Stamps
    """Of the folders in which packages are looked for."""
    points: list[EntryPoint]
    answers: list[Answer]


def stamp_path() -> Stamps:
    return [(str(entry), _stamp(entry or ".")[:1]) for entry in sys.path]


def stamp_site(site: PackageSite) -> Stamps:
    """Of the package's own files and folders, up to a number."""
    found: Stamps = []
    for path in _walk(site.own):
        found.append((path, _stamp(path)))
        if len(found) == _MOST_FILES:
            break
    return found


def _walk(places: Iterable[str]) -> Iterator[str]:
    for place in places:
        yield place
        for folder, folders, files in os.walk(place):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            yield from (f"{folder}/{name}" for name in (*folders, *sorted(files)))


def _stamp(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return (0,)
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def load(file: Path | None) -> Kept | None:
    """None if there is none, or it is another version's or interpreter's."""
    try:
        kept = msgspec.msgpack.decode(file.read_bytes(), type=Kept) if file else None
    except (OSError, msgspec.MsgspecError, ValueError):
        return None
    return kept if kept and (kept.version, kept.interpreter) == (VERSION, sys.executable) else None


def save(file: Path | None, path: Stamps, points: list[EntryPoint], answers: Iterable[Answer], now: float) -> None:
    """Whole or not at all; a cache that cannot be written is no reason to fail."""
    if file is None:
        return
    settled = now * 1e9 - _FRESH_NS
    kept = [answer for answer in answers if all(max(stamp[:2]) < settled for _, stamp in answer.stamps)]
    draft = file.with_suffix(f".{os.getpid()}.draft")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft.write_bytes(msgspec.msgpack.encode(Kept(VERSION, sys.executable, path, points, kept)))
        draft.replace(file)
    except (OSError, UnicodeEncodeError):
        with contextlib.suppress(OSError):
            draft.unlink()

"""Tools from `.glee/tools/<name>/tool.yml`, each read when it is wanted; listings come from a cache.

The cache holds summaries, keyed by what `stat` says of each manifest, and lies outside the project.
It can only save time: a manifest is always read anew before it is run.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from glee.catalog.source import Found, Progress, Summary, summarise
from glee.definitions.problem import Problem
from glee.definitions.tool import Tool
from glee.version import VERSION

MANIFEST: Final = "tool.yml"
_FRESH_NS: Final = 2_000_000_000
"""A file changed this recently may change again within the same timestamp, so it is not cached."""

Stamp = tuple[int, int, int, int]
_UNREADABLE: Final[Stamp] = (0, 0, 0, 0)


class _Entry(Struct, frozen=True, array_like=True):
    stamp: Stamp
    summary: Summary


class _Cache(Struct, array_like=True):
    version: str
    folder: str
    entries: dict[str, _Entry]


class ManifestSource:
    """The tools folder of a project."""

    def __init__(self, folder: Path, cache_file: Path | None = None) -> None:
        self._folder = folder
        self._cache_file = cache_file
        self._stamps: dict[str, Stamp] = {}
        """Of the manifests as they were when a tool was last made from them; a listing makes none."""

    def find(self, name: str) -> Found | None:
        if not name or "/" in name or "\0" in name or name.startswith("."):
            return None
        stamp = self._find_stamp(name)
        if stamp is None:
            return None
        self._stamps[name] = stamp
        return self._read(name)

    def _find_stamp(self, name: str) -> Stamp | None:
        try:
            return _stamp(os.stat(self._folder / name / MANIFEST))
        except PermissionError:
            return _UNREADABLE  # it is there, and reading it says what is wrong
        except (OSError, ValueError):
            return None

    def _read(self, name: str) -> Found:
        from glee.formats.manifest import read_manifest

        reading = read_manifest(self._folder / name / MANIFEST)
        return Found(reading.tool, reading.problems)

    def is_current(self, tool: Tool) -> bool:
        if tool.origin.source != "project":
            return True
        try:
            return self._stamps.get(tool.name) == _stamp(os.stat(tool.origin.location))
        except OSError:
            return False

    def names(self) -> list[str]:
        """The folders that hold a manifest, sorted."""
        return [name for name, _ in self._scan()]

    def strays(self) -> list[Problem]:
        """What lies among the tools and is none: a folder without a manifest, a manifest without a folder."""
        known = set(self.names())
        try:
            entries = sorted(entry.name for entry in os.scandir(self._folder) if not entry.name.startswith((".", "_")))
        except OSError:
            return []
        return [_stray(self._folder / name) for name in entries if name not in known and _is_text(name)]

    def summaries(self, progress: Progress | None = None) -> Iterator[Summary]:
        cached = self._load_cache()
        entries: dict[str, _Entry] = {}
        found = self._scan()
        changed = len(found) != len(cached)
        for done, (name, stamp) in enumerate(found, 1):
            entry = cached.get(name)
            if entry is None or entry.stamp != stamp:
                entry = _Entry(stamp, self._summarise(name))
                changed = True
                if progress:
                    progress(done, len(found))
            entries[name] = entry
            yield entry.summary
        if changed:
            self._save_cache(entries)

    def _summarise(self, name: str) -> Summary:
        if not _is_text(name):
            shown = os.fsencode(name).decode("utf-8", "backslashreplace")
            return Summary(name=shown, origin=f"project {self._folder}", broken="its folder's name is not UTF-8")
        found = self._read(name)
        if found.tool is None:
            return Summary(name=name, origin=f"project {self._folder / name / MANIFEST}", broken=reason(found))
        return summarise(found.tool)

    def _scan(self) -> list[tuple[str, Stamp]]:
        found: list[tuple[str, Stamp]] = []
        try:
            folders = sorted(entry.name for entry in os.scandir(self._folder) if not entry.name.startswith("."))
        except (FileNotFoundError, NotADirectoryError):
            return []
        prefix = f"{self._folder}/"
        for name in folders:
            try:
                status = os.stat(f"{prefix}{name}/{MANIFEST}")
            except PermissionError:
                found.append((name, _UNREADABLE))
                continue
            except OSError:
                continue
            found.append((name, _stamp(status)))
        return found

    def _load_cache(self) -> dict[str, _Entry]:
        if self._cache_file is None:
            return {}
        try:
            cache = msgspec.msgpack.decode(self._cache_file.read_bytes(), type=_Cache)
        except (OSError, msgspec.MsgspecError, ValueError):
            return {}
        fits = cache.version == VERSION and cache.folder == str(self._folder)
        return cache.entries if fits else {}

    def _save_cache(self, entries: dict[str, _Entry]) -> None:
        """Whole or not at all; a cache that cannot be written is no reason to fail."""
        if self._cache_file is None:
            return
        import time

        settled = time.time_ns() - _FRESH_NS
        kept = {name: entry for name, entry in entries.items() if 0 < entry.stamp[1] < settled and _is_text(name)}
        cache = _Cache(VERSION, str(self._folder), kept)
        draft = self._cache_file.with_suffix(f".{os.getpid()}.draft")
        try:
            self._cache_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft.write_bytes(msgspec.msgpack.encode(cache))
            draft.replace(self._cache_file)
        except (OSError, UnicodeEncodeError):
            with contextlib.suppress(OSError):
                draft.unlink()


def _is_text(name: str) -> bool:
    """False for a folder whose name is not UTF-8, which nothing can print or keep."""
    return not any("\udc80" <= character <= "\udcff" for character in name)


def _stamp(status: os.stat_result) -> Stamp:
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def _stray(path: Path) -> Problem:
    if (path / MANIFEST).is_symlink():
        message, hint = f"{MANIFEST} is a link that leads nowhere", "mend the link, or write the manifest itself"
    elif path.is_dir():
        near = sorted(file.name for file in path.iterdir() if file.suffix in (".yml", ".yaml"))
        hint = f"rename {near[0]} to {MANIFEST}" if near else f"write {path.name}/{MANIFEST}, or remove the folder"
        message = f"the folder has no {MANIFEST}"
    else:
        message, hint = "a tool is a folder, not a file", f"move it to {path.stem}/{MANIFEST}, or remove it"
    return Problem(file=str(path), line=1, column=1, field="", rule="folder", message=message, hint=hint)


def reason(found: Found | None) -> str:
    """In one line, why a definition is broken."""
    if found is None or not found.problems:
        return "it can no longer be read"
    first: Problem = found.problems[0]
    more = f" (and {len(found.problems) - 1} more)" if len(found.problems) > 1 else ""
    return f"line {first.line}: {first.field + ': ' if first.field else ''}{first.message}{more}"

"""What a tool is given while it is learnt what it needs. Pure: sets of paths and hosts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePath
from typing import Final, Literal

from msgspec import Struct, structs

from glee.definitions.permissions import Files, Hosts, Permissions, SecretNeed
from glee.sandbox.spec import is_below

NOWHERE: Final = "nowhere.invalid"
"""So that a run has a door, and what it asks for there is heard, before it may reach anything."""
_MANY: Final = 4
"""From so many files of one folder on, the folder is granted."""

Field = Literal["read", "write", "hosts"]


class Allowed(Struct, frozen=True, kw_only=True):
    """What the person lets the tool do while it is recorded. Paths are absolute."""

    read: tuple[str, ...]
    write: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


class Grants(Struct, frozen=True, kw_only=True):
    """Paths are absolute and lead through no link."""

    read: frozenset[str] = frozenset()
    write: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()

    def add(self, field: Field, what: str) -> Grants:
        return structs.replace(self, **{field: getattr(self, field) | {what}})

    def each(self) -> Iterator[tuple[Field, str]]:
        """What grants most comes first."""
        yield from (("write", path) for path in sorted(self.write))
        yield from (("read", path) for path in sorted(self.read, key=lambda path: (path.count("/"), path)))
        yield from (("hosts", host) for host in sorted(self.hosts))

    def without(self, field: Field, what: str) -> Grants:
        return structs.replace(self, **{field: getattr(self, field) - {what}})

    def gather(self, allowed: tuple[str, ...]) -> Grants:
        """A folder instead of many files in it, if it is allowed; and nothing that lies below something else."""
        paths = set(self.read)
        folders = {str(PurePath(path).parent) for path in paths}
        for folder in folders:
            inside = {path for path in paths if str(PurePath(path).parent) == folder}
            if len(inside) >= _MANY and folder.count("/") > 1 and is_covered(folder, allowed):
                paths = {path for path in paths if not is_below(path, folder)} | {folder}
        paths = {path for path in paths if not any(path != other and is_below(path, other) for other in paths)}
        return structs.replace(self, read=frozenset(path for path in paths if not is_covered(path, self.write)))

    def to_permissions(self, root: str, secrets: dict[str, SecretNeed], *, listening: bool = False) -> Permissions:
        """With `listening`, there is a door even where it leads nowhere."""
        hosts = tuple(sorted(self.hosts)) or ((NOWHERE,) if listening else ())
        return Permissions(
            network=Hosts(hosts=hosts) if hosts else False,
            fs=Files(read=_spell(self.read, root), write=_spell(self.write, root)),
            secrets=secrets,
        )

    def __str__(self) -> str:
        return f"{len(self.read)} to read, {len(self.write)} to write, {len(self.hosts)} hosts"


def is_covered(path: str, folders: frozenset[str] | tuple[str, ...]) -> bool:
    return any(is_below(path, folder) for folder in folders)


def _spell(paths: frozenset[str], root: str) -> tuple[str, ...]:
    return tuple(sorted(spell(path, root) for path in paths))


def spell(path: str, root: str) -> str:
    """Paths in the project are written from its root."""
    return os.path.relpath(path, root) if is_below(path, root) else path

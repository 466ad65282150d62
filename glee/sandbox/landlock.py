"""Files, ports and signals by Landlock: the second wall behind the mount view, and the first where there is none."""

from __future__ import annotations

import os
import stat
import struct
from typing import Final

from glee.sandbox.kernel import call
from glee.sandbox.rights import IOCTL_DEV, OF_FILES, REFER, TRUNCATE

_FILES_SINCE: Final = {1: (1 << 13) - 1, 2: REFER, 3: TRUNCATE, 5: IOCTL_DEV}
_BIND_AND_CONNECT: Final = 3
_PORTS_SINCE: Final = 4
_SOCKETS_AND_SIGNALS: Final = 3
_SCOPES_SINCE: Final = 6


def find_version() -> int:
    """The kernel's version of Landlock; 0 if it has none."""
    try:
        return call("landlock_create_ruleset", None, 0, 1)
    except OSError:
        return 0


def make_ruleset(version: int, *, ports: bool) -> int:
    """A descriptor of an empty ruleset: everything this kernel can judge is forbidden.

    With `ports`, TCP too. From version 6 on, signals and abstract sockets reach no process outside.
    """
    files = sum(rights for since, rights in _FILES_SINCE.items() if since <= version)
    fields = [files]
    if version >= _PORTS_SINCE:
        fields.append(_BIND_AND_CONNECT if ports else 0)
    if version >= _SCOPES_SINCE:
        fields.append(_SOCKETS_AND_SIGNALS)
    value = struct.pack(f"={len(fields)}Q", *fields)
    return call("landlock_create_ruleset", value, len(value), 0)


def add_path(ruleset: int, version: int, file: int, rights: int) -> None:
    """Allows rights below a path, given as a descriptor."""
    known = sum(known for since, known in _FILES_SINCE.items() if since <= version)
    if not stat.S_ISDIR(os.fstat(file).st_mode):
        rights &= OF_FILES
    call("landlock_add_rule", ruleset, 1, struct.pack("=Qi", rights & known, file), 0)


def add_port(ruleset: int, version: int, port: int) -> None:
    """Allows TCP connections to a port."""
    if version >= _PORTS_SINCE:
        call("landlock_add_rule", ruleset, 2, struct.pack("=QQ", 2, port), 0)


def restrict(ruleset: int) -> None:
    """From here on this process and its children are held, for good."""
    call("landlock_restrict_self", ruleset, 0)

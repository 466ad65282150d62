"""Permissions written into a manifest, where the rest of it stays as it was."""

from __future__ import annotations

import re
from typing import Any

from msgspec import to_builtins

from glee.definitions.permissions import Hosts, Permissions
from glee.errors import DefinitionError
from glee.formats import yaml_text

_START = re.compile(r"^permissions[ \t]*:(?=[ \t\r\n]|$)", re.MULTILINE)
_TOP = re.compile(r"^[^\s#]", re.MULTILINE)
_BY_HAND = "the permissions of the manifest cannot be replaced safely; put them in by hand"


def to_mapping(permissions: Permissions) -> dict[str, Any]:
    """As a person would write them: without what is not granted, apart from the network."""
    mapping: dict[str, Any] = {"network": permissions.network}
    if isinstance(permissions.network, Hosts):
        mapping["network"] = {"hosts": list(permissions.network.hosts)}
    files = {name: list(paths) for name in ("read", "write") if (paths := getattr(permissions.fs, name))}
    if files:
        mapping["fs"] = files
    if permissions.secrets:
        mapping["secrets"] = to_builtins(permissions.secrets)
    return mapping


def replace_permissions(text: str, permissions: Permissions) -> str:
    """The manifest with these permissions in the place of its own; of secrets, only what it already says."""
    import yaml

    before = _read(text)
    mapping = to_mapping(permissions)
    secrets = (before.get("permissions") or {}).get("secrets")
    if secrets:
        mapping["secrets"] = secrets
    block = yaml.safe_dump({"permissions": mapping}, sort_keys=False, allow_unicode=True, width=100)
    end = "\r\n" if "\r\n" in text else "\n"
    changed = _put(text, block.replace("\n", end), end)
    if _read(changed) != {**before, "permissions": mapping}:
        raise DefinitionError(_BY_HAND)
    return changed


def _read(text: str) -> dict[str, Any]:
    """As Glee reads it, so that what is written is what is meant."""
    document = yaml_text.parse_bytes(text.encode())
    if document.faults or not isinstance(document.value, dict):
        raise DefinitionError(_BY_HAND)
    return document.value


def _put(text: str, block: str, end: str) -> str:
    starts = list(_START.finditer(text))
    if not starts:
        return text.rstrip() + end + end + block
    start = starts[0]
    rest = _TOP.search(text, start.end())
    stop = rest.start() if rest else len(text)
    lines = text[start.end() : stop].splitlines(keepends=True)
    after: list[str] = []
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        after.insert(0, lines.pop())  # blank lines and comments that belong to what comes next
    return text[: start.start()] + block + "".join(after) + text[stop:]

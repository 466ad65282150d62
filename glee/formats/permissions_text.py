"""Permissions written into a manifest, where the rest of it stays as it was."""

from __future__ import annotations

import re
from typing import Any

from msgspec import to_builtins

from glee.definitions.permissions import Hosts, Permissions
from glee.errors import DefinitionError

_TOP = re.compile(r"^[^\s#]", re.MULTILINE)


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

    document = yaml.safe_load(text)
    if not isinstance(document, dict) or text.lstrip().startswith("{"):
        raise DefinitionError("the manifest is not written as YAML blocks; put the permissions in by hand")
    mapping = to_mapping(permissions)
    secrets = (document.get("permissions") or {}).get("secrets")
    if secrets:
        mapping["secrets"] = secrets
    block = yaml.safe_dump({"permissions": mapping}, sort_keys=False, allow_unicode=True, width=100)
    start = re.search(r"^permissions[ \t]*:", text, re.MULTILINE)
    if start is None:
        return text.rstrip("\n") + "\n\n" + block
    rest = _TOP.search(text, start.end())
    end = rest.start() if rest else len(text)
    kept = text[start.end() : end]
    blank = kept[len(_last_line_removed(kept)) :]
    changed = text[: start.start()] + block + blank + text[end:]
    after = yaml.safe_load(changed)
    if {**document, "permissions": mapping} != after:
        raise DefinitionError("the permissions of the manifest cannot be replaced safely; put them in by hand")
    return changed


def _last_line_removed(text: str) -> str:
    """Without the blank lines and comments that follow the block, and belong to what comes next."""
    lines = text.splitlines(keepends=True)
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    return "".join(lines)

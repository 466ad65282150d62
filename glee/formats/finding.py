"""A problem before it has a file and a line, and how the checks look into a manifest that may be broken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from glee.schemas.validator import Path

KINDS = ("http", "command", "python")


class Finding(Struct, frozen=True):
    """A problem before it has a file and a line."""

    path: Path
    rule: str
    message: str
    hint: str
    key: bool = False
    """True if it is about the key at `path`, not about its value."""
    advice: bool = False
    """True if the definition can be used as it is."""


def dig(value: Any, *path: str) -> Any:
    """What stands at a path of mappings, or None."""
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def mapping(value: Any, *path: str) -> Mapping[str, Any]:
    found = dig(value, *path)
    return found if isinstance(found, dict) else {}


def kind_of(manifest: Mapping[str, Any]) -> Any:
    """The kind, or the one its only block speaks of where the word itself is wrong."""
    kind = manifest.get("kind")
    blocks = [block for block in KINDS if block in mapping(manifest, "exec")]
    return blocks[0] if kind not in KINDS and len(blocks) == 1 else kind


def input_names(manifest: Mapping[str, Any]) -> list[str]:
    return list(mapping(manifest, "inputs", "schema", "properties"))

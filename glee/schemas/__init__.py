"""The published contracts, as data, and the one validator that reads JSON Schema."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import msgspec

_HERE = Path(__file__).parent


@functools.cache
def load_schema(name: str) -> dict[str, Any]:
    """A published schema by its short name: `tool` is tool.schema.json."""
    schema: dict[str, Any] = msgspec.json.decode((_HERE / f"{name}.schema.json").read_bytes())
    return schema

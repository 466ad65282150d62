"""A result: what came of a call. Its keys are the contract every door keeps."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from glee.definitions.json_text import decode_as, encode_json


class Failure(Struct, frozen=True, kw_only=True):
    """Why there is no output. `message` is safe to show to a model."""

    code: str
    message: str
    details: dict[str, Any] = {}


class Artifact(Struct, frozen=True, kw_only=True):
    """Something too large to return, kept whole and read by its handle."""

    handle: str
    media_type: str
    size: int
    """In bytes."""


class Result(Struct, frozen=True, kw_only=True):
    ok: bool
    tool: str
    call_id: str
    output: Any = None
    error: Failure | None = None
    warnings: tuple[str, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    exit_code: int | None = None
    duration_ms: float = 0.0

    def to_json(self) -> bytes:
        return encode_json(self)

    @classmethod
    def from_json(cls, data: bytes | str) -> Result:
        return decode_as(data, cls)

"""What is too large for a result: kept whole as an artifact, its beginning in the result."""

from __future__ import annotations

from typing import Any, Final

from msgspec import structs

from glee.artifacts.cutting import cut_text, preview_json
from glee.artifacts.store import ArtifactStore
from glee.definitions.json_text import encode_json
from glee.definitions.result import Artifact, Result
from glee.errors import CallError

_SCALARS: Final = (int, float, bool, type(None))


class Keeper:
    """For one call."""

    __slots__ = ("_call_id", "_store")

    def __init__(self, store: ArtifactStore, call_id: str) -> None:
        self._store = store
        self._call_id = call_id

    def cut(self, result: Result, limit: int) -> Result:
        """Over the limit, the whole becomes an artifact and the output its beginning."""
        output = result.output
        if isinstance(output, _SCALARS):
            return result
        if isinstance(output, str):
            if len(output) <= limit:
                return result
            kept, warnings = self.keep(output.encode("utf-8", "replace"), "txt")
            shown: Any = cut_text(output, limit, kept[0].handle if kept else None)
        else:
            encoded = encode_json(output)
            if len(encoded) <= limit or len(encoded.decode()) <= limit:
                return result
            kept, warnings = self.keep(encoded, "json")
            shown = preview_json(output, len(encoded.decode()), limit, kept[0].handle if kept else None)
        return structs.replace(
            result,
            output=shown,
            artifacts=(*result.artifacts, *kept),
            warnings=(*result.warnings, *warnings),
        )

    def keep(self, data: bytes, suffix: str) -> tuple[tuple[Artifact, ...], tuple[str, ...]]:
        """The artifact, or a warning: a whole that cannot be kept is no reason to lose its beginning."""
        try:
            return (self._store.keep(self._call_id, data, suffix),), ()
        except CallError as error:
            return (), (error.message,)

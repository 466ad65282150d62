"""Artifacts as files that only their owner can read, the oldest removed when there are too many bytes."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Final

from glee.definitions.result import Artifact
from glee.errors import NotFound, Unavailable

KEPT_BYTES: Final = 512 * 1024 * 1024
_HANDLE = re.compile(r"artifact:([0-9a-f]{8,64})\.(txt|json|bin)")
_MEDIA = {"txt": "text/plain; charset=utf-8", "json": "application/json", "bin": "application/octet-stream"}


class ArtifactStore:
    def __init__(self, folder: Path, kept_bytes: int = KEPT_BYTES) -> None:
        self._folder = folder
        self._kept_bytes = kept_bytes

    def keep(self, call_id: str, data: bytes, suffix: str) -> Artifact:
        """Writes all of it or nothing."""
        handle = f"artifact:{call_id}.{suffix}"
        path = self._path(handle)
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._make_room(len(data))
            draft = path.with_suffix(path.suffix + ".draft")
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(data)
            draft.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                path.with_suffix(path.suffix + ".draft").unlink()
            raise Unavailable(f"the whole output could not be kept: {error.strerror}") from error
        return self.describe(handle, data)

    def describe(self, handle: str, data: bytes) -> Artifact:
        return Artifact(handle=handle, media_type=_MEDIA[handle.rpartition(".")[2]], size=len(data))

    def read(self, handle: str) -> bytes:
        """The whole, as it was kept."""
        try:
            return self._path(handle).read_bytes()
        except FileNotFoundError:
            raise NotFound(f"there is no {handle}; artifacts are removed when newer ones need the room") from None
        except OSError as error:
            raise Unavailable(f"{handle} cannot be read: {error.strerror}") from error

    def _path(self, handle: str) -> Path:
        match = _HANDLE.fullmatch(handle)
        if match is None:
            raise NotFound(f"{handle!r} is not an artifact's handle; it looks like artifact:019a….txt")
        return self._folder / f"{match[1]}.{match[2]}"

    def _make_room(self, wanted: int) -> None:
        files: list[tuple[int, int, str]] = []
        for entry in os.scandir(self._folder):
            with contextlib.suppress(FileNotFoundError):  # another process renames and prunes here too
                status = entry.stat()
                files.append((status.st_mtime_ns, status.st_size, entry.path))
        files.sort(reverse=True)
        total = wanted
        for _, size, path in files:
            total += size
            if total > self._kept_bytes:
                Path(path).unlink(missing_ok=True)

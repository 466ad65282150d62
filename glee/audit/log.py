"""`.glee/audit/tools.log`: written before a run and after it, safe with many processes appending at once.

    [2025-01-09T15:00:10] TOOL_EXECUTED name=weather params={"location":"NYC"} status=success call=…

Times are UTC. Values are JSON, except plain words. One event is one `write` to a file opened for
appending, under a lock that also lets a line cut short by a full disk be taken back.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

from glee.definitions.json_text import encode_json
from glee.errors import Internal

MAX_PARAMS: Final = 16_384
_PLAIN = re.compile(r"[A-Za-z0-9_.:/+-]+")


class Record(Protocol):
    """Where events are written. It raises if it cannot, and then the call does not run."""

    def write(self, event: str, fields: str) -> None:
        """One event and its fields, as `show_fields` wrote them."""
        ...


class NoRecord:
    """For measuring what a call costs without its record; never used by a door."""

    def write(self, event: str, fields: str) -> None:
        return


class AuditLog:
    """Appends lines to one file, opened at the first event."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._file = -1
        self._inode = (0, 0)
        self._lock = threading.Lock()
        self._second = (-1, "")
        self._look = True

    def write(self, event: str, fields: str) -> None:
        line = f"[{self._time()}] {event} {fields}\n".encode()
        try:
            with self._lock:
                self._append(line)
        except OSError as error:
            raise Internal(
                f"the audit log {self.path} cannot be written ({error.strerror}), so nothing runs; "
                "free disk space or mend its permissions"
            ) from error

    def _time(self) -> str:
        """Of this second; a new second is also when to look whether the file was rotated."""
        now = int(self._clock())
        if self._second[0] != now:
            self._second = (now, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)))
            self._look = True
        return self._second[1]

    def _append(self, line: bytes) -> None:
        if self._file < 0 or (self._look and self._moved()):
            self._open()
        self._look = False
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            written = os.write(self._file, line)
            if written < len(line):
                os.ftruncate(self._file, os.fstat(self._file).st_size - written)
                raise OSError(28, "no space left for the line")
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def _moved(self) -> bool:
        """True once the file was renamed or removed under us, as log rotation does."""
        try:
            status = os.stat(self.path)
        except OSError:
            return True
        return (status.st_dev, status.st_ino) != self._inode

    def _open(self) -> None:
        self.close()
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(self.path, flags, 0o600)
        status = os.fstat(self._file)
        self._inode = (status.st_dev, status.st_ino)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def show_fields(**fields: Any) -> str:
    """`name=value` for each field that is not None, in the order given."""
    return " ".join([f"{name}={_show(value)}" for name, value in fields.items() if value is not None])


def _show(value: Any) -> str:
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) else _escape(encode_json(value))
    encoded = encode_json(value)
    if len(encoded) > MAX_PARAMS:
        cut = {"sha256": hashlib.sha256(encoded).hexdigest(), "bytes": len(encoded), "cut": True}
        return encode_json(cut).decode()
    return _escape(encoded)


def _escape(encoded: bytes) -> str:
    """Characters that some readers take for a line break are escaped, so that one event stays one line."""
    text = encoded.decode()
    if text.isascii():
        return text
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\u0085")

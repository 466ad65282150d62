"""`.glee/audit/tools.log`: written before a run and after it, safe with many processes appending at once.

    [2025-01-09T15:00:10] TOOL_EXECUTED name=weather params={"location":"NYC"} status=success isolation=full … call=…

Times are UTC. Values are JSON, except plain words. One event is one `write` to a file opened for
appending, under a lock that also lets a line cut short by a full disk be taken back.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import Struct, structs

from glee.definitions.call import Caller
from glee.definitions.json_text import encode_json
from glee.errors import Internal

MAX_PARAMS: Final = 16_384
_PATIENCE: Final = 1.0
"""Seconds to wait for another process to let go of the log."""
_GLANCE: Final = 0.02
"""Seconds to wait shortly after that was in vain."""
_PLAIN = re.compile(r"[A-Za-z0-9_.:/+-]{1,200}")
_UNSAFE = re.compile("[\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


class Entry(Struct):
    """What a line says of a call, apart from the event and its status. Rendered once for all its lines."""

    name: str
    params: Any
    """Secrets already taken out."""
    caller: Caller
    call_id: str
    shown: tuple[str, str] | None = None
    isolation: str | None = None
    """How the run was held, once that is known."""


class Record(Protocol):
    """Where events are written. It raises if it cannot, and then the call does not run."""

    def write(self, event: str, entry: Entry, status: str | None = None) -> None: ...


class NoRecord:
    """For measuring what a call costs without its record; never used by a door."""

    def write(self, event: str, entry: Entry, status: str | None = None) -> None:
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
        self._gave_up = 0.0
        self._callers: dict[Caller, str] = {}

    def write(self, event: str, entry: Entry, status: str | None = None) -> None:
        what, who = entry.shown or self._render(entry)
        middle = f" status={status}" if status is not None else ""
        if entry.isolation is not None:
            middle += f" {entry.isolation}"
        line = f"[{self._time()}] {event} {what}{middle} {who}\n".encode()
        try:
            with self._lock:
                self._append(line)
        except OSError as error:
            raise Internal(
                f"the audit log {self.path} cannot be written ({error.strerror}), so nothing runs; "
                "free disk space or mend its permissions"
            ) from error

    def _render(self, entry: Entry) -> tuple[str, str]:
        who = self._callers.get(entry.caller)
        if who is None:
            if len(self._callers) > 1000:
                self._callers.clear()
            fields = structs.asdict(entry.caller)
            order = ("door", "agent", "provider", "skill", "session")
            who = " ".join([f"{name}={_show(fields[name])}" for name in order if fields[name] is not None])
            self._callers[entry.caller] = who
        try:
            params = _show(entry.params)
        except Exception:  # whatever cannot be written as JSON must not keep the call out of the record
            params = '{"unrenderable":true}'
        entry.shown = (f"name={_show(entry.name)} params={params}", f"{who} call={entry.call_id}")
        return entry.shown

    def _time(self) -> str:
        """Of this second; a new second is also when to look whether the file was rotated."""
        now = int(self._clock())
        if self._second[0] != now:
            self._second = (now, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)))
            self._look = True
        return self._second[1]

    def _append(self, line: bytes) -> None:
        if self._file < 0 or (self._look and self._moved()) or os.fstat(self._file).st_nlink == 0:
            self._open()
        self._look = False
        self._lock_file()
        try:
            written = os.write(self._file, line)
            if written < len(line):
                os.ftruncate(self._file, os.fstat(self._file).st_size - written)
                raise OSError(errno.ENOSPC, "no space left for the line")
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def _lock_file(self) -> None:
        """Others hold it for microseconds; whoever holds it for seconds must not hold up every call as well."""
        until = 0.0
        while True:
            try:
                return fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                now = time.monotonic()
                until = until or now + (_GLANCE if now < self._gave_up + _PATIENCE else _PATIENCE)
                if now >= until:
                    self._gave_up = now
                    raise OSError(errno.EAGAIN, "another process holds it locked") from None
                time.sleep(0.0005)

    def _moved(self) -> bool:
        """True once another file has the name, as log rotation does; one that was removed has no link left."""
        try:
            status = os.stat(self.path)
        except OSError:
            return True
        return (status.st_dev, status.st_ino) != self._inode

    def _open(self) -> None:
        self._close()
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.path.parent.is_symlink():
            raise OSError(errno.ELOOP, "its folder is a link, and could lead anywhere")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        self._file = os.open(self.path, flags, 0o600)
        status = os.fstat(self._file)
        if not stat.S_ISREG(status.st_mode):
            self._close()
            raise OSError(errno.EINVAL, "it is not a file")
        self._inode = (status.st_dev, status.st_ino)

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)


def _show(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    encoded = encode_json(value)
    if len(encoded) > MAX_PARAMS:
        cut = {"sha256": hashlib.sha256(encoded).hexdigest(), "bytes": len(encoded), "cut": True}
        return encode_json(cut).decode()
    return _escape(encoded)


def _escape(encoded: bytes) -> str:
    """What could break a line, move a cursor or turn the reading direction is escaped: one event, one honest line."""
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded.decode()
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", encoded.decode())

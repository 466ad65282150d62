"""One run for each idempotency key: the first call claims it, later ones get its result.

A claim is a file made with O_EXCL in the state folder, so it holds between processes too. A run that was
cut off leaves a claim without a result: its effect is unknown, so it is not run again under that key.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from glee.definitions.call import Call
from glee.definitions.json_text import decode_as, encode_json
from glee.definitions.result import Result
from glee.errors import InvalidInput, Unavailable


class _Claim(Struct, kw_only=True):
    call_id: str
    arguments: str
    """SHA-256, so that one key cannot stand for two different calls."""
    result: Result | None = None


class Claims(Protocol):
    def claim(self, call: Call, call_id: str) -> Result | None:
        """None: the key is yours, run. A result: an earlier call with this key ended so."""
        ...

    def release(self, call: Call) -> None:
        """Nothing was run after all."""
        ...

    def settle(self, call: Call, result: Result) -> None:
        """The run under this key ended so."""
        ...


class FileClaims:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def claim(self, call: Call, call_id: str) -> Result | None:
        path = self._path(call)
        claim = _Claim(call_id=call_id, arguments=_digest(call))
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return self._earlier(path, call)
        except OSError as error:
            raise Unavailable(f"the idempotency key cannot be claimed in {self._folder}: {error.strerror}") from error
        try:
            with open(file, "wb") as stream:
                stream.write(msgspec.json.encode(claim))
        except OSError as error:
            self.release(call)  # nothing ran, so the key is free
            raise Unavailable(f"the idempotency key cannot be claimed in {self._folder}: {error.strerror}") from error
        return None

    def release(self, call: Call) -> None:
        with contextlib.suppress(OSError):
            self._path(call).unlink()

    def settle(self, call: Call, result: Result) -> None:
        path = self._path(call)
        draft = path.with_suffix(".draft")
        with contextlib.suppress(OSError, ValueError):
            claim = decode_as(path.read_bytes(), _Claim)
            claim.result = result
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(encode_json(claim))
            draft.replace(path)

    def _earlier(self, path: Path, call: Call) -> Result:
        try:
            claim = decode_as(path.read_bytes(), _Claim)
        except (OSError, ValueError):
            claim = None
        if claim is not None and claim.arguments != _digest(call):
            raise InvalidInput(
                f"the idempotency key {call.idempotency_key!r} was used with other arguments; use a new key"
            )
        if claim is None or claim.result is None:
            raise Unavailable(
                f"a call with the idempotency key {call.idempotency_key!r} is running or was cut off; "
                "wait for it, or use a new key to run again",
                details={"call_id": claim.call_id if claim else None},
            )
        return claim.result

    def _path(self, call: Call) -> Path:
        key = encode_json([call.tool, call.caller.agent, call.caller.session, call.idempotency_key])
        return self._folder / f"{hashlib.sha256(key).hexdigest()}.json"


def _digest(call: Call) -> str:
    return hashlib.sha256(encode_json(_in_order(call.arguments))).hexdigest()


def _in_order(value: Any) -> Any:
    """Objects with their keys sorted: JSON gives the order of keys no meaning."""
    if isinstance(value, dict):
        return {key: _in_order(item) for key, item in sorted(value.items())}
    return [_in_order(item) for item in value] if isinstance(value, list | tuple) else value

"""A call: who wants which tool with which arguments. It can be written as JSON and carried elsewhere."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from glee.definitions.json_text import decode_as, encode_json
from glee.errors import InvalidInput


class Caller(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Through which door a call came, and on whose behalf."""

    agent: str | None = None
    provider: str | None = None
    skill: str | None = None
    session: str | None = None
    door: str = "python"


class Trace(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """W3C trace context, passed on as it came."""

    traceparent: str | None = None
    tracestate: str | None = None


_NOBODY = Caller()
_NO_TRACE = Trace()


class Call(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One wish to use one tool."""

    tool: str
    arguments: dict[str, Any] = {}
    caller: Caller = _NOBODY
    context: dict[str, Any] = {}
    """What surrounds the caller: url, selection, clipboard, file, cwd, transcript."""
    vocabulary: str | None = None
    """The vocabulary in which tool and arguments are named, if not Glee's own."""
    idempotency_key: str | None = None
    """At most one run for each key; later calls with it get the first one's result."""
    deadline: float | None = None
    """Seconds since the epoch after which nobody waits for the result any more."""
    autonomy: str | None = None
    """How much the caller may do without being asked; policy gives the word its meaning."""
    trace: Trace = _NO_TRACE

    def to_json(self) -> bytes:
        return encode_json(self)

    @classmethod
    def from_json(cls, data: bytes | str) -> Call:
        try:
            return decode_as(data, cls)
        except ValueError as error:
            raise InvalidInput(f'not a call: {error}; it needs at least {{"tool": "NAME"}}') from error

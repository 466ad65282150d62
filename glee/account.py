"""What is told of one call, to listeners and to the record: its words with the secrets taken out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import structs

from glee.audit.log import Entry, Record
from glee.definitions.call import Call, Caller
from glee.definitions.event import Progressed
from glee.definitions.isolation import Isolation
from glee.definitions.tool import Tool
from glee.events import Events
from glee.secrets.redaction import NOTHING, Redactor

_CALLERS_WORDS = ("arguments", "context", "idempotency_key")


class Account:
    __slots__ = ("_audit", "_call", "_entry", "_events", "_id", "_now", "is_over", "isolation", "redactor", "tool")

    def __init__(self, call: Call, call_id: str, audit: Record, events: Events, now: Callable[[], float]) -> None:
        self._call = call
        self._id = call_id
        self._audit = audit
        self._events = events
        self._now = now
        self._entry: Entry | None = None
        self.tool: Tool | None = None
        self.redactor: Redactor = NOTHING
        self.isolation: Isolation | None = None
        self.is_over = False

    def name(self) -> str:
        return self.tool.name if self.tool else self._call.tool

    def redact(self, value: Any) -> Any:
        return value if self.redactor is NOTHING else self.redactor.value(value)

    def shown_call(self) -> Call:
        if self.redactor is NOTHING:
            return self._call
        fields = {name: self.redactor.value(getattr(self._call, name)) for name in _CALLERS_WORDS}
        return structs.replace(self._call, caller=self._shown_caller(), **fields)

    def _shown_caller(self) -> Caller:
        if self.redactor is NOTHING:
            return self._call.caller
        words = structs.asdict(self._call.caller)
        return Caller(**{name: self.redactor.value(word) for name, word in words.items()})

    def record(self, event: str, arguments: dict[str, Any], status: str | None = None) -> None:
        """A line in the audit log. What it says of the call is made once, when the arguments are final."""
        if self._entry is None:
            self._entry = Entry(self.name(), self._shown_arguments(arguments), self._shown_caller(), self._id)
        if self.isolation is not None:
            self._entry.isolation = str(self.isolation)
        self._audit.write(event, self._entry, status)

    def hold(self, isolation: Isolation) -> None:
        self.isolation = isolation

    def _shown_arguments(self, arguments: dict[str, Any]) -> Any:
        try:
            return self.redact(arguments)
        except (RecursionError, ValueError):
            return {"unrenderable": True}

    def tell(self, kind: type[Any], **fields: Any) -> None:
        """An event for the listeners; the fields are already without secrets."""
        self._events.emit(kind(call_id=self._id, tool=self.name(), at=self._now(), **fields))

    def tell_progress(self, done: float | None, total: float | None, message: str) -> None:
        if self._events.listeners and not self.is_over:
            self.tell(Progressed, done=self.redact(done), total=self.redact(total), message=self.redactor.text(message))

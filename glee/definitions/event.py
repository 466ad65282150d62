"""What happens to a call, as it happens: one stream of typed values, in the past tense."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from glee.definitions.call import Call
from glee.definitions.decision import Decision
from glee.definitions.isolation import Isolation
from glee.definitions.result import Result


class _Event(Struct, frozen=True, kw_only=True, tag_field="event"):
    call_id: str
    tool: str
    at: float
    """Seconds since the epoch."""


class Requested(_Event, frozen=True, kw_only=True, tag="requested"):
    """A call came in. Arguments are as the caller gave them, secrets removed."""

    call: Call


class Decided(_Event, frozen=True, kw_only=True, tag="decided"):
    """Policy, and a person where one was asked, said yes or no."""

    decision: Decision
    approved: bool | None = None
    """What the person said, if one was asked."""


class Started(_Event, frozen=True, kw_only=True, tag="started"):
    """The tool's own code is about to run."""


class Progressed(_Event, frozen=True, kw_only=True, tag="progressed"):
    """The running tool said how far it is."""

    done: float | None = None
    total: float | None = None
    message: str = ""


class Finished(_Event, frozen=True, kw_only=True, tag="finished"):
    """The call is over; `result` is what its caller gets."""

    result: Result
    said: str = ""
    """What the tool wrote beside its output, on standard error say; for a person to read, secrets removed."""
    isolation: Isolation | None = None
    """How it was held; None if nothing ran, or in Glee's own process."""


Event = Requested | Decided | Started | Progressed | Finished
Listener = Callable[[Event], None]

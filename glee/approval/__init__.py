"""Who said yes: where a call waits until a person has answered."""

from __future__ import annotations

from typing import Literal, Protocol

from msgspec import Struct

from glee.definitions.call import Call
from glee.definitions.tool import Tool

Answer = Literal["yes", "no", "nobody"]
"""`nobody`: there is no one to ask, so the call is answered with `approval_required`."""


class Question(Struct, frozen=True, kw_only=True):
    """What a person is asked: this tool, with these arguments, for this reason.

    The call's arguments are those the tool would run with: defaults applied, secrets removed.
    """

    call_id: str
    tool: Tool
    call: Call
    reason: str


class Approver(Protocol):
    """Whoever can ask a person, or has been told the answer beforehand.

    One that never awaits may set `answers_in_place = True`, and is then asked without an event loop.
    """

    async def ask(self, question: Question) -> Answer: ...


class Nobody:
    """No one to ask."""

    answers_in_place = True

    async def ask(self, question: Question) -> Answer:
        return "nobody"


class Always:
    """The answer was given with the call: `--yes`, or a program that answers for its own user."""

    answers_in_place = True

    def __init__(self, answer: Answer = "yes") -> None:
        self._answer = answer

    async def ask(self, question: Question) -> Answer:
        return self._answer

"""What policy answers: allow, ask a person, or deny. Values, not exceptions."""

from __future__ import annotations

from msgspec import Struct


class Rule(Struct, frozen=True, kw_only=True):
    """The line that decided: what it says and which file says it."""

    text: str
    source: str

    def __str__(self) -> str:
        return f"{self.text} in {self.source}"


class Allow(Struct, frozen=True, kw_only=True, tag="allow"):
    rule: Rule | None = None


class Ask(Struct, frozen=True, kw_only=True, tag="ask"):
    reason: str
    rule: Rule | None = None


class Deny(Struct, frozen=True, kw_only=True, tag="deny"):
    reason: str
    rule: Rule | None = None


Decision = Allow | Ask | Deny

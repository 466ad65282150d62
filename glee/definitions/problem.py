"""What is wrong with a definition, where, and how to mend it."""

from __future__ import annotations

from msgspec import Struct


class Problem(Struct, frozen=True, kw_only=True):
    file: str
    line: int
    column: int
    field: str
    """A dotted path: `exec.http.url`; empty for the whole file."""
    rule: str
    message: str
    hint: str
    advice: bool = False
    """True if nothing is wrong, and it could be better."""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}"
        field = f" {self.field}:" if self.field else ""
        return f"{where}:{field} {self.message}; {self.hint}"

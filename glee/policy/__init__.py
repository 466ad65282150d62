"""May it happen: pure decisions over definitions. No file is read here, nothing is run."""

from __future__ import annotations

from typing import Any, Protocol

from glee.definitions.call import Call, Caller
from glee.definitions.decision import Allow, Decision, Deny
from glee.definitions.tool import Tool


class Subject(Protocol):
    """What a rule can speak of: a tool, or its line in a listing."""

    @property
    def name(self) -> str: ...
    @property
    def group(self) -> str | None: ...


class Policy(Protocol):
    def visible(self, subject: Subject, caller: Caller) -> Allow | Deny:
        """May this caller know of this tool?"""
        ...

    def decide(self, tool: Tool, arguments: dict[str, Any], call: Call) -> Decision:
        """May this call happen now?"""
        ...

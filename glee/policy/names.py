"""Allow and deny by name. Deny always wins, and every file can only narrow what stands above it."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from glee.definitions.call import Call, Caller
from glee.definitions.decision import Allow, Ask, Decision, Deny, Rule
from glee.definitions.rules import NameRules
from glee.definitions.tool import Tool
from glee.policy import Subject

_ALLOW = Allow()


class NamePolicy:
    """The first, smallest policy: which names exist, and what a manifest itself asks a person about."""

    def __init__(self, rules: Sequence[NameRules] = ()) -> None:
        self._rules = tuple(rules)

    def visible(self, subject: Subject, caller: Caller) -> Allow | Deny:
        name = subject.name
        for rules in self._rules:
            for pattern in rules.deny:
                if _matches(name, pattern):
                    rule = Rule(text=f"tools.deny: {pattern}", source=rules.source)
                    return Deny(reason=f"the tool {name} is denied by {rule}", rule=rule)
        for rules in self._rules:
            if rules.allow is not None and not any(_matches(name, pattern) for pattern in rules.allow):
                rule = Rule(text="tools.allow", source=rules.source)
                return Deny(reason=f"the tool {name} is not among {rule}", rule=rule)
        return _ALLOW

    def decide(self, tool: Tool, arguments: dict[str, Any], call: Call) -> Decision:
        if tool.approval.required:
            return Ask(reason=tool.approval.reason, rule=Rule(text="approval", source=tool.origin.location))
        return _ALLOW


def _matches(name: str, pattern: str) -> bool:
    """A name stands for itself, whatever a pattern would make of its brackets."""
    return name == pattern or fnmatchcase(name, pattern)

"""Which hosts a run may reach. The words themselves are definitions, since the linter reads them too."""

from __future__ import annotations

from glee.definitions.hosts import HostRule, find_rule, parse_hosts

__all__ = ["HostRule", "find_rule", "parse_hosts"]

"""Runs a tool, held, with more and more of what it tried and the person allows.

It begins with nothing. What it tried to touch and was not given, and what the person allows for this, is given to
it the next time. When it succeeds, each grant is taken away again to see if it was needed. So no run has more than
the person allowed, and little more than it needs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, structs

from glee.approval import Approver
from glee.catalog.catalog import Catalog
from glee.compose import compose
from glee.config import Settings
from glee.definitions.call import Call, Caller
from glee.definitions.hosts import find_rule, parse_hosts, to_authority
from glee.definitions.permissions import Permissions
from glee.definitions.result import Result
from glee.definitions.tool import Tool
from glee.egress.proxy import Attempt
from glee.errors import DefinitionError
from glee.holding import compose_jails, compose_proxy
from glee.learning.grants import NOWHERE, Allowed, Grants, is_covered, spell
from glee.runners.recorded import RecordedCells
from glee.sandbox.mounts import HOME, TMP, Mounts
from glee.sandbox.recording import Touch
from glee.sandbox.spec import Spec, is_below

_ROUNDS: Final = 10
_LINKS: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")


class Learnt(Struct, frozen=True, kw_only=True):
    permissions: Permissions
    ok: bool
    """Whether every call succeeds with these."""
    results: tuple[Result, ...]
    not_allowed: tuple[str, ...]
    """If they do not: what was tried and the person did not allow, as sentences."""


class _Heard(Struct, frozen=True, kw_only=True):
    results: tuple[Result, ...]
    touches: tuple[Touch, ...]
    refused: tuple[Attempt, ...]
    shown: tuple[str, ...]
    """What the jail let it see without being asked."""

    @property
    def ok(self) -> bool:
        return all(result.ok for result in self.results)


class Learner:
    def __init__(
        self,
        settings: Settings,
        tool: Tool,
        allowed: Allowed,
        *,
        approver: Approver,
        tell: Callable[[str], None] = lambda _: None,
        tell_operator: Callable[[str], None] | None = None,
    ) -> None:
        if tool.kind not in ("command", "python"):
            raise DefinitionError(f"{tool.name} is of kind {tool.kind}; only programs and Python tools are held")
        self._settings = settings
        self._root = str(settings.root.resolve())
        self._tool = tool
        self._allowed = allowed
        self._rules = parse_hosts(allowed.hosts)
        self._approver = approver
        self._tell = tell
        self._tell_operator = tell_operator

    def learn(self, calls: Sequence[dict[str, Any]]) -> Learnt:
        grants = Grants()
        refused: dict[str, None] = {}
        for number in range(1, _ROUNDS + 1):
            self._tell(f"round {number}: {grants}")
            heard = self._run(grants, calls)
            wider, sentences = self._widen(grants, heard, folders=False)
            if wider == grants and not heard.ok:  # a folder would be all that is in it, so it comes last
                wider, sentences = self._widen(grants, heard, folders=True)
            refused |= dict.fromkeys(sentences)
            if wider == grants:
                break
            grants = wider
        if heard.ok:
            grants = self._reduce(grants, calls)
            heard = self._run(grants, calls)  # the last thing that happens is what should
        return Learnt(
            permissions=grants.to_permissions(self._root, self._tool.permissions.secrets),
            ok=heard.ok,
            results=heard.results,
            not_allowed=() if heard.ok else tuple(refused),
        )

    def _run(self, grants: Grants, calls: Sequence[dict[str, Any]]) -> _Heard:
        """Through the same path as any call: it is decided, approved and recorded."""
        jails = compose_jails(self._settings, record=True)
        cells = RecordedCells(jails, self._settings.search_path, lambda: compose_proxy(self._settings))
        permissions = grants.to_permissions(self._root, self._tool.permissions.secrets, listening=True)
        parts: dict[str, Any] = {"approver": self._approver, "tell_operator": self._tell_operator}
        with compose(self._settings, catalog=Catalog([]), cells=cells, **parts) as engine:
            engine.register(structs.replace(self._tool, permissions=permissions))
            caller = Caller(door="cli")
            results = [engine.call_sync(Call(tool=self._tool.name, arguments=one, caller=caller)) for one in calls]
            cells.finish()
        return _Heard(
            results=tuple(results),
            touches=tuple(cells.recorder.touches),
            refused=tuple(cells.refused),
            shown=tuple({path for spec in cells.specs for path in _shown(spec)}),
        )

    def _widen(self, grants: Grants, heard: _Heard, *, folders: bool) -> tuple[Grants, list[str]]:
        """With what it tried and may have; and sentences on what it may not."""
        sentences: list[str] = []
        for touch in heard.touches:
            if touch.address:
                sentences += _of_address(touch.what)
                continue
            path = self._find_grant(touch)
            given = (*grants.write, *(() if touch.writes else (*grants.read, *heard.shown)))
            if path is None or is_covered(path, given) or self._is_its_own(path):
                continue
            if not touch.writes and not folders and Path(path).is_dir():
                continue
            allowed = self._allowed.write if touch.writes else (*self._allowed.read, *self._allowed.write)
            if is_covered(path, allowed):
                grants = grants.add("write" if touch.writes else "read", path)
            else:
                sentences.append(self._say(path, touch.writes))
        for attempt in heard.refused:
            grants, said = self._widen_hosts(grants, attempt)
            sentences += said
        return grants.gather(), sentences

    def _widen_hosts(self, grants: Grants, attempt: Attempt) -> tuple[Grants, list[str]]:
        if not attempt.host or attempt.host == NOWHERE:
            return grants, []
        if attempt.port is not None and find_rule(self._rules, attempt.host, attempt.port):
            usual = attempt.port in (80, 443)
            return grants.add("hosts", to_authority(attempt.host, None if usual else attempt.port)), []
        authority = to_authority(attempt.host, attempt.port)
        return grants, [f"it tried to reach {authority}; to let it: --allow-host {authority}"]

    def _find_grant(self, touch: Touch) -> str | None:
        """The path to grant: what is there; for something new, the folder it would be in."""
        own = (self._settings.state.parent, self._settings.cache.parent, self._settings.person.parent)
        if any(is_below(touch.what, str(folder)) for folder in (*own, "/proc", "/dev")):
            return None
        real = Path(os.path.realpath(touch.what))
        if os.path.lexists(real):
            return str(real)
        return str(real.parent) if touch.writes and real.parent.is_dir() and real.parent != Path("/") else None

    def _is_its_own(self, path: str) -> bool:
        """True for what lies where the jail has folders of its own, unless it was named."""
        named = (self._root, *self._allowed.read, *self._allowed.write)
        return is_covered(path, (TMP, HOME)) and not is_covered(path, named)

    def _reduce(self, grants: Grants, calls: Sequence[dict[str, Any]]) -> Grants:
        """Takes each grant away to see whether the calls succeed without it."""
        for number, (field, what) in enumerate(list(grants.each()), 1):
            self._tell(f"trying without grant {number}: {what}")
            smaller = grants.without(field, what)
            for candidate in (smaller, smaller.add("read", what)) if field == "write" else (smaller,):
                if self._run(candidate, calls).ok:
                    grants = candidate
                    break
        return grants

    def _say(self, path: str, writes: bool) -> str:
        shown = spell(path, self._root)
        verb, flag = ("write to", "--allow-write") if writes else ("read", "--allow-read")
        return f"it tried to {verb} {shown}; to let it: {flag} {shown}"


def _shown(spec: Spec) -> Iterator[str]:
    yield from Mounts(spec).readable()
    yield from _LINKS


def _of_address(address: str) -> list[str]:
    """The door itself is no news."""
    if address.startswith("127.0.0.1:"):
        return []
    return [f"it connects to {address} itself; only requests through a proxy can be held to hosts, else network: true"]

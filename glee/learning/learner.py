"""Runs a tool, held, with what the person allows, and then with less and less of it.

The first run has all that the person allows; it shows what success looks like, and what is touched on the way. The
next has what was touched alone. Then each grant is taken away to see whether the calls still end as in the first
run. So no run has more than the person allowed, and what is left is what these calls need.
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
from glee.definitions.hosts import to_authority
from glee.definitions.permissions import Permissions
from glee.definitions.result import Result
from glee.definitions.tool import Tool
from glee.egress.proxy import Attempt
from glee.errors import DefinitionError
from glee.holding import compose_jails, compose_proxy
from glee.learning.grants import NOWHERE, Allowed, Field, Grants, is_covered, spell
from glee.runners.recorded import RecordedCells
from glee.sandbox.mounts import HOME, TMP, Mounts
from glee.sandbox.recording import Touch
from glee.sandbox.spec import Spec, is_below

_MOST: Final = 40
"""Paths that are tried one by one; of more, whole folders are."""
_ANY: Final = object()
"""An output that differs from run to run."""
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
    reached: tuple[tuple[str, int], ...]
    """Hosts and ports that it asked for and may."""
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
        self._expected: list[Any] = []
        self._approver = approver
        self._tell = tell
        self._tell_operator = tell_operator

    def learn(self, calls: Sequence[dict[str, Any]]) -> Learnt:
        read, write, hosts = map(frozenset, (self._allowed.read, self._allowed.write, self._allowed.hosts))
        everything = Grants(read=read, write=write, hosts=hosts)
        self._tell("with all that is allowed")
        model = self._run(everything, calls)
        if not model.ok:
            return self._end(Grants(), model, self._find_refused(model))
        self._settle(model, everything, calls)
        grants = self._find_enough(everything, model, calls)
        for number, (field, what) in enumerate(list(grants.each()), 1):
            self._tell(f"without grant {number}: {what}")
            grants = self._try_without(grants, field, what, calls)
        grants = grants.gather(self._allowed.read)
        last = self._run(grants, calls)  # the last thing that happens is what should
        return self._end(self._with_secrets_hosts(grants), last, [])

    def _end(self, grants: Grants, heard: _Heard, refused: Sequence[str]) -> Learnt:
        return Learnt(
            permissions=grants.to_permissions(self._root, self._tool.permissions.secrets),
            ok=heard.ok,
            results=heard.results,
            not_allowed=tuple(dict.fromkeys(refused)),
        )

    def _settle(self, model: _Heard, everything: Grants, calls: Sequence[dict[str, Any]]) -> None:
        """Which results must stay the same: those that are, when nothing changes. A time of day does not."""
        again = self._run(everything, calls)
        self._expected = [
            result.output if result.output == other.output else _ANY
            for result, other in zip(model.results, again.results, strict=True)
        ]

    def _is_enough(self, heard: _Heard) -> bool:
        return heard.ok and all(
            expected is _ANY or result.output == expected
            for result, expected in zip(heard.results, self._expected, strict=True)
        )

    def _find_enough(self, everything: Grants, model: _Heard, calls: Sequence[dict[str, Any]]) -> Grants:
        """Files that were opened; if that is not enough, folders too; then what was looked at; else all."""
        for folders, looks in ((False, False), (True, False), (True, True)):
            grants = self._collect(model, folders=folders, looks=looks)
            if len(grants.read) > _MOST:
                grants = grants.gather(self._allowed.read)
            if self._is_enough(self._run(grants, calls)):
                return grants
        return everything

    def _try_without(self, grants: Grants, field: Field, what: str, calls: Sequence[dict[str, Any]]) -> Grants:
        smaller = grants.without(field, what)
        for candidate in (smaller, smaller.add("read", what)) if field == "write" else (smaller,):
            if self._is_enough(self._run(candidate, calls)):
                return candidate
        return grants

    def _with_secrets_hosts(self, grants: Grants) -> Grants:
        """A secret that belongs to a host is of no use without it, and its manifest would be refused."""
        for need in self._tool.permissions.secrets.values():
            if need.host is not None:
                grants = grants.add("hosts", need.host)
        return grants

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
            reached=tuple(dict.fromkeys(cells.reached)),
            shown=tuple({path for spec in cells.specs for path in _shown(spec)} - grants.read - grants.write),
        )

    def _collect(self, heard: _Heard, *, folders: bool, looks: bool) -> Grants:
        """Grants for what a run touched, as far as it is allowed and not there anyway."""
        grants = Grants()
        for touch in heard.touches:
            path = None if touch.address or (touch.looks and not looks) else self._find_grant(touch)
            if path is None or self._is_its_own(path) or (not touch.writes and is_covered(path, heard.shown)):
                continue
            if not touch.writes and not folders and Path(path).is_dir():
                continue
            if self._is_allowed(path, touch.writes):
                grants = grants.add("write" if touch.writes else "read", path)
        for host, port in heard.reached:
            grants = grants.add("hosts", to_authority(host, None if port in (80, 443) else port))
        return grants

    def _find_refused(self, heard: _Heard) -> list[str]:
        """Sentences on what it tried and was not allowed."""
        sentences = []
        for touch in heard.touches:
            if touch.address:
                sentences += _of_address(touch.what)
                continue
            path = None if touch.looks else self._find_grant(touch)
            if path is None or self._is_its_own(path) or (not touch.writes and is_covered(path, heard.shown)):
                continue
            if not self._is_allowed(path, touch.writes):
                sentences.append(self._say(path, touch.writes))
        for attempt in heard.refused:
            if attempt.host and attempt.host != NOWHERE:
                authority = to_authority(attempt.host, attempt.port)
                sentences.append(f"it tried to reach {authority}; to let it: --allow-host {authority}")
        return sentences

    def _find_grant(self, touch: Touch) -> str | None:
        """The path to grant: what is there; for something new, the folder it would be in."""
        own = (self._settings.state.parent, self._settings.cache.parent, self._settings.person.parent)
        if any(is_below(touch.what, str(folder)) for folder in (*own, "/proc", "/dev")):
            return None
        real = Path(os.path.realpath(touch.what))
        if touch.makes:
            real = real.parent
        if os.path.lexists(real):
            return str(real) if real != Path("/") else None
        return str(real.parent) if touch.writes and real.parent.is_dir() and real.parent != Path("/") else None

    def _is_allowed(self, path: str, writes: bool) -> bool:
        return is_covered(path, self._allowed.write if writes else (*self._allowed.read, *self._allowed.write))

    def _is_its_own(self, path: str) -> bool:
        """True for what lies where the jail has folders of its own, unless it was named."""
        named = (self._root, *self._allowed.read, *self._allowed.write)
        return is_covered(path, (TMP, HOME)) and not is_covered(path, named)

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

"""Settings into a wired Engine: the only place that knows every room."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glee import config
from glee.catalog.catalog import Catalog
from glee.catalog.manifests import ManifestSource
from glee.config import Settings
from glee.errors import SandboxUnavailable
from glee.policy.names import NamePolicy

if TYPE_CHECKING:
    from glee.approval import Approver
    from glee.audit.log import Record
    from glee.definitions.tool import Tool
    from glee.engine import Engine
    from glee.formats.functions import FunctionTool
    from glee.runners.cells import Cells


def open_engine(
    root: str | Path | None = None,
    *,
    tools: Iterable[FunctionTool[..., Any] | Tool] = (),
    approver: Approver | None = None,
    audit: Record | None = None,
    environ: Mapping[str, str] | None = None,
) -> Engine:
    """An engine for the project at or above `root`, with a program's own tools added.

    Without `root` it is the project here or above; if there is none, an engine without a project.

    Without `approver` there is nobody to ask: a call that needs approval is answered so. Secrets are
    read from `environ`, the process's own environment unless given.
    """
    found = config.get_root(Path(root)) if root is not None else config.find_root()
    settings = config.load_settings(found, environ=environ)
    engine = compose(settings, approver=approver, audit=audit, environ=environ)
    engine.register(*tools)
    return engine


def compose(
    settings: Settings,
    *,
    approver: Approver | None = None,
    audit: Record | None = None,
    environ: Mapping[str, str] | None = None,
    tell_operator: Callable[[str], None] | None = None,
    catalog: Catalog | None = None,
    cells: Cells | None = None,
) -> Engine:
    """Every part in its place. `catalog` and `cells` take the place of what the settings would give."""
    from glee.approval import Nobody
    from glee.artifacts.store import ArtifactStore
    from glee.audit.log import AuditLog
    from glee.claims import FileClaims
    from glee.engine import Engine
    from glee.events import Events
    from glee.parts import Parts
    from glee.secrets.environment import EnvironmentSecrets
    from glee.shape import Shapes

    environ = config.read_environment() if environ is None else environ
    parts = Parts(
        catalog=catalog or compose_catalog(settings),
        policy=compose_policy(settings),
        approver=approver or Nobody(),
        claims=FileClaims(settings.state / "claims"),
        secrets=EnvironmentSecrets(environ),
        runners=Runners(settings, cells),
        shapes=Shapes(),
        artifacts=ArtifactStore(settings.state / "artifacts"),
        audit=audit or AuditLog(settings.audit_file),
        events=Events(),
        limits=settings.limits,
        root=settings.root,
        now=time.time,
        new_id=new_id,
        tell_operator=tell_operator or _log,
    )
    return Engine(parts)


def compose_catalog(settings: Settings) -> Catalog:
    """The sources in the order in which they win a name."""
    from glee.catalog.packages import PackageSource

    sandbox = settings.sandbox
    packages = PackageSource(
        settings.cache.parent / "packages.msgpack" if sandbox.mode != "container" else None,
        describe=lambda probes: _describe(settings, probes),
        trusted=sandbox.trust,
        is_off=sandbox.mode == "off",
    )
    if not settings.has_project:
        return Catalog([packages])
    manifests = ManifestSource(settings.folder / "tools", settings.cache / "manifests.msgpack")
    return Catalog([manifests, packages])


def _describe(settings: Settings, probes: Sequence[Tool]) -> Sequence[Any]:
    """Asks packages for their tools in jails, which end when all have answered."""
    if settings.sandbox.mode == "container":
        reason = "packages belong to the interpreter that runs Glee, which no container has; use sandbox.mode: native"
        return [SandboxUnavailable(reason) for _ in probes]
    from glee.runners.describing import describe_all
    from glee.runners.python import PythonRunner

    runners = Runners(settings)
    try:
        runner = PythonRunner(
            runners.get_cells(), search_path=settings.search_path, locale=settings.locale, keeps_templates=False
        )
        return describe_all(runner, probes)
    except SandboxUnavailable as error:
        return [error for _ in probes]
    finally:
        runners.close()


def compose_policy(settings: Settings) -> NamePolicy:
    return NamePolicy(settings.rules)


class Runners(dict[str, Any]):
    """A runner for each kind, made when a tool of that kind is first called."""

    def __init__(self, settings: Settings, cells: Cells | None = None) -> None:
        super().__init__()
        self._settings = settings
        self._cells = cells

    def close(self) -> None:
        if "python" in self:
            self["python"].close()
        if self._cells is not None:
            self._cells.close()

    def __missing__(self, kind: str) -> Any:
        runner = self[kind] = self._make(kind)
        return runner

    def _make(self, kind: str) -> Any:
        settings = self._settings
        if kind == "http":
            from glee.runners.http import HttpRunner

            return HttpRunner(resolve=settings.egress.resolve, ca_file=settings.egress.ca_file)
        if kind == "command":
            from glee.runners.command import CommandRunner

            return CommandRunner(self.get_cells(), search_path=settings.search_path, locale=settings.locale)
        if kind == "python":
            from glee.runners.python import PythonRunner

            return PythonRunner(self.get_cells(), search_path=settings.search_path, locale=settings.locale)
        from glee.runners.function import FunctionRunner

        return FunctionRunner()

    def get_cells(self) -> Cells:
        if self._cells is None:
            from glee.holding import compose_cells

            self._cells = compose_cells(self._settings)
        return self._cells


def _log(text: str) -> None:
    import logging

    logging.getLogger("glee").error("%s", text)


def new_id() -> str:
    """Sorts by time and cannot be guessed."""
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(8).hex()}"

"""What an engine is made of. `compose` fills it in; the steps of a call use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from glee.approval import Approver
from glee.artifacts.store import ArtifactStore
from glee.audit.log import Record
from glee.catalog.catalog import Catalog
from glee.claims import Claims
from glee.config import Limits
from glee.events import Events
from glee.policy import Policy
from glee.runners import Runner
from glee.secrets.environment import EnvironmentSecrets
from glee.shape import Shapes


class Parts(Struct, frozen=True, kw_only=True):
    catalog: Catalog
    policy: Policy
    approver: Approver
    claims: Claims
    secrets: EnvironmentSecrets
    runners: Mapping[str, Runner]
    shapes: Shapes
    artifacts: ArtifactStore
    audit: Record
    events: Events
    limits: Limits
    root: Path
    now: Callable[[], float]
    """Seconds since the epoch."""
    new_id: Callable[[], str]
    tell_operator: Callable[[str], None]
    """Where tracebacks and the like go: to whoever runs Glee, never to a caller."""
